/* The loaded module that an address belongs to, found without a lock. Reads only what the module's own program headers
 * say can be read; runs inside a signal handler. */
#ifndef ASSAY_PRELOAD_UNWIND_MODULE_H
#define ASSAY_PRELOAD_UNWIND_MODULE_H

#include "preload/unwind.h"
#include "preload/unwind_tables.h"

/* Notes where the program's own headers are. Before the first search, outside handlers. */
void unwind_module_init(void);

/* Returns false where `at` lies in no module. A module whose headers cannot be found has no segments. */
bool unwind_module_find(uintptr_t at, struct unwind_image *ret_image, struct unwind_module *ret_module);

/* Finds the build-id of a module that was found. */
void unwind_module_identify(const struct unwind_image *image, struct unwind_module *module);

#endif
