/* The parts of a file in the order of ranks, for those who go through one rank after the other: each rank costs its own
 * parts alone, however many ranks there are. Knows nothing of what is done with the calls. */
#ifndef ASSAY_STORE_REGION_BY_RANK_H
#define ASSAY_STORE_REGION_BY_RANK_H

#include "store/region_file.h"

struct region_by_rank {
	const struct regions *r;
	bool *wanted;      /* by part, for a scan: those of the rank that region_by_rank_choose took */
	size_t *parts;     /* all, by rank */
	size_t from, to;   /* which of `parts` are of the rank */
};

/* The ids of a rank's calls; least > most: there are none. */
struct region_id_range {
	int64_t least, most;
};

int region_by_rank_init(struct region_by_rank *b, const struct regions *r, struct error *err);
void region_by_rank_release(struct region_by_rank *b);

/* Goes on to a rank, of which nothing is chosen yet. Ranks must come in ascending order. */
void region_by_rank_go(struct region_by_rank *b, uint32_t rank);

/* Chooses the parts of the rank whose name is taken (NULL: all are); returns how many calls they have. */
uint64_t region_by_rank_choose(struct region_by_rank *b, const bool *names);

/* The ids of the calls that were chosen; ids below 0 are none. */
int region_by_rank_ids(struct region_by_rank *b, struct region_file *f, struct region_id_range *ret, struct error *err);

#endif
