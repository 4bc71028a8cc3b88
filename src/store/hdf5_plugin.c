#include "store/hdf5_plugin.h"

#include <dlfcn.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define PLUGIN_FILE "assay-hdf5.so"

const void *hdf5_plugin_table(const char *symbol, unsigned version, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_find_companion(PLUGIN_FILE);
	const unsigned *table;
	void *library;

	if (!path) {
		error_set(err, "%s is neither beside the program nor in %s", PLUGIN_FILE, ASSAY_PLUGIN_DIR);
		return NULL;
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		error_set(err, "%s cannot be loaded: %s", path, dlerror());
		return NULL;
	}
	table = dlsym(library, symbol);
	if (!table || *table != version) {
		error_set(err, "%s is of another version of this program", path);
		return NULL;
	}
	return table;
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
