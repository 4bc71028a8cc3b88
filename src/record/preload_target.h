/* The sampler inside the target, seen from outside: what environment it needs, and which process a ring file is of. */
#ifndef ASSAY_RECORD_PRELOAD_TARGET_H
#define ASSAY_RECORD_PRELOAD_TARGET_H

#include <stdbool.h>

#include "base/error.h"
#include "model/process.h"
#include "record/rings.h"

/* The sampler library's path, owned; NULL with *err where it is missing or cannot be preloaded from where it is. */
char *preload_find_library(struct error *err);

/* A library's path as LD_PRELOAD takes it, owned; NULL with *err where it cannot be preloaded from there. */
char *preload_check(const char *found, const char *name, struct error *err);

/* What has a library preloaded, and one or two lines more (`second` may be NULL); as below. */
char **preload_lines(const char *library, const char *const *env, const char *first, const char *second);

/* "K=V" lines to set, ends with NULL, owned; NULL when out of memory. `env` (may be NULL) goes before the caller's own
 * environment where both set what is added to. */
char **preload_environment(const char *library, const char *folder, unsigned hz, const char *const *env);
void preload_environment_free(char **environment); /* NULL accepted */

/* The process as seen from here, which may have another pid for itself, and its parent; 0: not known, or gone. */
int preload_find_pid(const struct ring *ring, const struct process_table *table, int *ret_ppid);

/* Whether the table has it as living. */
bool preload_in_table(const struct ring *ring, int pid, const struct process_table *table);

/* Whether it lives, by a look into /proc; pid 0 is gone. */
bool preload_lives(const struct ring *ring, int pid);

#endif
