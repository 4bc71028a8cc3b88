/* What is executable in a process's address space, from /proc/PID/maps: for code that nobody announced. */
#ifndef ASSAY_RECORD_CODE_MAPS_H
#define ASSAY_RECORD_CODE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_map {
	uint64_t start, end, offset, inode;
	char *path; /* owned; "" for memory without a file; "[vdso]" and its like as they are */
	/* For the reader's use. */
	bool resolved;
	uint32_t module;
	uint64_t bias;
};

struct code_maps {
	struct code_map *items; /* in the order of addresses */
	size_t count, room;
};

void code_maps_init(struct code_maps *m);
void code_maps_release(struct code_maps *m);

/* Replaces *m by what the process has now. Returns 0, or -1 where that cannot be read (then *m is empty). A table that
 * is too large is cut. */
int code_maps_read(struct code_maps *m, int pid);

/* The same, only while the process has a file of that name (the last part of its path) mapped: since a mapping does not
 * outlive an exec, the table is then that of the program which made it. */
int code_maps_read_of(struct code_maps *m, int pid, const char *name);

/* The same of a text in the form of that file; for tests. */
int code_maps_parse(struct code_maps *m, char *text);

struct code_map *code_maps_find(const struct code_maps *m, uint64_t address);

#endif
