/* What the programs do that tests of the library record. */
#ifndef ASSAY_TESTS_REGION_CALLS_H
#define ASSAY_TESTS_REGION_CALLS_H

#include <assay.h>
#include <sys/wait.h>
#include <unistd.h>

static struct assay_region a = ASSAY_REGION("a"), b = ASSAY_REGION("b");

static inline void call(struct assay_region *region, long times)
{
	while (times-- > 0) {
		assay_region_begin(region);
		assay_region_end(region);
	}
}

/* A child of a test's child: its failure is ours. */
static inline void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(11);
}

#endif
