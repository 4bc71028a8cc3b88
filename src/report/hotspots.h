/* Hot spots as text for people and as JSON for scripts. */
#ifndef ASSAY_REPORT_HOTSPOTS_H
#define ASSAY_REPORT_HOTSPOTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "judge/profile_diff.h"
#include "model/hotspots.h"

struct hotspots_shown {
	const struct profile *profile;
	const struct hotspots *hotspots;
	const struct hotspot_query *query;
	struct profile_account account;
	bool colour;
	unsigned columns; /* of the terminal; 0: not one */
};

/* First what is serial and holds up the run, then per group what was hot; last what was not sampled. */
void hotspots_print(const struct hotspots_shown *shown, struct buf *out);

/* {"samples", "dropped", "period_s", "groups": {NAME: {"samples", "cpu_s", "modules", "self", "inclusive", "threads",
 * "busiest_threads", ...}}, ...}; see docs/formats.md. NULL when out of memory. */
json_t *hotspots_json(const struct hotspots_shown *shown);

void profile_changes_print(const struct profile_changes *c, const char *a, const char *b, bool colour,
			   unsigned columns, struct buf *out);
json_t *profile_changes_json(const struct profile_changes *c, const char *a, const char *b);

#endif
