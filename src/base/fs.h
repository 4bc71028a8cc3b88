/* Files: read whole, write safely, make folders, find what was installed beside the program.
 *
 * Every error names the path and what the system said. */
#ifndef ASSAY_BASE_FS_H
#define ASSAY_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Appends the whole file to *ret. More than `limit` bytes is an error, so that no hostile file can fill the memory. */
int fs_read_file(const char *path, size_t limit, struct buf *ret, struct error *err);

/* Replaces `path` with these bytes: written beside it and renamed, so that an old good file survives any failure. Links
 * are followed; what is there and no regular file (a pipe, /dev/null) is written to instead. */
int fs_write_file(const char *path, const void *bytes, size_t length, struct error *err);

/* Makes the folder and its missing parents; one that is there already is fine. */
int fs_make_dirs(const char *path, struct error *err);

bool fs_exists(const char *path);
bool fs_is_dir(const char *path);

/* 1 if the folder holds nothing but . and .., 0 if it holds something, -1 with *err if it cannot be read. */
int fs_dir_is_empty(const char *path, struct error *err);

/* A file for intermediate results, below $TMPDIR or /tmp, without a name: gone when it is closed. Returns the
 * descriptor, or -errno. */
int fs_open_unnamed(void);

/* write(2) until all is written; returns 0 or -errno. */
int fs_write_all(int fd, const void *bytes, size_t length);

/* "DIR/NAME", owned by the caller; NULL when out of memory. */
char *fs_join(const char *dir, const char *name);

/* The absolute form of a path, which need not exist; owned by the caller, NULL when out of memory or without a cwd. */
char *fs_absolute(const char *path);

/* A file that was built or installed beside the program (a plug-in, the page's script): looks in the program's own
 * folder, then in PREFIX/lib.../assay. Returns an owned path, or NULL where there is none. Not for several threads. */
char *fs_find_companion(const char *name);

#endif
