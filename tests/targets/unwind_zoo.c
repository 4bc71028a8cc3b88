/* Walks its own stack at every single instruction of a zoo of functions, and compares with the truth.
 *
 * The processor's trap flag raises SIGTRAP behind each instruction. The handler keeps a shadow stack of the calls that
 * it saw being made, walks from the interrupted context, and compares. Prints a line for each animal:
 * "NAME instructions exact guessed short misled wrong"; `guessed` are true as well, `short` end early, `misled` have a
 * frame that is not true and are marked as guessed, `wrong` are not even marked. With -v, the first few of these. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "preload/unwind.h"

#define DEPTH_MAX 4096
#define FRAMES_MAX 1024
#define STACK_BYTES (256u << 10)
#define NOINLINE __attribute__((noinline, noclone))

extern void *__libc_stack_end;

/* Where a frame will go on, and where on the stack that is written. */
struct entry {
	uintptr_t slot, frame;
};

enum region { MAIN, ALTERNATE, COROUTINE, REGIONS };

static struct {
	struct entry entries[DEPTH_MAX];
	unsigned count;
} shadow[REGIONS];

static unsigned char alternate_stack[STACK_BYTES], coroutine_stack[STACK_BYTES];
static uintptr_t main_end;
static uint64_t base[FRAMES_MAX]; /* the frames below the zoo, by libgcc */
static size_t base_count;
static uintptr_t last_pc, last_sp;
static struct {
	unsigned instructions, exact, guessed, brief, misled, wrong;
} seen;
static bool verbose;
static volatile double sink;

static enum region region_of(uintptr_t sp)
{
	if (sp - (uintptr_t)alternate_stack < sizeof alternate_stack)
		return ALTERNATE;
	return sp - (uintptr_t)coroutine_stack <= sizeof coroutine_stack ? COROUTINE : MAIN;
}

static void push(enum region region, uintptr_t slot, uintptr_t frame)
{
	if (shadow[region].count == DEPTH_MAX)
		abort();
	shadow[region].entries[shadow[region].count++] = (struct entry){slot, frame};
}

/* Whether the instruction at last_pc was a call whose return address is now on top of the stack. */
static bool was_call(uintptr_t sp)
{
	const unsigned char *code = (const unsigned char *)last_pc;
	uintptr_t length = *(uintptr_t *)sp - last_pc;

	while (*code == 0xf2 || *code == 0x3e || (*code & 0xf0) == 0x40 || *code == 0x66)
		code++;
	return sp == last_sp - 8 && length >= 2 && length <= 9 &&
	       (*code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2));
}

static size_t expected(enum region region, uint64_t pc, uint64_t *frames)
{
	size_t count = 0;

	frames[count++] = pc;
	for (int r = (int)region; r >= MAIN; r--) {
		for (unsigned i = shadow[r].count; i-- && count < FRAMES_MAX;)
			frames[count++] = shadow[r].entries[i].frame;
		if (r == COROUTINE)
			return count;
	}
	for (size_t i = 0; i < base_count && count < FRAMES_MAX; i++)
		frames[count++] = base[i];
	return count;
}

static void show(const char *what, const uint64_t *frames, size_t count, size_t from)
{
	fprintf(stderr, " %s[%zu]:", what, count);
	for (size_t i = from; i < count && i < from + 6; i++) {
		Dl_info info;

		if (dladdr((void *)frames[i], &info) && info.dli_sname)
			fprintf(stderr, " %s+%#lx", info.dli_sname, frames[i] - (uintptr_t)info.dli_saddr);
		else
			fprintf(stderr, " %s+%#lx", info.dli_fname, frames[i] - (uintptr_t)info.dli_fbase);
	}
	fprintf(stderr, "\n");
}

