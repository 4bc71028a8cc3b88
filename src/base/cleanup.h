/* CLEANUP(fn): runs fn(&variable) when the variable leaves its scope. */
#ifndef ASSAY_BASE_CLEANUP_H
#define ASSAY_BASE_CLEANUP_H

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* For `CLEANUP(free_cleanup) char *text`: frees *pointer, whatever its type. */
void free_cleanup(void *pointer);

/* For `CLEANUP(fd_cleanup) int fd = -1`: closes where not negative. */
void fd_cleanup(int *fd);

#endif
