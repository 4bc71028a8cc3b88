#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/unwind.h"
#include "preload/unwind_cache.h"
#include "preload/unwind_code.h"

#define FRAMES_MAX 1024

extern void *__libc_stack_end;

static struct {
	uint64_t frames[FRAMES_MAX], again[FRAMES_MAX]; /* by a second walk */
	size_t count, count_again, room;
	unsigned result;
	unsigned met, with_build_id;
	bool know_nothing, may_probe;
	int number; /* errno behind the walk */
} walked;

static void meet(void *context, const struct unwind_module *module)
{
	(void)context;
	walked.met++;
	walked.with_build_id += module->build_id_length >= 8;
	assert_true(module->start < module->end && module->path != NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	uintptr_t sp = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
	struct unwind_options options = {.may_probe = walked.may_probe, .met = meet};
	unsigned result;

	(void)number, (void)info;
	options.known = (struct unwind_range){sp, walked.know_nothing ? sp : (uintptr_t)__libc_stack_end};
	errno = ENOTTY;
	walked.count = unwind_walk(at, &options, walked.frames, walked.room, &walked.result);
	walked.number = errno;
	walked.count_again = unwind_walk(at, &options, walked.again, walked.room, &result);
}

/* Walks in a signal handler, from here. */
static void walk_here(void)
{
	walked.met = walked.with_build_id = 0;
	raise(SIGUSR1);
}

static int prepare(void **state)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	(void)state;
	memset(&walked, 0, sizeof walked);
	walked.room = FRAMES_MAX;
	return sigaction(SIGUSR1, &action, NULL);
}

static int prepare_all(void **state)
{
	(void)state;
	return unwind_init();
}

static void every_instruction_of_the_zoo_is_walked_truthfully(void **state)
{
	const char *folder = getenv("ASSAY_TEST_TARGETS");
	char command[4096], name[64];
	unsigned animals = 0, instructions, exact, guessed, brief, misled, wrong;
	FILE *zoo;

	(void)state;
	assert_non_null(folder);
	snprintf(command, sizeof command, "exec '%s/target_unwind_zoo'", folder);
	zoo = popen(command, "r");
	assert_non_null(zoo);
	while (fscanf(zoo, "%63s %u %u %u %u %u %u", name, &instructions, &exact, &guessed, &brief, &misled, &wrong) ==
	       7) {
		unsigned switches = 0; /* instructions on the way from one stack, or one place on it, to another */

		if (strcmp(name, "jumps") == 0 || strcmp(name, "thrown") == 0)
			switches = 12;
		else if (strcmp(name, "coroutines") == 0)
			switches = 5 * 40;
		if (wrong + misled + brief > switches)
			fail_msg("%s: of %u walks, %u exact, %u guessed, %u short, %u misled, %u wrong", name,
				 instructions, exact, guessed, brief, misled, wrong);
		if (strcmp(name, "kernels") == 0)
			assert_true(guessed > 50);
		else if (strcmp(name, "made_at_run_time") != 0 && strcmp(name, "coroutines") != 0)
			assert_true(guessed <= 4); /* where the zoo itself touches the stack by hand */
		assert_int_equal(exact + guessed + brief + misled + wrong, instructions);
		assert_true(instructions > 20);
		animals++;
	}
	assert_int_equal(pclose(zoo), 0);
	assert_int_equal(animals, 14);
}

static void a_walk_keeps_errno_and_reaches_the_start(void **state)
{
	(void)state;
	walk_here();
	assert_int_equal(walked.number, ENOTTY);
	assert_true(walked.count >= 5);
	assert_int_equal(walked.result, UNWIND_COMPLETE);
}

static void what_is_remembered_changes_nothing(void **state)
{
	(void)state;
	unwind_modules_closing();
	unwind_modules_changed();
	walk_here();
	assert_int_equal(walked.count_again, walked.count);
	assert_memory_equal(walked.again, walked.frames, walked.count * sizeof *walked.frames);
}

