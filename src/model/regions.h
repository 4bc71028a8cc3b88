/* What a file of regions holds, without its calls: names, ranks, threads, facts about the run.
 *
 * Plain data, of any of the file layouts (docs/formats.md); it knows no file. Times are ns of rank 0's CLOCK_MONOTONIC.
 * A "part" is one region on one rank. The calls of all parts lie in columns of int64_t, in the order of the parts. */
#ifndef ASSAY_MODEL_REGIONS_H
#define ASSAY_MODEL_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define REGIONS_UNKNOWN (-1) /* in columns and members that may be unknown */

#define REGION_BUCKET_COUNT 512 /* of a part's histogram */

enum region_column {
	REGION_START = 0,
	REGION_END = 1,
	REGION_GPU = 2,    /* ns on a GPU; -1: none */
	REGION_CALL = 3,   /* unique within a rank */
	REGION_PARENT = 4, /* the call around it, -1: none */
	REGION_THREAD = 5, /* thread_table index within its rank, -1 */
	REGION_TASK = 6,   /* -1 */
	REGION_AWAIT = 7,  /* ns */
	REGION_COLUMNS = 8,
};

struct region_summary {
	int64_t total, minimum, maximum; /* of durations */
	int64_t first, last;             /* duration of the first and the last call */
	int64_t start_minimum, end_maximum;
	uint64_t gpu_count;
	int64_t gpu_total;
	double mean, m2; /* m2: sum of squared differences from the mean */
};

struct region_part {
	uint32_t rank, region; /* region: index into names */
	uint64_t first, count; /* its calls in the columns */
	uint64_t calls;        /* all: count, and those of which no times were kept (modes aggregate and count) */
	uint64_t dropped;      /* ended and found no room; none of `calls` */
	uint64_t timed;        /* calls that `summary` and `buckets` speak of where summarised */
	int64_t exclusive;     /* total without the regions inside it; -1: not known */
	int64_t line;          /* -1: unknown */
	char *file, *text;     /* where it stands; "" unknown */
	char *tags, *metadata; /* JSON; "" none */
	/* Calls that were only added up (mode aggregate), beside those in the columns. */
	bool summarised;
	struct region_summary summary;
	uint64_t *buckets; /* histogram of durations (region_bucket_bounds), REGION_BUCKET_COUNT; NULL: none */
	double ns_per_unit; /* of the buckets' unit */
};

struct region_thread_row {
	uint32_t rank;
	int64_t index, ident, native_id;
	int64_t start, end, cpu; /* ns; -1: not known */
	bool daemon;
	char *name;
};

/* One kind of wrong use, how often; by rank. */
struct region_trouble_count {
	uint32_t rank;
	uint32_t kind; /* enum region_trouble (wire/regions.h) */
	uint64_t count;
	char *example; /* name of a region it happened to; "" unknown */
};

struct region_fact {
	char *key, *value; /* of the file's metadata; numbers as text */
};

struct regions {
	char *path;
	unsigned layout;  /* 1, 2, 3; 0: .spt */
	unsigned columns; /* bit 1 << enum region_column for each that is there */
	char **names;
	size_t name_count;
	uint32_t *name_slots; /* regions_name's own: index + 1 by hash; 0: free */
	size_t name_slot_count;
	struct region_part *parts; /* by `first` */
	size_t part_count;
	uint64_t call_count; /* rows of each column */
	uint32_t *ranks;     /* that are in the file, ascending, those without regions too */
	size_t rank_count;
	struct region_thread_row *threads;
	size_t thread_count;
	struct region_trouble_count *troubles;
	size_t trouble_count;
	struct region_fact *facts;
	size_t fact_count;
	char **notes; /* what a reader should know: missing ranks, uncertain clocks, killed processes */
	size_t note_count;
};

void regions_init(struct regions *r);
void regions_release(struct regions *r);

/* Adding, for those who fill one (arrays grow by these alone): texts are copied. All fail with *err where there is no
 * memory: -1, or NULL. regions_name returns the index of a name, which it adds where it is new. */
int64_t regions_name(struct regions *r, const char *name, struct error *err);
/* Zeroed but for line and exclusive, which are unknown, and the texts, which are "": replace those by region_text. */
struct region_part *regions_add_part(struct regions *r, uint32_t rank, uint32_t region, struct error *err);
int regions_add_rank(struct regions *r, uint32_t rank, struct error *err);
struct region_thread_row *regions_add_thread(struct regions *r, struct error *err);
struct region_trouble_count *regions_add_trouble(struct regions *r, struct error *err);
int regions_set_fact(struct regions *r, const char *key, const char *value, struct error *err);
/* Sets one text of a part, thread or trouble that these functions added: no one else may free one, since those that are
 * empty are shared. */
int region_text(char **text, const char *value, struct error *err);
/* The same without a copy: `value` is from malloc and handed over. */
void region_text_own(char **text, char *value);
int regions_add_note(struct regions *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL: no such fact. */
const char *regions_fact(const struct regions *r, const char *key);

/* The bounds of bucket i of a histogram, in its unit: [low, high). */
void region_bucket_bounds(unsigned i, uint64_t *ret_low, uint64_t *ret_high);

/* "ended without a beginning", ... for a person. */
const char *region_trouble_text(uint32_t kind);

/* "no_begin", ...: the kind as a key in JSON. */
const char *region_trouble_name(uint32_t kind);

#endif
