/* What the children of this process that it has reaped read and wrote through system calls.
 *
 * The kernel adds a child's counters to its parent's when the parent waits for it, and wait4(2) tells only those of the
 * storage layer. /proc/self/io less what this process's own threads did is the rest. It needs no rights, where the file
 * of a process that has ended is closed to all but root. No thread of this process may end before it is asked. */
#ifndef ASSAY_EXEC_CHILDREN_IO_H
#define ASSAY_EXEC_CHILDREN_IO_H

#include <stdint.h>

struct children_io {
	int64_t read_chars, write_chars; /* bytes */
	int64_t read_calls, write_calls;
};

/* The sums over all children that were reaped so far; all -1 where they cannot be read. */
void children_io_read(struct children_io *ret);

#endif
