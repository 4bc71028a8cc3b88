/* The two sides of `assay check` as named pairs of figures, whatever they were read from. */
#ifndef ASSAY_CMD_CHECK_SIDES_H
#define ASSAY_CMD_CHECK_SIDES_H

#include "cmd/options.h"
#include "judge/check.h"
#include "judge/region_diff.h"
#include "model/arm.h"
#include "model/metric.h"
#include "model/region_query.h"
#include "model/warnings.h"

struct check_sides {
	struct check_item *items; /* names and units are borrowed from the members below; owned */
	size_t count;
	struct region_diff regions; /* of regions */
	struct metric_set metrics;  /* of runs and other tools' files */
	struct arms a, b;
	struct warnings notes;
};

int check_sides_init(struct check_sides *s, struct error *err);
void check_sides_release(struct check_sides *s);

/* Whether a path is compared by its regions unless asked otherwise: a file of regions, or a folder that holds one and
 * no run.json. */
bool check_sides_has_regions(const char *path);

/* By region: files of regions, or run directories (or their run.json) that hold one. A run that did not end well is
 * refused: its regions were cut off. */
int check_sides_regions(struct check_sides *s, const char *a, const char *b, const struct region_query *q,
			enum region_metric metric, struct error *err);

/* By metric: run directories, run.json, other tools' files. metrics: names, empty: all that count for `assay diff`. The
 * name patterns of the query pick among them. A side of which nothing ended well is refused. */
int check_sides_runs(struct check_sides *s, const char *a, const char *b, const struct region_query *q,
		     const struct option_list *metrics, struct error *err);

#endif