static void judge(const uint64_t *frames, size_t count, unsigned result, const uint64_t *truth, size_t truths)
{
	size_t same = 0;

	while (same < count && same < truths && frames[same] == truth[same])
		same++;
	if (same == count && same == truths && result & UNWIND_COMPLETE) {
		if (result & UNWIND_GUESSED)
			seen.guessed++;
		else
			seen.exact++;
		return;
	}
	if (same == count && !(result & UNWIND_COMPLETE))
		seen.brief++;
	else if (result & UNWIND_GUESSED)
		seen.misled++;
	else
		seen.wrong++;
	if (verbose && seen.wrong + seen.brief + seen.misled < 6) {
		fprintf(stderr, "result %u, the same up to %zu\n", result, same);
		show("got", frames, count, same ? same - 1 : 0);
		show("true", truth, truths, same ? same - 1 : 0);
	}
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	static uint64_t frames[FRAMES_MAX], truth[FRAMES_MAX];
	ucontext_t *at = context;
	uintptr_t sp = (uintptr_t)at->uc_mcontext.gregs[REG_RSP], pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
	enum region region = region_of(sp);
	struct unwind_options options = {.may_probe = true};
	unsigned result;
	size_t count;

	(void)number, (void)info;
	if (region == MAIN) {
		options.known = (struct unwind_range){sp, main_end};
		options.may_probe = false;
		shadow[ALTERNATE].count = 0;
	}
	while (shadow[region].count && shadow[region].entries[shadow[region].count - 1].slot < sp)
		shadow[region].count--;
	if (last_pc && was_call(sp))
		push(region, sp, *(uintptr_t *)sp - 1);
	last_pc = pc;
	last_sp = sp;
	count = unwind_walk(at, &options, frames, FRAMES_MAX, &result);
	seen.instructions++;
	judge(frames, count, result, truth, expected(region, pc, truth));
}

static _Unwind_Reason_Code add_base(struct _Unwind_Context *context, void *ignored)
{
	(void)ignored;
	if (_Unwind_GetIP(context) && base_count < FRAMES_MAX)
		base[base_count++] = _Unwind_GetIP(context) - 1;
	return _URC_NO_REASON;
}

/* The first trap comes behind the instruction that follows. */
#define TRAP_ON() __asm__ volatile("pushf; orl $0x100, (%%rsp); popf; nop" ::: "memory", "cc")
#define TRAP_OFF() __asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc")

/* ---- The animals. ---- */

NOINLINE static int leaf(int x)
{
	return x * 3 + 1;
}

NOINLINE static int saves_many(int a, int b, int c, int d, int e, int f)
{
	int sum = 0;

	for (int i = 0; i < 2; i++)
		sum += leaf(a + i) * b + leaf(c) * d + leaf(e) - f;
	return sum;
}

static void plain(void)
{
	sink = saves_many(1, 2, 3, 4, 5, 6);
}

NOINLINE static int uses_alloca(size_t size)
{
	char *room = __builtin_alloca(size);

	memset(room, 1, size);
	__asm__ volatile("" ::"r"(room) : "memory");
	return leaf(room[size / 2]);
}

static void variable_frame(void)
{
	sink = uses_alloca(40) + uses_alloca(4000);
}

NOINLINE static double realigned(int count, ...)
{
	double wide[16] __attribute__((aligned(64)));
	char *room = __builtin_alloca((size_t)count);

	memset(wide, count, sizeof wide);
	__asm__ volatile("" ::"r"(wide), "r"(room) : "memory");
	return wide[3] + leaf(count);
}

static void aligned_frame(void)
{
	sink = realigned(8, 1, 2, 3, 4, 5, 6, 7, 8) + realigned(99);
}

static int compare(const void *a, const void *b)
{
	return leaf(*(const int *)a) - leaf(*(const int *)b);
}

static void callbacks(void)
{
	int values[] = {5, 3, 9, 1, 7, 2};

	qsort(values, sizeof values / sizeof *values, sizeof *values, compare);
}

/* The first calls of these go through the loader: the program is linked to bind lazily. */
static void lazily_bound(void)
{
	sink = (double)labs(strtol("12", NULL, 10)) + (double)getppid() + (double)abs(atoi("7"));
}

