/* A set of pids: one bit each, so that the thousands of processes of a busy machine cost next to nothing. */
#ifndef ASSAY_EXEC_PIDSET_H
#define ASSAY_EXEC_PIDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pidset {
	uint64_t *words;
	size_t count; /* of words; pids past them are not in the set */
};

void pidset_init(struct pidset *s);
void pidset_release(struct pidset *s);

bool pidset_has(const struct pidset *s, int pid);

/* False when out of memory: the pid is not in the set then. */
bool pidset_add(struct pidset *s, int pid);
void pidset_remove(struct pidset *s, int pid);
void pidset_clear(struct pidset *s);

/* Removes what is not in `other`. */
void pidset_keep_common(struct pidset *s, const struct pidset *other);

#endif
