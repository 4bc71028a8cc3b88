/* What the plug-in assay-hdf5.so offers for files of regions: reading layouts 1 to 3, writing 2 and 1.
 *
 * Between the program (region_fence.c, region_writer.c, region_layout1.c) and the plug-in (region_hdf5*.c, which alone
 * know HDF5). Functions return 0, or -1 with *err, a sentence that does not name the file. */
#ifndef ASSAY_STORE_REGION_PLUGIN_H
#define ASSAY_STORE_REGION_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "store/region_stored.h"

#define REGION_PLUGIN_SYMBOL "assay_region_plugin"
#define REGION_PLUGIN_VERSION 2 /* of this struct; a plug-in left over from another build is refused */

/* More of them in a file is an error to those who read it, so nobody writes them. A histogram takes 4 KiB. */
#define REGION_NAMES_MAX (UINT64_C(16) << 20)
#define REGION_ROWS_MAX (UINT64_C(1) << 20) /* of ranks, notes and troubles, each */
#define REGION_SUMMARISED_MAX (UINT64_C(1) << 18)
#define REGION_FACTS_MAX 4096u

struct region_h5;     /* a file that is read */
struct region_h5_out; /* a file of layout 2 that is written */
struct region_h5_old; /* a file of layout 1 that is written */

struct region_plugin {
	unsigned version;

	/* Loads the library; *text says which one. Fails where it is not the one that the plug-in was built for. */
	int (*start)(char *text, size_t size, struct error *err);

	/* Reading, by one thread, and behind a fence: the library itself crashes on some files. `open` fills *regions
	 * and *stored (both initialised; but for the path), which must stay where they are until `close`. */
	int (*open)(const char *path, struct regions *regions, struct region_stored *stored, struct region_h5 **ret,
		    struct error *err);
	void (*close)(struct region_h5 *h5); /* NULL accepted */

	/* The caller has looked that these rows and this column are there. */
	int (*read)(struct region_h5 *h5, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		    struct error *err);

	/* Layout 2. `chunk` rows of a column are written at once, by any thread: compressed by it, and then written
	 * under the library's lock. The last chunk of a column is given whole, too, what is behind its end as zeros. */
	int (*create)(const char *path, unsigned columns, struct region_h5_out **ret, struct error *err);
	size_t chunk;
	int (*write)(struct region_h5_out *out, enum region_column column, uint64_t index, const int64_t *rows,
		     struct error *err);

	/* All chunks are written: these columns have so many rows, and lie as *stored (initialised) says. */
	int (*written)(struct region_h5_out *out, uint64_t rows, struct region_stored *stored, struct error *err);

	/* The index, with summaries[i] for all calls of part i; closes the file and frees *out, also when it fails. */
	int (*finish)(struct region_h5_out *out, const struct regions *regions, const struct region_summary *summaries,
		      struct error *err);
	void (*abandon)(struct region_h5_out *out); /* NULL accepted; leaves half a file, for the caller to remove */

	/* Layout 1: the facts and ranks; then part by part its whole columns (gpu: NULL where it has none). */
	int (*old_create)(const char *path, const struct regions *regions, struct region_h5_old **ret,
			  struct error *err);
	int (*old_begin)(struct region_h5_old *old, const struct region_part *part, const char *name, int gpu,
			 struct error *err);
	int (*old_add)(struct region_h5_old *old, uint64_t at, uint64_t count, const int64_t *start,
		       const int64_t *end, const int64_t *gpu, struct error *err);
	int (*old_finish)(struct region_h5_old *old, struct error *err); /* also frees it */
	void (*old_abandon)(struct region_h5_old *old);
};

#endif
