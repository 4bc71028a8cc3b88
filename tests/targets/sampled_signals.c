/* sampled_signals HOW: the program and a signal of number $1 below the last real-time one, 3 where it is not given (the
 * one that the sampler likes best). HOW is
 *   handler, sigset, rawaction (the bare system call)  handles it, sends it to itself and counts
 *   wait, fd           blocks it and takes it by sigwaitinfo, signalfd
 *   everything         one handler for all signals
 *   reset              resets all signals to their default, and reads back what it set
 *   full               blocks all signals and waits for any of them
 *   default            dies of it
 *   sleeps             one thread works, the main thread must never be interrupted
 *   heavy              100,000 signals to a handler while it works
 * and each uses 300 ms of CPU time besides. The status is 0 where all went as without the sampler. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampled.h"

static volatile sig_atomic_t seen, wrong;
static int number;
static sigjmp_buf before;

static void count(int signal, siginfo_t *info, void *context)
{
	(void)context;
	seen += signal == number && info->si_code != SI_TIMER;
	wrong += signal != number || info->si_code == SI_TIMER;
}

static void count_plain(int signal)
{
	seen += signal == number;
	wrong += signal != number;
}

static void jump(int signal)
{
	seen += signal == number;
	siglongjmp(before, 1);
}

static int expect(const char *what, long got, long expected)
{
	if (got == expected)
		return 0;
	printf("%s: %ld, expected %ld\n", what, got, expected);
	return 1;
}

static int send_it(int times)
{
	for (int i = 0; i < times; i++)
		if (kill(getpid(), number) != 0)
			return sampled_fail("kill");
	return expect("seen", seen, times) + expect("wrong", wrong, 0);
}

static int by_handler(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO}, old;
	int failed;

	if (sigaction(number, &action, &old) != 0)
		return sampled_fail("sigaction");
	failed = expect("was default", old.sa_handler == SIG_DFL, 1);
	sampled_burn(300);
	failed += send_it(10);
	if (sigaction(number, NULL, &old) != 0)
		return sampled_fail("sigaction");
	failed += expect("is ours", old.sa_sigaction == count && !(old.sa_flags & SA_RESTART), 1);
	signal(number, jump);
	for (seen = 0; seen < 5 && !sigsetjmp(before, 1);)
		kill(getpid(), number);
	failed += expect("jumps", seen > 0, 1);
	failed += expect("signal() tells", signal(number, SIG_IGN) == jump, 1);
	failed += expect("and again", signal(number, SIG_DFL) == SIG_IGN, 1);
	return failed + expect("EINVAL", sigaction(65, &action, NULL) == -1 && errno == EINVAL, 1);
}

static int by_sigset(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	sigset(number, count_plain);
#pragma GCC diagnostic pop
	sampled_burn(300);
	return send_it(3);
}

static void *work_little(void *unused)
{
	sampled_burn(1);
	return unused;
}

static int by_raw_action(void)
{
	/* As the kernel has it. */
	struct {
		void (*handler)(int);
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} action = {0};
	pthread_t thread;

	/* libc's way back from a handler */
	signal(SIGUSR1, count_plain);
	if (syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8) != 0 ||
	    syscall(SYS_rt_sigaction, number, &action, NULL, 8) != 0)
		return sampled_fail("rt_sigaction");
	/* That is what the sampler notices it by. */
	if (pthread_create(&thread, NULL, work_little, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return sampled_fail("pthread_create");
	seen = 0;
	sampled_burn(300);
	return send_it(3);
}

static int by_waiting(bool fd)
{
	struct signalfd_siginfo got;
	siginfo_t info;
	sigset_t set;
	int from = -1;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return sampled_fail("sigprocmask");
	if (fd)
		from = signalfd(-1, &set, 0);
	sampled_burn(300);
	if (kill(getpid(), number) != 0)
		return sampled_fail("kill");
	if (!fd)
		return expect("waited for", sigwaitinfo(&set, &info), number) +
		       expect("code", info.si_code, SI_USER);
	if (read(from, &got, sizeof got) != sizeof got)
		return sampled_fail("signalfd");
	return expect("read", got.ssi_signo, number);
}

static int everything(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (int i = 1; i <= SIGRTMAX; i++)
		if (i != SIGKILL && i != SIGSTOP && (i < 32 || i >= SIGRTMIN) && sigaction(i, &action, NULL) != 0)
			return sampled_fail("sigaction");
	sampled_burn(300);
	return send_it(10);
}

static int reset(void)
{
	int failed = 0;

	for (int i = 1; i <= SIGRTMAX; i++)
		if (i != SIGKILL && i != SIGSTOP && (i < 32 || i >= SIGRTMIN)) {
			struct sigaction old;

			failed += expect("before", signal(i, SIG_IGN) == SIG_DFL, 1);
			failed += expect("between", signal(i, SIG_DFL) == SIG_IGN, 1);
			failed += expect("after", sigaction(i, NULL, &old) == 0 && old.sa_handler == SIG_DFL, 1);
		}
	sampled_burn(300);
	return failed;
}

static int full(void)
{
	struct timespec none = {0};
	sigset_t all;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0)
		return sampled_fail("sigprocmask");
	sampled_burn(300);
	if (sigtimedwait(&all, NULL, &none) != -1 || errno != EAGAIN)
		return expect("something pending", 1, 0);
	if (kill(getpid(), SIGUSR1) != 0)
		return sampled_fail("kill");
	return expect("waited for", sigwaitinfo(&all, NULL), SIGUSR1);
}

