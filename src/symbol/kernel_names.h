/* Names of kernel code from /proc/kallsyms, where the kernel shows its addresses. */
#ifndef ASSAY_SYMBOL_KERNEL_NAMES_H
#define ASSAY_SYMBOL_KERNEL_NAMES_H

#include "symbol/symbols_plugin.h"

/* As jit_map_resolve. The table has no sizes: a name counts up to the next symbol. */
int kernel_names_resolve(const uint64_t *addresses, size_t count, const struct symbols_sink *sink, struct error *err);

#endif
