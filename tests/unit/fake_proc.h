/* A made-up /proc and /sys: the folders "proc" and "sys" of the scratch folder. */
#ifndef ASSAY_TESTS_FAKE_PROC_H
#define ASSAY_TESTS_FAKE_PROC_H

#include <sys/stat.h>

#include "base/procfs.h"
#include "scratch.h"

/* Writes DIR/PATH below the scratch folder, and the folders above it. */
static inline void make_file(const char *path, const char *text)
{
	char whole[512];
	FILE *f;

	snprintf(whole, sizeof whole, "%s/%s", scratch_dir, path);
	for (char *slash = whole + strlen(scratch_dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	f = fopen(whole, "we");
	if (!f)
		fail_msg("%s cannot be made", whole);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline int fake_roots(void **state)
{
	static char proc[300], sys[300];

	if (scratch_make(state) < 0)
		return -1;
	snprintf(proc, sizeof proc, "%s/proc", scratch_dir);
	snprintf(sys, sizeof sys, "%s/sys", scratch_dir);
	procfs_set_roots(proc, sys);
	return 0;
}

static inline int real_roots(void **state)
{
	procfs_set_roots(NULL, NULL);
	return scratch_remove(state);
}

#endif
