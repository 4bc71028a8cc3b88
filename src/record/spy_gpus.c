/* The used memory of each GPU, for a watch. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "record/spy_state.h"

/* The library takes 10 to 100 ms to start, and a second or two for each GPU whose driver state was not kept. */
#define PATIENCE_NS (5 * NS_PER_S)
#define EXACT_WAIT_NS (100 * NS_PER_MS)
/* Readings take at most a fiftieth of a core; they are asked for, and so they may cost more than those of a run. */
#define PACE_GPU 50
#define SILENCE_NS (5 * NS_PER_S)

int spy_gpus_open(struct spy_gpus *g, struct error *err)
{
	if (gpu_reader_new(PATIENCE_NS, &g->reader, err) < 0) {
		g->reader = NULL;
		return error_prefix(err, "the memory of GPUs cannot be read");
	}
	g->count = gpu_reader_count(g->reader);
	if (g->count > SPY_GPUS_MAX)
		g->count = SPY_GPUS_MAX;
	g->readings = calloc(gpu_reader_count(g->reader), sizeof *g->readings);
	return g->readings ? 0 : error_set(err, "out of memory");
}

void spy_gpus_release(struct spy_gpus *g)
{
	gpu_reader_free(g->reader);
	free(g->readings);
}

void spy_gpus_read(struct spy_gpus *g, struct spy_sample *s, bool exact, struct warnings *warnings)
{
	s->gpu_count = g->count;
	for (size_t i = 0; i < g->count; i++)
		s->gpus[i] = -1;
	if (exact || s->t >= g->next) {
		gpu_reader_ask(g->reader, exact ? EXACT_WAIT_NS : 0);
		g->next = s->t + PACE_GPU * gpu_reader_cost_ns(g->reader);
	}
	if (gpu_reader_take(g->reader, g->readings)) {
		for (size_t i = 0; i < g->count; i++) {
			double used = g->readings[i].values[NVML_MEMORY_USED];

			s->gpus[i] = used >= 0 ? (int64_t)used : -1;
			if (*g->readings[i].trouble)
				warnings_add(warnings, "GPU %zu could not be read at all times: %s.", i,
					     g->readings[i].trouble);
		}
	}
	if (!g->told && gpu_reader_silent_ns(g->reader) > SILENCE_NS) {
		g->told = true;
		warnings_add(warnings,
			     "The GPU driver did not answer for %.0f s: figures of the GPUs are missing there.",
			     (double)SILENCE_NS / 1e9);
	}
}
