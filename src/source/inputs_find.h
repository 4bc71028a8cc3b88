/* Which files a target reads: those that its command line names, and those that its processes have opened or mapped.
 *
 * Only large files are kept, and no more of them than their paths. It never opens a file, and asks a network file
 * system for nothing that the kernel does not know already. */
#ifndef ASSAY_SOURCE_INPUTS_FIND_H
#define ASSAY_SOURCE_INPUTS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/process.h"
#include "model/warnings.h"

#define INPUTS_MAX 64

struct input {
	char *path;	    /* absolute, of any bytes, owned */
	uint64_t device[2]; /* major, minor */
	uint64_t inode;
	bool opened; /* found open, not named */
};

/* All 0 in the beginning. */
struct inputs {
	struct input items[INPUTS_MAX];
	size_t count;
	size_t at;  /* the process that the next inputs_opened begins with */
	char *maps; /* room for the maps of a process, owned */
};

void inputs_release(struct inputs *l);

/* Regular files of at least 1 MiB that are words of the command line (behind the first) or stand behind the = of one,
 * and those of a model (by the ends of their names) that lie in a folder named so. */
void inputs_named(struct inputs *l, char *const *argv);

/* Adds regular files of at least 16 MiB that processes have open for reading, or mapped and not to be run. One call
 * looks at some of the processes, the next one at those after them. */
void inputs_opened(struct inputs *l, const struct process_table *processes, struct warnings *warnings);

#endif
