/* Which regions of a file are asked for: ranks, names, and how they are put together. The same options everywhere:
 * inspect, regions diff, check, plot, export. */
#ifndef ASSAY_MODEL_REGION_QUERY_H
#define ASSAY_MODEL_REGION_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pattern.h"
#include "model/regions.h"

struct rank_range {
	uint32_t from, to; /* both included */
};

struct region_query {
	struct rank_range *ranges; /* none: all ranks */
	size_t range_count;
	struct pattern **include, **exclude; /* include none: all names */
	size_t include_count, exclude_count;
};

void region_query_init(struct region_query *q);
void region_query_release(struct region_query *q);

/* "0-3,8". Fails for what is no list of ranks: the sentence names the text. */
int region_query_set_ranks(struct region_query *q, const char *text, struct error *err);
int region_query_include(struct region_query *q, const char *expression, struct error *err);
int region_query_exclude(struct region_query *q, const char *expression, struct error *err);

bool region_query_takes_rank(const struct region_query *q, uint32_t rank);

/* Whether each of these names is asked for. Fails where an expression takes too long to be matched: a name that is left
 * out, or taken, for that alone would go unnoticed. */
int region_query_names(const struct region_query *q, const char *const *names, size_t count, bool *ret,
		       struct error *err);

/* Sentences on ranks that were asked for by number and are not in the file: one for all of them, "ranks 8, 9 are not in
 * FILE (it has 0-3)". NULL where there are none; owned by the caller. */
char *region_query_missing_ranks(const struct region_query *q, const struct regions *r);

#endif
