/* Names of code made at run time, from the perf-PID.map that language runtimes write for perf. */
#ifndef ASSAY_SYMBOL_JIT_MAP_H
#define ASSAY_SYMBOL_JIT_MAP_H

#include "symbol/symbols_plugin.h"

/* Looks for FOLDER/perf-PID.map. The sink gets the functions that stand at the addresses (ascending, each once) and a
 * note. Only a regular file of this user is believed. Fails as the sink does, or when out of memory. */
int jit_map_resolve(const char *folder, int pid, const uint64_t *addresses, size_t count,
		    const struct symbols_sink *sink, struct error *err);

/* The same from the text of a map. */
int jit_map_parse(const char *text, size_t length, const uint64_t *addresses, size_t count,
		  const struct symbols_sink *sink, struct error *err);

#endif
