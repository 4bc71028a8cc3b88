/* Inside the plug-in: files of regions. region_hdf5.c tells the layouts apart, region_hdf5_old.c knows layout 1,
 * region_hdf5_index.c what layouts 2 and 3 say of their calls, region_hdf5_read.c finds where calls lie and reads them
 * where that is not simple, and region_hdf5_safe.c opens what is in a file without following it anywhere else.
 *
 * Only the program's fence (region_fence.c) calls what reads: the library crashes on some files. All is called with the
 * library's lock held. */
#ifndef ASSAY_STORE_REGION_HDF5_H
#define ASSAY_STORE_REGION_HDF5_H

#include <stdbool.h>
#include <stdint.h>

#include "model/regions.h"
#include "store/hdf5_common.h"
#include "store/region_plugin.h"

#define REGION_H5_CHUNK 65536u /* rows of a chunk that is written */

struct region_h5 {
	hid_t file;
	uint64_t file_size;
	bool raw; /* addresses in the file count from its beginning, so data can be read past the library */
	const struct regions *regions;
	struct region_stored *stored;
	unsigned layout;
	hid_t sets[REGION_COLUMNS]; /* layouts 2 and 3 */
	/* Layout 1: the sets of the part that was read last. */
	size_t open_part;
	hid_t open_sets[3];
};

/* Opens a group or data set below `at`: "a/b" with hard links alone. HDF5's other links lead out of the file, or in
 * circles. Returns an id, or -1 with *err; 0 from h5_has where there is none of this name. */
int h5_has(hid_t at, const char *path, struct error *err);
hid_t h5_open_group(hid_t at, const char *path, struct error *err);

/* A data set of one dimension that lies in this file alone. rows NULL: any number; *rows 0: it is told; else it must
 * have as many. */
hid_t h5_open_set(hid_t at, const char *path, hsize_t *rows, struct error *err);

/* Whether so many rows of `size` bytes can be in what the set occupies: nobody compresses better than 100,000 to 1. */
int h5_plausible(hid_t set, const char *path, hsize_t rows, struct error *err);

/* Whole columns of numbers, `type` in memory; the set must have that number of rows. */
int h5_read_numbers(hid_t at, const char *path, hsize_t rows, hid_t type, void *out, struct error *err);

/* Whether a set holds whole numbers of at most 8 bytes. */
int h5_whole_numbers(hid_t set, const char *path, struct error *err);

/* Texts of fixed or variable length, as valid UTF-8, given one by one. *budget: bytes that may still be read. */
int h5_read_texts(hid_t at, const char *path, hsize_t rows, uint64_t *budget,
		  int (*text)(void *context, hsize_t row, char *text, struct error *err), void *context,
		  struct error *err);

/* Attributes. 0: it is not there. 1: it is. Numbers as text where it is one; the text is owned. */
int h5_attribute_integer(hid_t at, const char *name, int64_t *ret, struct error *err);
int h5_attribute_text(hid_t at, const char *name, char **ret, struct error *err);

/* A name of an object as valid UTF-8, owned; NULL when out of memory. */
char *h5_clean_name(const char *name);

/* Layout 1, layouts 2 and 3: fill *r. */
int region_h5_index_old(struct region_h5 *h5, struct regions *r, struct error *err);
int region_h5_index(struct region_h5 *h5, struct regions *r, struct error *err);

/* What assay adds to layout 2. budget: bytes of texts. */
int region_h5_index_own(struct region_h5 *h5, struct regions *r, uint64_t budget, struct error *err);

/* Adds ranks, and sorts them first: in the order that a hostile file may have, each would move all the others. */
int h5_add_ranks(struct regions *r, int64_t *ranks, size_t count, struct error *err);

/* Statistics as a compound in memory; a column of them, *ret owned. */
hid_t region_h5_summary_type(void);
int h5_read_summaries(hid_t at, const char *path, hsize_t rows, struct region_summary **ret, struct error *err);

/* "rank12/regions/NAME", owned; NULL when out of memory. */
char *region_h5_old_path(const struct regions *r, const struct region_part *part);

/* Where so many rows of a set lie; REGION_PIECE_FENCED where that is not simple. Its chunks are owned. */
int region_h5_piece(hid_t set, hsize_t rows, struct region_piece *ret, struct error *err);

int region_h5_read(struct region_h5 *h5, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		   struct error *err);

/* region_hdf5_write.c */
int region_h5_create(const char *path, unsigned columns, struct region_h5_out **ret, struct error *err);
int region_h5_write(struct region_h5_out *out, enum region_column column, uint64_t index, const int64_t *rows,
		    struct error *err);
int region_h5_written(struct region_h5_out *out, uint64_t rows, struct region_stored *stored, struct error *err);
int region_h5_finish(struct region_h5_out *out, const struct regions *regions, const struct region_summary *summaries,
		     struct error *err);
void region_h5_abandon(struct region_h5_out *out);

/* region_hdf5_put_index.c */
int region_h5_put_index(hid_t file, const struct regions *r, const struct region_summary *summaries, struct error *err);

/* region_hdf5_put_old.c */
int region_h5_old_create(const char *path, const struct regions *regions, struct region_h5_old **ret,
			 struct error *err);
int region_h5_old_begin(struct region_h5_old *old, const struct region_part *part, const char *name, int gpu,
			struct error *err);
int region_h5_old_add(struct region_h5_old *old, uint64_t at, uint64_t count, const int64_t *start, const int64_t *end,
		      const int64_t *gpu, struct error *err);
int region_h5_old_finish(struct region_h5_old *old, struct error *err);
void region_h5_old_abandon(struct region_h5_old *old);

#endif
