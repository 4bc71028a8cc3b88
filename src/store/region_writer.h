/* Writing a file of regions: layout 2 (columns, compressed), streamed in the order of the file; and layout 1, for old
 * readers. Written beside its place and renamed, so a good file that is there survives every failure. */
#ifndef ASSAY_STORE_REGION_WRITER_H
#define ASSAY_STORE_REGION_WRITER_H

#include "model/regions.h"
#include "store/region_file.h"

/* Whether files of regions can be read and written here, by which library or why not; for `doctor`. */
int region_writer_available(char *version, size_t size, struct error *err);

struct region_writer;

/* columns: bits of the optional columns that the calls will have. */
int region_writer_new(const char *path, unsigned columns, struct region_writer **ret, struct error *err);

/* The next n calls, in the order of the parts. Compressed and written by threads of the writer. A column that was not
 * announced is NULL. */
int region_writer_add(struct region_writer *w, const int64_t *const columns[REGION_COLUMNS], size_t n,
		      struct error *err);

/* The index (r: parts with first and count that cover exactly what was added; summaries of their calls are made by the
 * writer, merged with those that `summarised` parts bring), threads, facts, troubles, notes; then fsync and rename. */
int region_writer_commit(struct region_writer *w, const struct regions *r, struct error *err);

/* Without a commit: nothing is left. NULL accepted. */
void region_writer_free(struct region_writer *w);
void region_writer_cleanup(struct region_writer **w);

/* All of a file as layout 1. Regions whose names layout 1 cannot hold ("", ".") are an error; what it cannot say
 * (threads, parents, dropped calls) is lost, and *ret_lost says so in a sentence (owned, NULL: nothing). */
int region_layout1_write(struct region_file *f, const char *path, char **ret_lost, struct error *err);

#endif
