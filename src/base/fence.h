/* What a child process does before it gives a hostile or broken file to a library: whatever the library then does, it
 * costs a limited amount of time and memory, says nothing, and ends with its parent. It knows no file. */
#ifndef ASSAY_BASE_FENCE_H
#define ASSAY_BASE_FENCE_H

#include <stdint.h>
#include <sys/types.h>

/* In the child, with its parent's id. memory: bytes, beside those that it has already. After cpu_s seconds of CPU time
 * it dies of SIGXCPU. */
void fence_in(pid_t parent, uint64_t memory, unsigned cpu_s);

/* In the child: so many seconds from now on. */
void fence_more_cpu(unsigned cpu_s);

/* In the parent: how the child ended, as of waitpid(2); 0 where somebody else has reaped it. */
int fence_wait(pid_t child);

#endif
