/* One file of pressure stall information, of the machine or of a cgroup. */
#ifndef ASSAY_SOURCE_PSI_H
#define ASSAY_SOURCE_PSI_H

#include <sys/types.h>

struct psi {
	double some_s, full_s; /* running totals in seconds; NaN where the file does not have them */
};

/* Reads it anew. 1 where it holds at least one total, 0 where none, or -errno. */
ssize_t psi_read(int fd, struct psi *ret);

#endif
