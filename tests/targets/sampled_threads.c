/* sampled_threads HOW COUNT MS: COUNT threads that each use MS milliseconds of CPU time. HOW is pthread, c11, clone
 * (glibc's function), raw (the system call), blocked (born with all signals blocked), named, short (one at a time), or
 * exits (pthread_exit, and a destructor of a key that works on). Prints the CPU seconds of the whole process. */
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "sampled.h"

#define THREADS_MAX 512
#define STACK (256 << 10)

static long ms;
static _Atomic int to_go;
static pthread_key_t key;

static void *work(void *unused)
{
	sampled_burn(ms);
	return unused;
}

static int work_c11(void *unused)
{
	(void)unused;
	sampled_burn(ms);
	return 7;
}

static int work_clone(void *unused)
{
	(void)unused;
	sampled_burn(ms);
	to_go--;
	return 0;
}

static void *work_named(void *unused)
{
	pthread_setname_np(pthread_self(), "first");
	sampled_burn(ms / 2);
	prctl(PR_SET_NAME, "second");
	sampled_burn(ms / 2);
	return unused;
}

static void work_on(void *unused)
{
	(void)unused;
	sampled_burn(ms / 2);
}

static void *work_and_exit(void *unused)
{
	pthread_setspecific(key, &key);
	sampled_burn(ms / 2);
	pthread_exit(unused);
}

static int pthreads(void *(*start)(void *), int count)
{
	pthread_t threads[THREADS_MAX];

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, start, &key) != 0)
			return sampled_fail("pthread_create");
	for (int i = 0; i < count; i++) {
		void *result;

		if (pthread_join(threads[i], &result) != 0 || result != &key)
			return sampled_fail("pthread_join");
	}
	return 0;
}

static int short_ones(int count)
{
	for (int i = 0; i < count; i++)
		if (pthreads(work, 1) != 0)
			return 1;
	return 0;
}

static int c11_threads(int count)
{
	thrd_t threads[THREADS_MAX];
	int result = 0;

	for (int i = 0; i < count; i++)
		if (thrd_create(&threads[i], work_c11, NULL) != thrd_success)
			return sampled_fail("thrd_create");
	for (int i = 0; i < count; i++)
		if (thrd_join(threads[i], &result) != thrd_success || result != 7)
			return sampled_fail("thrd_join");
	return 0;
}

#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

#if defined(__x86_64__)
/* A thread by the bare system call: the new one must not return into this function's frame, so it calls at once. */
static long raw_thread(char *top, int (*start)(void *))
{
	long result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "xor %%edi, %%edi\n\t"
			 "call *%[start]\n\t"
			 "mov $60, %%eax\n\t"
			 "xor %%edi, %%edi\n\t"
			 "syscall\n\t"
			 "1:"
			 : "=a"(result)
			 : "0"((long)SYS_clone), "D"((long)THREAD_FLAGS), "S"(top), "d"(0L), [start] "r"(start)
			 : "rcx", "r11", "memory", "r8", "r9", "r10");
	return result;
}
#else
static long raw_thread(char *top, int (*start)(void *))
{
	return clone(start, top, THREAD_FLAGS, NULL);
}
#endif

static int cloned(int count, int raw)
{
	to_go = count;
	for (int i = 0; i < count; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (stack == MAP_FAILED || (raw ? raw_thread(stack + STACK, work_clone)
						: clone(work_clone, stack + STACK, THREAD_FLAGS, NULL)) < 0)
			return sampled_fail("clone");
	}
	while (to_go > 0)
		usleep(1000);
	usleep(20000); /* they are at their ends */
	return 0;
}

static int run(const char *how, int count)
{
	sigset_t all;

	if (strcmp(how, "pthread") == 0)
		return pthreads(work, count);
	if (strcmp(how, "c11") == 0)
		return c11_threads(count);
	if (strcmp(how, "clone") == 0 || strcmp(how, "raw") == 0)
		return cloned(count, *how == 'r');
	if (strcmp(how, "named") == 0)
		return pthreads(work_named, count);
	if (strcmp(how, "short") == 0)
		return short_ones(count);
	if (strcmp(how, "exits") == 0)
		return pthread_key_create(&key, work_on) != 0 || pthreads(work_and_exit, count);
	sigfillset(&all);
	if (strcmp(how, "blocked") == 0 && pthread_sigmask(SIG_BLOCK, &all, NULL) == 0)
		return pthreads(work, count);
	return 2;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 2, status;

	ms = argc > 3 ? atol(argv[3]) : 200;
	status = run(argc > 1 ? argv[1] : "pthread", count);
	printf("%.6f\n", (double)sampled_cpu(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	return status;
}
