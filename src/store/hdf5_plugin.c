#include "store/hdf5_plugin.h"

#include <time.h>

#include "base/plugin.h"

#define PLUGIN_FILE "assay-hdf5.so"

const void *hdf5_plugin_table(const char *symbol, unsigned version, struct error *err)
{
	return plugin_table(PLUGIN_FILE, symbol, version, err);
}

void size_signal_hold(struct size_signal *s)
{
	sigset_t one, pending;

	sigemptyset(&one);
	sigaddset(&one, SIGXFSZ);
	s->pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
	pthread_sigmask(SIG_BLOCK, &one, &s->mask);
}

void size_signal_release(struct size_signal *s)
{
	const struct timespec at_once = {0};
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGXFSZ);
	while (!s->pending && sigtimedwait(&one, NULL, &at_once) == SIGXFSZ)
		;
	pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
}
