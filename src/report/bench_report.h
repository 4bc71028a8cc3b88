/* A benchmark for its readers: a terminal, hyperfine's tools, a spreadsheet, a pull request. */
#ifndef ASSAY_REPORT_BENCH_REPORT_H
#define ASSAY_REPORT_BENCH_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "judge/bench.h"
#include "model/bench.h"

void bench_text(const struct bench *b, const struct bench_answer *a, bool colour, struct buf *out);

/* hyperfine's schema, and ours beside it; NULL when out of memory. */
json_t *bench_json(const struct bench *b, const struct bench_answer *a);

/* hyperfine's columns first, ours behind them. Cells without a figure are empty. */
void bench_csv(const struct bench *b, const struct bench_answer *a, struct buf *out);

void bench_markdown(const struct bench *b, const struct bench_answer *a, struct buf *out);

/* The table of all comparisons, with an empty line before it. */
void bench_comparisons_text(const struct bench *b, const struct bench_answer *a, struct buf *out);

/* The keys of one comparison, put into *o. */
void bench_comparison_json(const struct bench_figures *f, json_t *o);

/* A unit in which a time of this size has four digits. */
struct bench_unit {
	const char *name;
	double scale;
	int decimals;
};

struct bench_unit bench_unit_for(double seconds);

/* What the comparison of command `index` came to, in words: "slower", "undecided: ...". */
void bench_say_verdict(const struct bench *b, const struct bench_answer *a, size_t index, struct buf *out);

#endif