static void formatted(void)
{
	char text[200];

	snprintf(text, sizeof text, "%s %d %.3f %-9ld|", "text", 4, 2.5e10, 77L);
	sink = (double)strlen(text) + (double)(strchr(text, '|') - text) + memcmp(text, "text", 4);
}

static jmp_buf back;

NOINLINE __attribute__((noreturn)) static void leaves(int depth)
{
	longjmp(back, depth);
}

/* Ends with a call that does not return: its return address is behind the function's end. */
NOINLINE __attribute__((noreturn)) static void goes_on(int depth)
{
	leaves(leaf(depth));
}

static void jumps(void)
{
	if (!setjmp(back))
		goes_on(4);
}

NOINLINE static int recurses(int depth)
{
	return depth ? recurses(depth - 1) * 2 + leaf(depth) : 1;
}

static void recursion(void)
{
	sink = recurses(30);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)number, (void)info;
	push(ALTERNATE, (uintptr_t)at, (uintptr_t)at->uc_mcontext.gregs[REG_RIP]);
	push(ALTERNATE, (uintptr_t)at - 8, ((uintptr_t *)at)[-1]);
	last_pc = 0;
	TRAP_ON();
	sink = saves_many(1, 2, 3, 4, 5, 6);
	TRAP_OFF(); /* the kernel turns it on again with the interrupted flags */
	last_pc = 0;
}

static void signals(void)
{
	raise(SIGUSR1);
}

static ucontext_t here, there;

NOINLINE static void coroutine(int turns)
{
	while (turns--) {
		sink = saves_many(1, 2, 3, 4, 5, 6);
		swapcontext(&there, &here);
	}
}

static void coroutines(void)
{
	uintptr_t top = (uintptr_t)there.uc_mcontext.gregs[REG_RSP];

	push(COROUTINE, top, *(uintptr_t *)top); /* put there by makecontext: a function's start */
	for (int i = 0; i < 3; i++)
		swapcontext(&here, &there);
}

static _Unwind_Reason_Code ignore_frame(struct _Unwind_Context *context, void *count)
{
	(void)context;
	++*(int *)count;
	return _URC_NO_REASON;
}

static void unwinder(void)
{
	int count = 0;

	_Unwind_Backtrace(ignore_frame, &count);
	sink = count;
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
				struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *depth)
{
	(void)version, (void)actions, (void)class, (void)exception, (void)context;
	if (++*(int *)depth == 3)
		longjmp(back, 1);
	return _URC_NO_REASON;
}

NOINLINE static int throws(int *depth)
{
	static struct _Unwind_Exception exception;

	_Unwind_ForcedUnwind(&exception, stop, depth);
	return leaf(*depth);
}

static void thrown(void)
{
	int depth = 0;

	if (!setjmp(back))
		sink = throws(&depth);
}

