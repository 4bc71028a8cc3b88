/* What the files of the merge share: the state of a merge, of one rank in it, of a thread's file in that. */
#ifndef ASSAY_STORE_REGION_MERGING_H
#define ASSAY_STORE_REGION_MERGING_H

#include "model/regions.h"
#include "store/region_calls.h"
#include "store/region_clocks.h"
#include "store/region_merge.h"
#include "store/region_scatter.h"
#include "store/region_segments.h"
#include "store/region_writer.h"

#define MERGE_BLOCK ((size_t)8192) /* events, or rows, that are looked at in one go */

/* A region on the rank that is being merged. */
struct merge_part {
	uint32_t name; /* index into regions.names */
	uint64_t first, count; /* in rows of the rank */
	uint64_t added;        /* calls without rows, timed or not */
	uint64_t timed, dropped;
	int64_t exclusive;
	struct region_summary summary; /* of `timed` */
	uint64_t *buckets;             /* of `timed`, in units of ns_per_unit; NULL: none */
	double ns_per_unit;
	const struct region_log_name *named; /* where it stands; of the process that had it first */
	uint64_t cursor;               /* rows that files before have taken */
};

/* What a thread's file has of a region. */
struct merge_use {
	uint32_t id, part;
	uint64_t count;
	uint64_t next; /* one behind where its next row goes, counted down */
};

struct merge_mark {
	uint64_t event;
	uint32_t thread; /* index within the process */
};

struct merge_file {
	size_t process;  /* within the rank */
	char *path;
	uint64_t events; /* that are good */
	uint64_t unfilled; /* calls among them that were left while they were written */
	uint64_t rows;   /* calls among them, and open ones */
	uint64_t last;   /* of its clock */
	uint32_t thread; /* of those that no mark tells of */
	struct merge_use *uses; /* by id */
	size_t use_count;
	struct merge_mark *marks;
	size_t mark_count;
	struct region_open *open;
	size_t open_count;
	struct region_sum *sums;
	size_t sum_count;
};

struct merge_process {
	const struct region_log *log;
	struct region_details details;
	struct region_ramp readings; /* pairs of its clock and CLOCK_MONOTONIC, as they were found */
	struct region_clocks clocks;
	uint64_t last;       /* of its clock, by what any of its threads did: what was open in one is open then */
	int64_t thread_base; /* what its first thread is called within the rank */
};

struct merge_rank {
	uint32_t rank;
	struct merge_process *processes;
	size_t process_count;
	struct merge_file *files;
	size_t file_count, file_room;
	struct merge_part *parts;
	size_t part_count;
	uint64_t rows;
	uint64_t troubles[REGION_TROUBLES];
	char *examples[REGION_TROUBLES]; /* NULL: none */
};

struct merging {
	const struct region_merge_options *options;
	struct region_job job;
	uint32_t *ranks;     /* of the job's processes */
	size_t *order;       /* of the job's processes: by rank, then by start */
	struct region_machines machines;
	struct regions regions;
	struct region_writer *writer;
	struct region_scatter *scatter;
	uint32_t *part_of;   /* by name: index into the rank's parts and one; 0: none yet */
	size_t part_of_room;
	uint64_t done, all;  /* of work, for progress */
	uint64_t backwards;  /* calls that end before they begin */
	uint64_t unnamed;    /* regions without a name */
	uint64_t unfilled;   /* calls that were left while they were written */
	uint64_t uncounted;  /* dropped calls of which no region's count tells */
	size_t damaged;      /* files in notes so far */
	struct {
		size_t processes;
		char *of; /* the first one's name */
	} killed, uncertain, unusable, by_wall, lossy, refused;
	char *refusal; /* what the library said; NULL: nothing */
};

void merge_rank_release(struct merge_rank *r);

/* Fills m->job from the folders, and m->all. */
int merge_find_processes(struct merging *m, struct error *err);

/* Fills m->ranks, m->order and m->machines. There is at least one process. */
int merge_find_ranks(struct merging *m, struct error *err);

/* Looks through all files of the rank: counts, clocks, sums; makes its parts. */
int merge_survey(struct merging *m, struct merge_rank *r, struct error *err);

/* Gives each call its row, and finds parents and exclusive times. */
int merge_place(struct merging *m, struct merge_rank *r, struct error *err);

/* Sums of a file into the parts. */
int merge_sums(struct merging *m, struct merge_rank *r, const struct merge_file *f, struct error *err);

/* The part of that region of a process; NULL with *err. */
struct merge_part *merge_part_of(struct merging *m, struct merge_rank *r, struct merge_process *p, uint32_t id,
				 struct error *err);

/* Notes what a reader should know of a file that is not all there; a sentence without its full stop. */
int merge_damage(struct merging *m, const char *sentence, struct error *err);

/* Tells of work that is done. -1 where the merge is to stop. */
int merge_progress(struct merging *m, uint64_t work, struct error *err);

/* The rank's threads, which then know what they are called within the rank. */
int merge_threads(struct merging *m, struct merge_rank *r, struct error *err);

/* The rank's wrong use and its regions. Nothing can be done with *r afterwards. */
int merge_parts(struct merging *m, struct merge_rank *r, struct error *err);

/* Facts about the run, from the job's tables. */
int merge_facts(struct merging *m, struct error *err);

/* Sentences on what was counted on the way. */
int merge_notes(struct merging *m, struct error *err);

/* After the notes: missing ranks, totals, and the notes once more. */
int merge_result(struct merging *m, struct region_merge_result *ret, struct error *err);

#endif
