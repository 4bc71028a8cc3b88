#include "cmd/interrupt.h"

#include <signal.h>
#include <stdint.h>

#include "base/clock.h"

volatile int interrupted_by;
static volatile int64_t interrupted_at;

static void on_signal(int signo)
{
	int64_t now = clock_mono_ns();

	if (!interrupted_by) {
		interrupted_by = signo;
		interrupted_at = now;
	} else if (now - interrupted_at > NS_PER_S) {
		signal(signo, SIG_DFL);
		raise(signo);
	}
}

void interrupt_catch(int flags)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct sigaction before, catching = {.sa_handler = on_signal, .sa_flags = flags};

		sigaction(signals[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(signals[i], &catching, NULL);
	}
}

void interrupt_die(void)
{
	sigset_t only;

	signal(SIGINT, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, SIGINT);
	raise(SIGINT);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
}
