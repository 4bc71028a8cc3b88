/* Timings of snippets for their readers: a terminal, a script. */
#ifndef ASSAY_REPORT_TIMING_REPORT_H
#define ASSAY_REPORT_TIMING_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "judge/bench.h"
#include "judge/timing.h"
#include "model/bench.h"

struct timing_item {
	const char *statement;
	const struct timing *timing; /* batches 0: nothing was measured */
	double warmup_s;
};

/* What stands in it is the caller's. `bench` and `comparisons` hold the same snippets in the same order. */
struct timing_report {
	const struct timing_item *items;
	size_t count;
	const char *setup, *each; /* NULL: none */
	bool calls;               /* of functions of a library: what is subtracted is an empty call */
	bool by_time;
	const struct bench *bench;
	const struct bench_answer *comparisons;
};

void timing_text(const struct timing_report *r, bool colour, struct buf *out);

/* NULL when out of memory. Times are seconds. */
json_t *timing_json(const struct timing_report *r);

#endif
