/* A folder of its own for each test: `cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)`. */
#ifndef ASSAY_TESTS_SCRATCH_H
#define ASSAY_TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch_dir[256];

static inline int scratch_make(void **state)
{
	const char *parent = getenv("TMPDIR");

	(void)state;
	snprintf(scratch_dir, sizeof scratch_dir, "%s/assay-test-XXXXXX", parent && *parent ? parent : "/tmp");
	return mkdtemp(scratch_dir) ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static inline int scratch_remove(void **state)
{
	(void)state;
	return nftw(scratch_dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "DIR/NAME"; valid until the fourth call after it. */
static inline const char *scratch_path(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", scratch_dir, name);
	return path;
}

#endif
