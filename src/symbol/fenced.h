/* Calls the plug-in in a child process: what a hostile or broken file does to the libraries that read it ends there,
 * and so does their memory. */
#ifndef ASSAY_SYMBOL_FENCED_H
#define ASSAY_SYMBOL_FENCED_H

#include "symbol/symbols_plugin.h"

enum fenced {
	FENCED_FAILED = -1,  /* no child could be started, or the sink failed: *err */
	FENCED_DONE = 0,
	FENCED_BROKE = 1,    /* the child crashed, took too long or too much memory: *err says which, as "it ..." */
	FENCED_STOPPED = 2,  /* *hurry was set */
};

/* `sink` is called here, in the caller's process, with what the child sends; none of that is believed to be complete or
 * to make sense. Its `alive` may be NULL. */
enum fenced fenced_resolve(const struct symbols_plugin *plugin, const struct symbols_request *request,
			   const struct symbols_sink *sink, const volatile int *hurry, struct error *err);

#endif
