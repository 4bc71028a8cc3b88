/* How large a buffer must be to lie outside of the caches, and how large it may be: the last-level cache from /sys, the
 * memory that this process can still get from /proc and its cgroups.
 *
 * It allocates nothing and decides nothing. */
#ifndef ASSAY_EXEC_MEMORY_ROOM_H
#define ASSAY_EXEC_MEMORY_ROOM_H

struct last_cache {
	double largest, all; /* bytes: the largest instance, all instances together; 0: unknown */
};

void last_cache_read(struct last_cache *ret);

/* Bytes that this process can get without anything being swapped: of the machine, and of the limits of its cgroups less
 * what is used there (pages of files that are not in use do not count as used). NaN where nothing is known. */
double memory_room_read(void);

#endif
