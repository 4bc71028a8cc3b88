/* truth_signals SECONDS: SIGALRM about 1,000 times a second, with a handler that burns CPU time beside the main loop.
 * The gaps between signals are random: with equal ones the handler could keep step with the ticks of a timer. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "truth.h"

static int64_t handler_ns, all_ns;
static volatile sig_atomic_t calls;
static uint64_t seed = 1;

static void next_alarm(void)
{
	struct itimerval timer = {.it_value.tv_usec = 500 + (suseconds_t)(piece_ns(&seed) % 1000)};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static APART void burn_in_handler(int number)
{
	int64_t began = cpu_ns(), now = began;
	uint64_t x = (uint64_t)number;

	while (now < began + 300000) {
		for (int i = 0; i < 10000; i++)
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		__asm__ volatile("" : : "r"(x));
		now = cpu_ns();
	}
	handler_ns += now - began;
	calls = calls + 1;
	next_alarm();
}

static APART void burn_in_loop(int64_t ns)
{
	BURN(ns, &all_ns);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = burn_in_handler, .sa_flags = SA_RESTART};
	int64_t ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9);

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGALRM, &action, NULL) != 0)
		return 3;
	next_alarm();
	burn_in_loop(ns);
	signal(SIGALRM, SIG_IGN);
	tell("burn_in_handler", handler_ns);
	tell("burn_in_loop", all_ns - handler_ns);
	return calls > 100 ? 0 : 3;
}
