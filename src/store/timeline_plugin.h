/* What the plug-in assay-hdf5.so offers: writing one timeline.h5, without a word about where the points come from.
 *
 * Between the program (timeline_file.c, which loads it) and the plug-in (timeline_hdf5.c, the only file that knows
 * HDF5). Texts are valid UTF-8. Functions return 0, or -1 with *err, a sentence that does not name the file; after a
 * failure only `abandon` may follow. */
#ifndef ASSAY_STORE_TIMELINE_PLUGIN_H
#define ASSAY_STORE_TIMELINE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TIMELINE_PLUGIN_SYMBOL "assay_timeline_plugin"
#define TIMELINE_PLUGIN_VERSION 1 /* of this struct; a plug-in left over from another build is refused */

struct timeline_h5;

/* One series; `kind` is "gauge" or "counter". All borrowed for the call. */
struct timeline_h5_series {
	const char *name, *unit, *source, *scope, *kind;
};

struct timeline_plugin {
	unsigned version;

	/* Loads the library; *text says which one. Fails where it is not the one that the plug-in was built for. */
	int (*start)(char *text, size_t size, struct error *err);

	/* A new file; one that is there is overwritten. */
	int (*create)(const char *path, struct timeline_h5 **ret, struct error *err);

	/* Attributes of the root group. */
	int (*put_text)(struct timeline_h5 *h5, const char *name, const char *value, struct error *err);
	int (*put_integer)(struct timeline_h5 *h5, const char *name, int64_t value, struct error *err);

	/* Series are numbered 0, 1, 2, ... in the order of definition; of two that have one name the later is NAME#ID.
	 * Points are buffered and written in chunks. */
	int (*define)(struct timeline_h5 *h5, const struct timeline_h5_series *series, struct error *err);
	int (*append)(struct timeline_h5 *h5, uint32_t id, int64_t t, double value, struct error *err);

	/* Writes what is buffered of a series, after its last point. */
	int (*end_series)(struct timeline_h5 *h5, uint32_t id, struct error *err);

	/* Closes the file and frees *h5, also when it fails. */
	int (*finish)(struct timeline_h5 *h5, struct error *err);

	/* Frees *h5 (NULL accepted); the file is left half-written, for the caller to remove. */
	void (*abandon)(struct timeline_h5 *h5);
};

#endif
