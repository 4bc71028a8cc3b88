/* Compiled with -finstrument-functions: calls whose counts are known, in the way that its first word names. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BARE __attribute__((no_instrument_function))
#define KEPT __attribute__((noinline, noclone))

static volatile uint64_t sink;
static jmp_buf back;

BARE static void busy_ms(long ms)
{
	struct timespec now;
	int64_t end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + ms * 1000000;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end);
}

KEPT static void leaf(void)
{
	sink++;
}

KEPT static void slow_leaf(void)
{
	busy_ms(20);
}

KEPT static void middle(int times)
{
	for (int i = 0; i < times; i++)
		leaf();
}

KEPT static uint64_t fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KEPT static void odd(unsigned n);

KEPT static void even(unsigned n)
{
	if (n)
		odd(n - 1);
	sink++;
}

KEPT static void odd(unsigned n)
{
	if (n)
		even(n - 1);
	sink++;
}

KEPT static void deep(unsigned n)
{
	if (n)
		deep(n - 1);
	sink++;
}

KEPT static void thrower(unsigned n)
{
	if (n)
		thrower(n - 1);
	else if (sink != UINT64_MAX) /* which the compiler cannot know */
		longjmp(back, 1);
	sink++;
}

KEPT static void catcher(void)
{
	if (setjmp(back) == 0)
		thrower(10);
	leaf();
}

KEPT static void *worker(void *times)
{
	middle((int)(intptr_t)times);
	return NULL;
}

KEPT static void in_handler(void)
{
	sink++;
}

static void on_timer(int signo)
{
	(void)signo;
	in_handler();
}

static void calls(void)
{
	for (int i = 0; i < 10; i++)
		middle(100);
	leaf();
	slow_leaf();
	fibonacci(15);
	even(9);
}

static void threads(int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, worker, (void *)(intptr_t)10) != 0)
			exit(3);
		pthread_join(thread, NULL);
	}
}

static void at_once(int count)
{
	pthread_t *all = calloc((size_t)count, sizeof *all);
	pthread_attr_t small;

	if (!all || pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, 65536) != 0)
		exit(3);
	for (int i = 0; i < count; i++)
		if (pthread_create(&all[i], &small, worker, (void *)(intptr_t)10) != 0)
			exit(3);
	for (int i = 0; i < count; i++)
		pthread_join(all[i], NULL);
	free(all);
}

static void jumps(void)
{
	for (int i = 0; i < 100; i++)
		catcher();
	leaf();
}

/* All from one place, which longjmp comes back to. */
static void jumps_in_a_loop(void)
{
	for (volatile unsigned i = 0; i < 1000; i++)
		if (setjmp(back) == 0)
			thrower(1);
	leaf();
}

KEPT static void *until_cancelled(void *unused)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		middle(10);
	return unused;
}

static void cancelled(int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, until_cancelled, NULL) != 0)
			exit(3);
		usleep(1000);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
}

static volatile pid_t last_child = 1;
static volatile int forks;

/* The child has no room for a recording of its own, and goes back into what was interrupted. */
BARE static void fork_on_timer(int signo)
{
	const struct rlimit little = {4096, 4096};
	int status;

	(void)signo;
	if (last_child == 0)
		return;
	last_child = fork();
	if (last_child == 0) {
		setrlimit(RLIMIT_FSIZE, &little);
		leaf();
		return;
	}
	forks++;
	if (waitpid(last_child, &status, 0) != last_child || !WIFEXITED(status))
		exit(3);
}

static void forks_in_handlers(int count)
{
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = fork_on_timer, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (forks < count) {
		middle(10);
		if (last_child == 0)
			_exit(0);
	}
	setitimer(ITIMER_REAL, &never, NULL);
}

static void handlers(void)
{
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 200; i++)
		middle(10000);
	setitimer(ITIMER_REAL, &never, NULL);
}

static void leaving(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0) {
			middle(7);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void children(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0) {
			middle(7);
			exit(0);
		}
		waitpid(child, NULL, 0);
	}
	middle(5);
}

static void killed(void)
{
	middle(50);
	slow_leaf();
	kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "calls";
	int count = argc > 2 ? atoi(argv[2]) : 100;

	if (strcmp(way, "calls") == 0)
		calls();
	else if (strcmp(way, "threads") == 0)
		threads(count);
	else if (strcmp(way, "at-once") == 0)
		at_once(count);
	else if (strcmp(way, "deep") == 0)
		deep((unsigned)count - 1);
	else if (strcmp(way, "jumps") == 0)
		jumps();
	else if (strcmp(way, "jumps-in-a-loop") == 0)
		jumps_in_a_loop();
	else if (strcmp(way, "cancelled") == 0)
		cancelled(count);
	else if (strcmp(way, "forks-in-handlers") == 0)
		forks_in_handlers(count);
	else if (strcmp(way, "handlers") == 0)
		handlers();
	else if (strcmp(way, "children") == 0)
		children();
	else if (strcmp(way, "leaving") == 0)
		leaving(count);
	else if (strcmp(way, "killed") == 0)
		killed();
	else
		return 2;
	puts("done");
	return 0;
}
