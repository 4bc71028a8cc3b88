/* Plug-ins of this program: libraries of its own that bring a heavy dependency along and are loaded on first use. Each
 * offers one table whose first member is an unsigned version. */
#ifndef ASSAY_BASE_PLUGIN_H
#define ASSAY_BASE_PLUGIN_H

#include "base/error.h"

/* The table that the plug-in `file` offers as `symbol`, or NULL: the sentence begins with the file. A plug-in left over
 * from another build has another version and is refused. It stays loaded: what its libraries keep for the program's
 * whole life would point nowhere without it. */
const void *plugin_table(const char *file, const char *symbol, unsigned version, struct error *err);

#endif
