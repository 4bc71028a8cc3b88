/* A comparison as text for a person, as JSON and as Markdown. Knows neither files nor how the runs were made.
 *
 * Where separation decides by request, JSON and Markdown are those of the reference tool, key by key and digit by
 * digit; else they have the same keys and more. */
#ifndef ASSAY_REPORT_COMPARISON_H
#define ASSAY_REPORT_COMPARISON_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "judge/compare.h"

struct comparison_view {
	const struct comparison *comparison;
	const struct metric_set *metrics;
	const char *a, *b; /* labels of the sides */
	double confidence; /* as asked for: 0.95 */
	bool reference;    /* the reference's structure and nothing else */
	bool colour;       /* of the text */
};

/* A table, what was decided in words, and what was not, with what would settle it. At most 100 columns. */
void comparison_text(const struct comparison_view *v, struct buf *out);

void comparison_markdown(const struct comparison_view *v, struct buf *out);

/* Owned by the caller; NULL when out of memory. */
json_t *comparison_json(const struct comparison_view *v);

/* As indented text with all the digits that a number needs, so that what is read back is what was compared. */
void comparison_print_json(const json_t *root, struct buf *out);

enum sentence_kind {
	SENTENCE_DECIDED, /* of one metric, by the rule that decides */
	SENTENCE_OPEN,    /* not decided, and what would settle it */
	SENTENCE_NOTE,    /* what the reader must know of the runs */
};

/* What was decided and what was not, one sentence each, without markup. */
void comparison_sentences(const struct comparison_view *v,
			  void (*take)(void *context, enum sentence_kind kind, const char *sentence), void *context);

#endif