/* Kernels as numeric libraries have them: no unwind data, or data that says nothing. */
int kernel_without_tables(int (*call)(int), int x);
int kernel_with_bare_tables(int x);
int kernel_with_aligned_frame(int x);
__asm__(".text\n"
	".p2align 4\n"
	"kernel_without_tables:\n"
	"	sub $0x60, %rsp\n"
	"	mov %rbx, (%rsp)\n"
	"	mov %rbp, 8(%rsp)\n"
	"	mov %r12, 16(%rsp)\n"
	"	mov %esi, %ebp\n"
	"	mov $7, %ebx\n"
	"1:	add $1, %ebp\n"
	"	vxorpd %ymm0, %ymm0, %ymm0\n"
	"	dec %ebx\n"
	"	jnz 1b\n"
	"	vzeroupper\n"
	"	mov %ebp, %eax\n"
	"	mov (%rsp), %rbx\n"
	"	mov 8(%rsp), %rbp\n"
	"	mov 16(%rsp), %r12\n"
	"	add $0x60, %rsp\n"
	"	ret\n"
	".size kernel_without_tables, . - kernel_without_tables\n"
	".p2align 4\n"
	"kernel_with_bare_tables:\n"
	".cfi_startproc\n"
	"	push %r15\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	sub $0x40, %rsp\n"
	"	lea 5(%rdi), %ebp\n"
	"	mov $3, %ebx\n"
	"1:	imul $3, %ebp, %ebp\n"
	"	sub $1, %ebx\n"
	"	jnz 1b\n"
	"	mov %ebp, %eax\n"
	"	add $0x40, %rsp\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	pop %r15\n"
	"	ret\n"
	".cfi_endproc\n"
	".p2align 4\n"
	"kernel_with_aligned_frame:\n"
	"	sub $0x60, %rsp\n"
	"	mov %rbx, (%rsp)\n"
	"	mov %r13, 0x18(%rsp)\n"
	"	mov %rsp, %rbx\n"
	"	sub $0x2080, %rsp\n"
	"	and $-4096, %rsp\n"
	"	mov $4, %r13\n"
	"1:	mov %r13, 0x28(%rsp)\n"
	"	dec %r13\n"
	"	jg 1b\n"
	"	mov %edi, %eax\n"
	"	mov %rbx, %rsp\n"
	"	mov (%rsp), %rbx\n"
	"	mov 0x18(%rsp), %r13\n"
	"	add $0x60, %rsp\n"
	"	ret\n");

static void kernels(void)
{
	sink = kernel_without_tables(leaf, 3) + kernel_with_bare_tables(4) + kernel_with_aligned_frame(5);
}

static int (*made)(int (*)(int), int);

/* push %rbp; mov %rsp, %rbp; mov %rdi, %rax; mov %esi, %edi; call *%rax; pop %rbp; ret */
static const unsigned char made_code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x89,
					  0xf7, 0xff, 0xd0, 0x5d, 0xc3};

static void made_at_run_time(void)
{
	sink = made(leaf, 3);
}

NOINLINE static void trace(const char *name, void (*animal)(void))
{
	memset(&seen, 0, sizeof seen);
	base_count = 0;
	_Unwind_Backtrace(add_base, NULL);
	memmove(base, base + 1, --base_count * sizeof *base); /* without this function itself */
	for (unsigned i = 0; i < REGIONS; i++)
		shadow[i].count = 0;
	last_pc = 0;
	TRAP_ON();
	animal();
	TRAP_OFF();
	printf("%s %u %u %u %u %u %u\n", name, seen.instructions, seen.exact, seen.guessed, seen.brief,
	       seen.misled, seen.wrong);
}

static void prepare(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction user = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	main_end = (uintptr_t)__libc_stack_end;
	if (code == MAP_FAILED || sigaction(SIGTRAP, &trap, NULL) || sigaction(SIGUSR1, &user, NULL) ||
	    sigaltstack(&stack, NULL) || getcontext(&there) || unwind_init())
		abort();
	memcpy(code, made_code, sizeof made_code);
	made = (int (*)(int (*)(int), int))(uintptr_t)code;
	there.uc_stack = (stack_t){.ss_sp = coroutine_stack, .ss_size = sizeof coroutine_stack};
	there.uc_link = NULL;
	makecontext(&there, (void (*)(void))(uintptr_t)coroutine, 1, 3);
}

static const struct {
	const char *name;
	void (*run)(void);
} zoo[] = {
	{"plain", plain},
	{"variable_frame", variable_frame},
	{"aligned_frame", aligned_frame},
	{"callbacks", callbacks},
	{"lazily_bound", lazily_bound},
	{"formatted", formatted},
	{"jumps", jumps},
	{"recursion", recursion},
	{"signals", signals},
	{"coroutines", coroutines},
	{"unwinder", unwinder},
	{"thrown", thrown},
	{"kernels", kernels},
	{"made_at_run_time", made_at_run_time},
};

int main(int argc, char **argv)
{
	verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	prepare();
	for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++)
		trace(zoo[i].name, zoo[i].run);
	return 0;
}