static void *work(void *unused)
{
	sampled_burn(1500);
	return unused;
}

static void *give_in_time(void *context)
{
	void **all = context;
	struct timespec while_ = {0, 1000000};

	for (int i = 0; i < 100; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &while_, NULL);
		sem_post(all[0]);
		if (write(*(int *)all[1], "x", 1) != 1)
			return all;
	}
	return NULL;
}

static int sleeps(void)
{
	struct timespec while_ = {0, 2000000};
	int ends[2], broken = 0;
	sem_t semaphore;
	pthread_t worker, giver;
	void *shared[] = {&semaphore, &ends[1]};
	char byte;

	if (pipe(ends) != 0 || sem_init(&semaphore, 0, 0) != 0 || pthread_create(&worker, NULL, work, NULL) != 0 ||
	    pthread_create(&giver, NULL, give_in_time, shared) != 0)
		return sampled_fail("sleeps");
	for (int i = 0; i < 248; i++) {
		struct pollfd nothing = {.fd = -1};

		broken += nanosleep(&while_, NULL) != 0;
		broken += poll(&nothing, 1, 1) != 0;
		if (i < 100)
			broken += (sem_wait(&semaphore) != 0) + (read(ends[0], &byte, 1) != 1);
	}
	pthread_join(worker, NULL);
	pthread_join(giver, NULL);
	return expect("interrupted", broken, 0);
}

static int heavy(void)
{
	signal(number, count_plain);
	for (int i = 0; i < 100000; i++)
		kill(getpid(), number);
	sampled_burn(300);
	return expect("seen", seen, 100000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "handler";

	number = SIGRTMAX - (argc > 2 ? atoi(argv[2]) : 3);
	if (strcmp(how, "handler") == 0)
		return by_handler();
	if (strcmp(how, "sigset") == 0)
		return by_sigset();
	if (strcmp(how, "rawaction") == 0)
		return by_raw_action();
	if (strcmp(how, "wait") == 0 || strcmp(how, "fd") == 0)
		return by_waiting(*how == 'f');
	if (strcmp(how, "everything") == 0)
		return everything();
	if (strcmp(how, "reset") == 0)
		return reset();
	if (strcmp(how, "full") == 0)
		return full();
	if (strcmp(how, "sleeps") == 0)
		return sleeps();
	if (strcmp(how, "heavy") == 0)
		return heavy();
	sampled_burn(300);
	return kill(getpid(), number);
}