static void a_module_is_announced_once_in_each_generation(void **state)
{
	(void)state;
	unwind_modules_closing();
	unwind_modules_changed();
	walk_here();
	assert_true(walked.met >= 2); /* this program and the C library */
	assert_int_equal(walked.with_build_id, walked.met);
	walk_here();
	assert_int_equal(walked.met, 0);
}

static void while_a_module_is_unloaded_nothing_new_is_read(void **state)
{
	(void)state;
	unwind_modules_closing();
	unwind_modules_changed();
	unwind_modules_closing();
	walk_here();
	assert_int_equal(walked.met, 0);
	assert_int_equal(walked.result & UNWIND_COMPLETE, 0);
	unwind_modules_changed();
	walk_here();
	assert_int_equal(walked.result, UNWIND_COMPLETE);
}

static void a_forked_child_does_not_wait_for_what_the_parent_was_unloading(void **state)
{
	int status;
	pid_t child;

	(void)state;
	unwind_modules_closing();
	child = fork();
	if (child == 0) {
		walk_here();
		_exit(walked.result == UNWIND_COMPLETE ? 0 : 1);
	}
	unwind_modules_changed();
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void without_leave_to_ask_an_unknown_stack_is_not_touched(void **state)
{
	(void)state;
	walked.know_nothing = true;
	walk_here();
	assert_int_equal(walked.result & (UNWIND_UNKNOWN | UNWIND_COMPLETE), UNWIND_UNKNOWN);
	walked.may_probe = true;
	walk_here();
	assert_int_equal(walked.result, UNWIND_COMPLETE);
}

static void a_stack_that_cannot_be_read_ends_the_walk(void **state)
{
	char *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct unwind_options options = {.may_probe = true};
	ucontext_t at = {0};
	uint64_t frames[16];
	unsigned result;

	(void)state;
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	/* What lies behind is not ours, and may hold addresses of code. */
	assert_int_equal(mprotect(pages + 12288, 4096, PROT_NONE), 0);
	at.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)strtol;
	for (size_t offset = 4096 - 64; offset <= 8192; offset += 4) {
		at.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(pages + offset);
		at.uc_mcontext.gregs[REG_RBP] = (greg_t)(uintptr_t)(pages + offset + 8);
		assert_int_equal(unwind_walk(&at, &options, frames, 16, &result), 1);
		assert_int_equal(result & (UNWIND_COMPLETE | UNWIND_CUT), 0);
	}
	at.uc_mcontext.gregs[REG_RSP] = -8;
	assert_int_equal(unwind_walk(&at, &options, frames, 16, &result), 1);
	munmap(pages, 16384);
}

static int descend(int depth)
{
	volatile int kept = depth;

	if (depth)
		return descend(depth - 1) + kept;
	walk_here();
	return kept;
}

static void a_deep_stack_is_cut_at_the_room_there_is(void **state)
{
	(void)state;
	descend(20000);
	assert_int_equal(walked.count, FRAMES_MAX);
	assert_int_equal(walked.result, UNWIND_CUT);
	walked.room = 1;
	descend(3);
	assert_int_equal(walked.count, 1);
	assert_int_equal(walked.result, UNWIND_CUT);
}

static void a_wild_address_is_a_frame_of_its_own(void **state)
{
	void *code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t wild[] = {0, 1, 65535, (uintptr_t)code, (uintptr_t)1 << 47, UINTPTR_MAX};
	uint64_t stack[64] = {0}, frames[16];
	struct unwind_options options = {.known = {(uintptr_t)stack, (uintptr_t)(stack + 64)}};
	unsigned result;

	(void)state;
	for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
		ucontext_t at = {0};

		at.uc_mcontext.gregs[REG_RIP] = (greg_t)wild[i];
		at.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)stack;
		at.uc_mcontext.gregs[REG_RBP] = (greg_t)(uintptr_t)(stack + 8);
		assert_int_equal(unwind_walk(&at, &options, frames, 16, &result), 1);
		assert_int_equal(frames[0], wild[i]);
		assert_int_equal(result & UNWIND_COMPLETE, 0);
	}
	munmap(code, 4096);
}

