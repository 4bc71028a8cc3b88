/* sampled_limits HOW: a program in narrow quarters, which uses CPU time all the same. HOW is
 *   filter, strict     forbids all system calls but read, write, exit, sigreturn (and futex), and works on
 *   nnp                gives up new privileges, then makes a thread
 *   deep [FRAMES]      recursion, 20,000 frames deep where none are named
 *   alternate [BYTES]  works in a handler on a small alternate stack, and beside it; prints the bytes of it that were
 *                      used, and the kernel's frame
 *   jumps              leaves handlers and frames by longjmp
 *   switch             goes to and fro between stacks of its own (makecontext)
 *   wait               says so, works until it is killed
 *   many [THREADS]     so many threads at a time, all waiting while the main one works and prints its memory */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "sampled.h"

#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static ucontext_t main_context, other_context;
static volatile sig_atomic_t handled;

/* No system call: the clock of a thread's CPU time would be one. */
static void spin(long ms)
{
	struct timespec ts;
	int64_t until;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	until = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + ms * 1000000;
	do {
		for (int i = 0; i < 20000; i++)
			sampled_sink = sampled_sink * 6364136223846793005u + 1442695040888963407u;
		clock_gettime(CLOCK_MONOTONIC, &ts);
	} while ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec < until);
}

/* Strict mode forbids even to read the clock. */
static void spin_blindly(void)
{
	for (long i = 0; i < 300000000; i++)
		sampled_sink = sampled_sink * 6364136223846793005u + 1442695040888963407u;
}

/* how: "filter" by prctl, "raw" by the system call and with the rights of root only, "strict", "both" after what makes
 * a filter possible. */
static int restricted(const char *how)
{
	int strict = *how == 's' || *how == 'b';
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_exit),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_futex),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};

	if (*how == 'b' && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return sampled_fail("prctl");
	if (*how == 'r') {
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
			return sampled_fail("seccomp");
	} else if (strict) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
			return sampled_fail("seccomp");
	} else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
		return sampled_fail("seccomp");
	}
	if (strict)
		spin_blindly();
	else
		spin(500);
	if (write(STDOUT_FILENO, "alive\n", 6) != 6)
		return 1;
	syscall(SYS_exit, 0);
	return 1;
}

static void *work(void *unused)
{
	sampled_burn(300);
	return unused;
}

static int in_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return sampled_fail("pthread_create");
	return 0;
}

static __attribute__((noinline)) int go_down(int left)
{
	int below = 0;

	if (left > 0)
		below = go_down(left - 1);
	else
		sampled_burn(300);
	__asm__ volatile("" : "+r"(below) : : "memory");
	return below + 1;
}

static void work_in_handler(int signal)
{
	(void)signal;
	handled++;
	sampled_burn(200);
}

static int alternate(size_t size)
{
	struct sigaction action = {.sa_handler = work_in_handler, .sa_flags = SA_ONSTACK};
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 65536, .ss_size = size};
	size_t lowest = 0;

	if (memory == MAP_FAILED || sigaction(SIGUSR1, &action, NULL) != 0 || sigaltstack(&stack, NULL) != 0)
		return sampled_fail("sigaltstack");
	for (int i = 0; i < 5; i++) {
		kill(getpid(), SIGUSR1);
		sampled_burn(100);
	}
	while (!memory[lowest])
		lowest++;
	printf("%zd %lu\n", 65536 + (ssize_t)size - (ssize_t)lowest, getauxval(AT_MINSIGSTKSZ));
	return handled != 5 || lowest < 65536;
}

static int jumps(void)
{
	static jmp_buf out;
	volatile int count = 0;

	while (count < 100000) {
		count++;
		if (setjmp(out) == 0)
			longjmp(out, 1);
	}
	sampled_burn(300);
	return 0;
}

static void other(void)
{
	for (;;) {
		sampled_burn(1);
		swapcontext(&other_context, &main_context);
	}
}

static int switching(void)
{
	size_t size = 64 << 10;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || getcontext(&other_context) != 0)
		return sampled_fail("getcontext");
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = size;
	makecontext(&other_context, other, 0);
	for (int i = 0; i < 300; i++) {
		sampled_burn(1);
		if (swapcontext(&main_context, &other_context) != 0)
			return sampled_fail("swapcontext");
	}
	return 0;
}

static void *wait_for_end(void *lock)
{
	sampled_burn(20);
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static int many(int count)
{
	static pthread_t threads[5000];
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char line[512];
	FILE *smaps;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, wait_for_end, &lock) != 0)
			return sampled_fail("pthread_create");
	sampled_burn(500);
	smaps = fopen("/proc/self/smaps", "re");
	while (smaps && fgets(line, sizeof line, smaps))
		fputs(line, stdout);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return smaps ? fclose(smaps) : 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "jumps";
	int number = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(how, "filter") == 0 || strcmp(how, "raw") == 0 || strcmp(how, "strict") == 0 ||
	    strcmp(how, "both") == 0)
		return restricted(how);
	if (strcmp(how, "nnp") == 0)
		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || in_thread();
	if (strcmp(how, "deep") == 0)
		return go_down(number ? number : 20000) < 0;
	if (strcmp(how, "alternate") == 0)
		return alternate(number ? (size_t)number : 8192);
	if (strcmp(how, "switch") == 0)
		return switching();
	if (strcmp(how, "many") == 0)
		return many(number ? number : 100);
	if (strcmp(how, "wait") == 0) {
		puts("working");
		fflush(stdout);
		for (;;)
			sampled_burn(1000);
	}
	return jumps();
}
