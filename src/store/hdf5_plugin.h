/* Loads the plug-in assay-hdf5.so, the only place that knows HDF5: on first use, so that other commands start without
 * it. The plug-in stays loaded: HDF5 cannot be unloaded, and loading it again costs nothing. */
#ifndef ASSAY_STORE_HDF5_PLUGIN_H
#define ASSAY_STORE_HDF5_PLUGIN_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

/* The plug-in's table of that name, or NULL with *err. Each table begins with its version, an unsigned: one that a
 * plug-in of another build left is refused. Not for several threads. */
const void *hdf5_plugin_table(const char *symbol, unsigned version, struct error *err);

/* While it is held, a limit on file sizes (RLIMIT_FSIZE) fails a write of this thread instead of ending the program. */
struct size_signal {
	sigset_t mask;
	bool pending;
};

void size_signal_hold(struct size_signal *s);
void size_signal_release(struct size_signal *s);

#endif
