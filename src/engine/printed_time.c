#include "engine/printed_time.h"

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
static enum printed_kind kind_of(const struct log_line *line, const char **value)
{
	static const struct {
		const char *phrase;
		enum printed_kind kind;
	} kinds[] = {
		{"prompt eval time", PRINTED_PROMPT}, {"eval time", PRINTED_EVAL},       {"total time", PRINTED_TOTAL},
		{"sampling time", PRINTED_SAMPLING},  {"sample time", PRINTED_SAMPLING}, {"load time", PRINTED_LOAD},
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *at = line_after(line, kinds[i].phrase);

		if (at && text_skip(&at, "=")) {
			*value = at;
			return kinds[i].kind;
		}
	}
	return PRINTED_NONE;
}

struct printed_time printed_time_read(const struct log_line *line)
{
	struct printed_time printed = {.kind = PRINTED_NONE, .ms = NAN, .count = -1, .per_s = NAN};
	const char *at;
	enum printed_kind kind = kind_of(line, &at);

	if (kind == PRINTED_NONE || !text_number(&at, &printed.ms) || !text_skip(&at, "ms"))
		return printed;
	printed.kind = kind;
	if (!(printed.ms > 0))
		printed.ms = NAN;
	if (!text_skip(&at, "/") || !text_integer(&at, &printed.count))
		return printed;
	at = strstr(at, " per token,");
	if (!at)
		return printed;
	at += strlen(" per token,");
	if (!text_number(&at, &printed.per_s) || !text_skip(&at, "tokens per second") || isnan(printed.ms) ||
	    !(printed.per_s > 0))
		printed.per_s = NAN;
	return printed;
}

void printed_time_store(const struct printed_time *printed, struct engine_request *request)
{
	if (printed->kind == PRINTED_PROMPT) {
		request->prompt_tokens = printed->count;
		request->prompt_ms = printed->ms;
		request->prompt_per_s = printed->per_s;
	} else if (printed->kind == PRINTED_EVAL) {
		request->generated_tokens = printed->count;
		request->generated_ms = printed->ms;
		request->generated_per_s = printed->per_s;
	}
}

int64_t printed_time_ns(double ms)
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