static void instructions_are_as_long_as_the_processor_has_them(void **state)
{
	static const struct {
		unsigned length;
		uint8_t code[16];
	} rows[] = {
		{1, {0xc3}},
		{2, {0xf3, 0xc3}},
		{4, {0xf3, 0x0f, 0x1e, 0xfa}},
		{4, {0x48, 0x83, 0xec, 0x60}},
		{7, {0x48, 0x81, 0xec, 0x80, 0x70, 0, 0}},
		{5, {0x4c, 0x89, 0x64, 0x24, 0x10}},
		{10, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}},
		{5, {0xb8, 1, 2, 3, 4}},
		{4, {0x66, 0xb8, 1, 2}},
		{6, {0xff, 0x90, 0xb0, 2, 0, 0}},
		{8, {0x42, 0xff, 0x14, 0xc5, 0, 0, 0, 0}},
		{3, {0xf6, 0xc1, 0x01}},
		{2, {0xf6, 0xd1}},
		{6, {0xf7, 0xc1, 1, 0, 0, 0}},
		{3, {0xc5, 0xf8, 0x77}},
		{4, {0xc5, 0xfd, 0x57, 0xc0}},
		{6, {0xc4, 0xe3, 0x7d, 0x19, 0xc1, 1}},
		{5, {0xc4, 0xe2, 0xf5, 0xb8, 0xc2}},
		{8, {0x62, 0xf1, 0x7c, 0x48, 0x28, 0x44, 0x24, 0x04}},
		{10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}},
		{6, {0x0f, 0x84, 1, 2, 3, 4}},
		{9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}},
		{12, {0x48, 0xc7, 0x84, 0x24, 0, 1, 0, 0, 0, 0, 0, 0}},
	};
	struct unwind_instruction got;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(unwind_code_decode(rows[i].code, rows[i].code + rows[i].length, &got));
		assert_int_equal(got.length, rows[i].length);
		for (unsigned cut = 0; cut < rows[i].length; cut++)
			assert_false(unwind_code_decode(rows[i].code, rows[i].code + cut, &got));
	}
}

static void a_torn_slot_of_the_memory_is_empty(void **state)
{
	struct unwind_cache_slot slot = {0};
	uint64_t key = unwind_cache_key(1, 0x401234), other = unwind_cache_key(2, 0x401234), step = 0;

	(void)state;
	assert_false(unwind_cache_get(&slot, key, &step));
	unwind_cache_put(&slot, key, STEP_RBP | (uint64_t)2 << STEP_OFFSET_SHIFT);
	assert_true(unwind_cache_get(&slot, key, &step));
	assert_int_equal(unwind_step_offset(step), 16);
	assert_false(unwind_cache_get(&slot, other, &step));
	atomic_store(&slot.step, STEP_RBP | (uint64_t)3 << STEP_OFFSET_SHIFT); /* another writer's half */
	assert_false(unwind_cache_get(&slot, key, &step));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_of_the_zoo_is_walked_truthfully),
		cmocka_unit_test_setup(a_walk_keeps_errno_and_reaches_the_start, prepare),
		cmocka_unit_test_setup(what_is_remembered_changes_nothing, prepare),
		cmocka_unit_test_setup(a_module_is_announced_once_in_each_generation, prepare),
		cmocka_unit_test_setup(while_a_module_is_unloaded_nothing_new_is_read, prepare),
		cmocka_unit_test_setup(a_forked_child_does_not_wait_for_what_the_parent_was_unloading, prepare),
		cmocka_unit_test_setup(without_leave_to_ask_an_unknown_stack_is_not_touched, prepare),
		cmocka_unit_test(a_stack_that_cannot_be_read_ends_the_walk),
		cmocka_unit_test_setup(a_deep_stack_is_cut_at_the_room_there_is, prepare),
		cmocka_unit_test(a_wild_address_is_a_frame_of_its_own),
		cmocka_unit_test(instructions_are_as_long_as_the_processor_has_them),
		cmocka_unit_test(a_torn_slot_of_the_memory_is_empty),
	};
	return cmocka_run_group_tests(tests, prepare_all, NULL);
}
