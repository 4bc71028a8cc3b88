/* The timing lines that all of llama.cpp's tools share, and the mean of rates over several of them.
 *
 *   prompt eval time =     165.73 ms /    68 tokens (    2.44 ms per token,   410.30 tokens per second)
 *          eval time =     137.66 ms /    15 runs   (    9.18 ms per token,   108.96 tokens per second)
 *         total time =     305.09 ms /    83 tokens */
#ifndef ASSAY_ENGINE_PRINTED_TIME_H
#define ASSAY_ENGINE_PRINTED_TIME_H

#include "engine/engine.h"

enum printed_kind { PRINTED_NONE, PRINTED_PROMPT, PRINTED_EVAL, PRINTED_TOTAL, PRINTED_SAMPLING, PRINTED_LOAD };

struct printed_time {
	enum printed_kind kind;
	double ms;     /* NaN where 0.00 was printed, which means that nothing was measured */
	int64_t count; /* tokens or runs; -1 where there are none */
	double per_s;  /* as printed; NaN where none is, where it is inf or nan, or where ms is */
};

/* The line's timing; kind PRINTED_NONE where it has none. */
struct printed_time printed_time_read(const struct log_line *line);

/* Puts a prompt's or a generation's timing where it belongs; other kinds are passed over. */
void printed_time_store(const struct printed_time *printed, struct engine_request *request);

/* Milliseconds as printed, in ns, whatever nonsense was printed. */
int64_t printed_time_ns(double ms);

/* sum(rate * ms) / sum(ms). Of a single rate: that rate to the last digit. */
struct rate_mean {
	double weighted, ms, only;
	uint64_t count;
};

/* Adds a rate; passed over unless both are numbers and the rate is above 0. Returns whether it was added. */
bool rate_mean_add(struct rate_mean *m, double per_s, double ms);

/* NaN where none was added. */
double rate_mean_value(const struct rate_mean *m);

/* A request of which nothing is known yet. */
extern const struct engine_request request_unknown;

#endif
