#include "engine/timing.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/text.h"

const struct engine_request request_unknown = {
	.id = -1,
	.slot = -1,
	.prompt_tokens = -1,
	.generated_tokens = -1,
	.cached_tokens = -1,
	.prompt_ms = NAN,
	.generated_ms = NAN,
	.prompt_per_s = NAN,
	.generated_per_s = NAN,
};

/* Which time it is, by the word before " time": behind it, blanks and an equals sign. */
static enum timing_kind kind_of(const struct log_line *line, const char **value)
{
	static const struct {
		const char *phrase;
		enum timing_kind kind;
	} kinds[] = {
		{"prompt eval time", TIMING_PROMPT}, {"eval time", TIMING_EVAL},       {"total time", TIMING_TOTAL},
		{"sampling time", TIMING_SAMPLING},  {"sample time", TIMING_SAMPLING}, {"load time", TIMING_LOAD},
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *at = line_after(line, kinds[i].phrase);

		if (at && text_skip(&at, "=")) {
			*value = at;
			return kinds[i].kind;
		}
	}
	return TIMING_NONE;
}

struct timing timing_read(const struct log_line *line)
{
	struct timing timing = {.kind = TIMING_NONE, .ms = NAN, .count = -1, .per_s = NAN};
	const char *at;
	enum timing_kind kind = kind_of(line, &at);

	if (kind == TIMING_NONE || !text_number(&at, &timing.ms) || !text_skip(&at, "ms"))
		return timing;
	timing.kind = kind;
	if (!(timing.ms > 0))
		timing.ms = NAN;
	if (!text_skip(&at, "/") || !text_integer(&at, &timing.count))
		return timing;
	at = strstr(at, " per token,");
	if (!at)
		return timing;
	at += strlen(" per token,");
	if (!text_number(&at, &timing.per_s) || !text_skip(&at, "tokens per second") || isnan(timing.ms) ||
	    !(timing.per_s > 0))
		timing.per_s = NAN;
	return timing;
}

void timing_store(const struct timing *timing, struct engine_request *request)
{
	if (timing->kind == TIMING_PROMPT) {
		request->prompt_tokens = timing->count;
		request->prompt_ms = timing->ms;
		request->prompt_per_s = timing->per_s;
	} else if (timing->kind == TIMING_EVAL) {
		request->generated_tokens = timing->count;
		request->generated_ms = timing->ms;
		request->generated_per_s = timing->per_s;
	}
}

int64_t timing_ns(double ms)
{
	if (!(ms > 0))
		return 0;
	return ms < 1e12 ? (int64_t)(ms * (double)NS_PER_MS) : INT64_C(1000000000000000000);
}

bool rate_mean_add(struct rate_mean *m, double per_s, double ms)
{
	if (!(per_s > 0) || !isfinite(per_s) || !(ms > 0) || !isfinite(ms))
		return false;
	m->weighted += per_s * ms;
	m->ms += ms;
	m->only = per_s;
	m->count++;
	return true;
}

double rate_mean_value(const struct rate_mean *m)
{
	if (m->count == 0)
		return NAN;
	return m->count == 1 ? m->only : m->weighted / m->ms;
}
