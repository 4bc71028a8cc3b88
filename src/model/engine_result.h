/* What an engine's log said: when it did what, and the speeds it printed. Plain data. */
#ifndef ASSAY_MODEL_ENGINE_RESULT_H
#define ASSAY_MODEL_ENGINE_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/phase.h"
#include "model/warnings.h"

/* One test of a benchmark tool, as printed: "pp64", "tg16 @ d32", "pp64+tg16". Missing figures are NaN, missing counts
 * -1. */
struct engine_test {
	char name[PHASE_NAME_MAX];
	char model[96];
	int64_t n_prompt, n_gen, n_depth;
	double tokens_per_s; /* the printed rate, never tokens / ms */
	double deviation;    /* the tool's own +-; NaN where unknown (one repetition prints 0, which means unknown) */
	int64_t repetitions;
};

/* One request of a server, or the one generation of a command-line tool. Missing figures are NaN, missing counts -1. */
struct engine_request {
	int64_t id, slot;
	int64_t start, end; /* ns; 0 where not seen */
	int64_t prompt_tokens, generated_tokens, cached_tokens;
	double prompt_ms, generated_ms;
	double prompt_per_s, generated_per_s; /* printed rates */
};

struct engine_result {
	char engine[32];  /* the parser's name */
	char build[64];   /* what the engine says it is, "" where it does not */
	uint64_t known;   /* how many lines it recognised: 0 means that this is not its log */
	struct marks marks;
	struct engine_test *tests;
	size_t test_count, test_room;
	struct engine_request *requests;
	size_t request_count, request_room;
	uint64_t requests_dropped; /* past the 10,000 that are kept; they still count in the rates */
	double prefill_tokens_per_s, decode_tokens_per_s;   /* headline; NaN: no value */
	double prefill_deviation, decode_deviation;         /* NaN: unknown */
	char rate_source[96];                               /* how the headline came about, one phrase */
	struct warnings warnings;
};

void engine_result_init(struct engine_result *r);
void engine_result_release(struct engine_result *r);
int engine_result_add_test(struct engine_result *r, const struct engine_test *test, struct error *err);
int engine_result_add_request(struct engine_result *r, const struct engine_request *request, struct error *err);

#endif
