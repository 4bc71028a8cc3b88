#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/perf_unwind.h"

#include "need.h"

#ifdef __x86_64__

#define FILES_MAX 64
#define FRAMES_MAX 256

/* What is loaded in this process, read from its files as a recorder would. */
struct loaded {
	uintptr_t start, end, bias;
	struct perf_tables *tables;
};

static struct loaded loaded[FILES_MAX];
static size_t loaded_count;

static int load_one(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct perf_tables *tables = fd >= 0 ? perf_tables_read(fd) : NULL;

	(void)size, (void)context;
	for (size_t i = 0; i < info->dlpi_phnum && loaded_count < FILES_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			loaded[loaded_count++] = (struct loaded){info->dlpi_addr + p->p_vaddr,
								 info->dlpi_addr + p->p_vaddr + p->p_memsz,
								 info->dlpi_addr, tables};
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

static bool code_at(void *context, uint64_t address, const struct perf_tables **ret_tables, uint64_t *ret_bias)
{
	const bool *without = context;

	for (size_t i = 0; i < loaded_count; i++)
		if (address >= loaded[i].start && address < loaded[i].end) {
			*ret_tables = without && *without ? NULL : loaded[i].tables;
			*ret_bias = loaded[i].bias;
			return true;
		}
	return false;
}

static uint64_t frames[FRAMES_MAX];
static size_t frame_count;
static enum perf_unwind_end frame_end;
static size_t copied = 65536; /* bytes of stack */
static uint64_t copy[65536 / 8];

/* A copy of the stack, as far as it goes. By itself, since AddressSanitizer guards what lies between variables. */
__attribute__((no_sanitize("address"))) static void copy_stack(uintptr_t from)
{
	extern void *__libc_stack_end;
	size_t there = (uintptr_t)__libc_stack_end + 64 - from, size = there < copied ? there : copied;

	memset(copy, 0, sizeof copy);
	for (size_t i = 0; i < size / 8; i++)
		copy[i] = ((const volatile uint64_t *)from)[i];
}

static void walk(const ucontext_t *at)
{
	static const int order[CFI_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						 REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	struct perf_unwinder *u = perf_unwinder_new();
	struct perf_stack stack = {.bytes = (const uint8_t *)copy, .size = copied};

	assert_non_null(u);
	for (size_t i = 0; i < CFI_REGISTERS; i++)
		stack.registers[i] = (uint64_t)at->uc_mcontext.gregs[order[i]];
	copy_stack((uintptr_t)stack.registers[CFI_RSP]);
	frame_count = perf_unwind(u, &stack, code_at, NULL, frames, FRAMES_MAX, &frame_end);
	perf_unwinder_free(u);
}

__attribute__((noinline)) static int here(void)
{
	ucontext_t at;

	getcontext(&at);
	walk(&at);
	return 0;
}

/* Called by libc's code, which has no frame pointers. */
__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	if (!frame_count)
		here();
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void sort_something(void)
{
	int values[] = {3, 1, 2};

	frame_count = 0;
	qsort(values, 3, sizeof *values, compare);
	assert_int_equal(values[0], 1);
}

/* Whether a frame lies in that function, which is shorter than 2 KiB. */
static bool passed(const void *function)
{
	for (size_t i = 0; i < frame_count; i++)
		if (frames[i] >= (uintptr_t)function && frames[i] < (uintptr_t)function + 2048)
			return true;
	return false;
}

int main(void);

static void a_stack_is_followed_through_libc_to_the_program_s_start(void **state)
{
	(void)state;
	copied = sizeof copy;
	sort_something();
	assert_true(passed((const void *)(uintptr_t)here));
	assert_true(passed((const void *)(uintptr_t)compare));
	assert_true(passed((const void *)(uintptr_t)sort_something));
	assert_true(passed((const void *)(uintptr_t)main));
	assert_int_equal(frame_end, PERF_UNWIND_COMPLETE);
}

static void a_copy_that_is_too_short_gives_a_cut_stack(void **state)
{
	size_t all;

	(void)state;
	copied = sizeof copy;
	sort_something();
	all = frame_count;
	copied = 512; /* ends in the frame of `here`, or soon above it */
	sort_something();
	assert_int_equal(frame_end, PERF_UNWIND_CUT);
	assert_in_range(frame_count, 1, all - 1);
	assert_true(passed((const void *)(uintptr_t)here));
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	frame_count += (size_t)here(); /* no tail call */
}

static void a_signal_handler_s_stack_goes_on_where_it_interrupted(void **state)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	(void)state;
	copied = sizeof copy;
	frame_count = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_true(passed((const void *)(uintptr_t)on_signal));
	assert_true(passed((const void *)(uintptr_t)a_signal_handler_s_stack_goes_on_where_it_interrupted));
	assert_int_equal(frame_end, PERF_UNWIND_COMPLETE);
}

/* Three frames in the manner of code that a compiler made at run time, and an address that is no code. */
static void without_tables_frame_pointers_lead_to_the_first_frame(void **state)
{
	struct perf_unwinder *u = perf_unwinder_new();
	uint64_t code = loaded[0].start + 16, bytes[16] = {0};
	struct perf_stack stack = {.bytes = (const uint8_t *)bytes, .size = sizeof bytes};
	bool without = true;

	(void)state;
	assert_non_null(u);
	stack.registers[CFI_RIP] = code;
	stack.registers[CFI_RSP] = 0x1000;
	stack.registers[CFI_RBP] = 0x1010;
	bytes[2] = 0x1030; /* at 0x1010 */
	bytes[3] = code + 32;
	bytes[6] = 0; /* at 0x1030: the first one */
	bytes[7] = code + 64;
	frame_count = perf_unwind(u, &stack, code_at, &without, frames, FRAMES_MAX, &frame_end);
	assert_int_equal(frame_count, 3);
	assert_int_equal(frames[0], code);
	assert_int_equal(frames[1], code + 31);
	assert_int_equal(frames[2], code + 63);
	assert_int_equal(frame_end, PERF_UNWIND_COMPLETE);
	assert_int_equal(perf_unwind(u, &stack, code_at, &without, frames, 2, &frame_end), 2);
	assert_int_equal(frame_end, PERF_UNWIND_CUT);
	bytes[7] = 0x1234;
	assert_int_equal(perf_unwind(u, &stack, code_at, &without, frames, FRAMES_MAX, &frame_end), 2);
	assert_int_equal(frame_end, PERF_UNWIND_STUCK);
	bytes[2] = 0x1010; /* a frame that is its own caller */
	bytes[7] = code;
	assert_int_equal(perf_unwind(u, &stack, code_at, &without, frames, FRAMES_MAX, &frame_end), 2);
	assert_int_equal(frame_end, PERF_UNWIND_STUCK);
	perf_unwinder_free(u);
}

#else

static void needs_another_machine(void **state)
{
	(void)state;
	need("x86-64", false, "stacks are unwound by perf itself here");
}

#endif

int main(void)
{
#ifdef __x86_64__
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_followed_through_libc_to_the_program_s_start),
		cmocka_unit_test(a_copy_that_is_too_short_gives_a_cut_stack),
		cmocka_unit_test(a_signal_handler_s_stack_goes_on_where_it_interrupted),
		cmocka_unit_test(without_tables_frame_pointers_lead_to_the_first_frame),
	};

	dl_iterate_phdr(load_one, NULL);
#else
	const struct CMUnitTest tests[] = {cmocka_unit_test(needs_another_machine)};
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
