/* Says in the ring file which code lies where: see sampler_module. */
#ifndef ASSAY_PRELOAD_MODULES_H
#define ASSAY_PRELOAD_MODULES_H

#include "preload/unwind.h"

/* For unwind_options.met: `context` points to the time of the sample (int64_t). Runs in the handler. */
void modules_met(void *context, const struct unwind_module *module);

/* In a forked child: nothing has been said yet in the new file. */
void modules_forget(void);

#endif
