/* A result file that is written piece by piece: beside its target, and renamed when it is complete, so that an old good
 * file survives any failure. For files that fit in memory fs_write_file is simpler. */
#ifndef ASSAY_BASE_REPLACE_H
#define ASSAY_BASE_REPLACE_H

#include <stdio.h>

#include "base/error.h"

struct replacement {
	FILE *out; /* write here */
	char *path, *beside; /* owned; beside NULL: the target is no regular file and is written to itself */
	char *buffer;
};

void replacement_init(struct replacement *r);

/* Removes what was not committed. */
void replacement_release(struct replacement *r);

/* Links are followed; what is there and no regular file (a pipe, /dev/null) is written to instead. */
int replacement_open(struct replacement *r, const char *path, struct error *err);

/* Looks whether all has been written, closes and renames. */
int replacement_commit(struct replacement *r, struct error *err);

#endif
