/* Measures snippets: how many executions make a batch, how many batches, interleaved where there are several snippets,
 * and what they say. A batch is one run of a snippet's program. */
#ifndef ASSAY_TRIAL_TIMEIT_H
#define ASSAY_TRIAL_TIMEIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/snippet.h"
#include "judge/bench.h"
#include "judge/timing.h"
#include "model/bench.h"

struct timeit_side {
	char *label;       /* the statement; owned */
	char **words;      /* that start its program; owned */
	uint64_t number, warmup;
	double warmup_s;   /* of the first batch that counts */
	struct timing_batch *batches;
	double *empties;   /* seconds of an empty loop with as many executions, one for each batch */
	size_t count, room;
};

struct timeit {
	struct timeit_side *sides;
	size_t count;
	bool each;           /* every execution is timed alone */
	bool by_time;
	double confidence, margin, resolution_s;
	uint64_t seed;
	enum bench_state state;
};

void timeit_release(struct timeit *t);

/* A side that nothing is known of yet; takes words as its own. -1 when out of memory: then they are freed. */
int timeit_add(struct timeit *t, const char *label, char **words, struct error *err);

struct timeit_execution {
	struct snippet_shop *shop;
	uint64_t number;  /* 0: as many as take some 10 ms */
	uint64_t repeat;  /* batches of each side; 0: 10 to 60, as fit into 1.5 s of each */
	int64_t warmup;   /* executions before each batch; below 0: a quarter of a batch, at least one */
	double max_time;  /* above 0: growing batches until their total is beyond; of a single side */
	int64_t timeout_ns;
	void (*progress)(void *context, size_t at, size_t of, size_t side); /* may be NULL */
	void *context;
};

/* 0; 1 when it was stopped; -1 with *err; SNIPPET_BAD where a library or its symbol is not there. What was measured
 * until then is in *t, whose state says the same. */
int timeit_execute(struct timeit *t, const struct timeit_execution *x, struct error *err);

struct timeit_answer {
	struct timing *timings; /* one per side; owned. batches 0: it has none */
	struct bench bench;     /* the same as runs of commands: what pairs are judged by */
	struct bench_answer comparisons;
};

int timeit_judge(const struct timeit *t, struct timeit_answer *ret, struct error *err);
void timeit_answer_release(struct timeit_answer *a);

#endif
