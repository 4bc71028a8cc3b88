#include "trial/timeit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/cleanup.h"
#include "trial/trial.h"

#define TARGET_NS (10 * NS_PER_MS) /* of a batch: long against what a fresh process costs */
#define TARGET_STEPS 1000          /* and against the clock */
#define SECONDS_PER_SIDE 1.5
#define REPEAT_LEAST 10
#define REPEAT_MOST 60
/* A batch's process beside the batch itself: its warm-up and empty loops, and what starting it costs. */
#define AROUND 1.3
#define START_S 2e-3
#define WARMUP_SHARE 4
#define LABEL_COLUMNS 60

void timeit_release(struct timeit *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct timeit_side *s = &t->sides[i];

		free(s->label);
		snippet_words_free(s->words);
		free(s->batches);
		free(s->empties);
	}
	free(t->sides);
	*t = (struct timeit){0};
}

int timeit_add(struct timeit *t, const char *label, char **words, struct error *err)
{
	struct timeit_side *sides = reallocarray(t->sides, t->count + 1, sizeof *sides);
	char *copy = strdup(label);

	if (sides)
		t->sides = sides;
	if (!sides || !copy) {
		free(copy);
		snippet_words_free(words);
		return error_set(err, "out of memory for %zu snippets", t->count + 1);
	}
	t->sides[t->count++] = (struct timeit_side){.label = copy, .words = words};
	return 0;
}

struct measuring {
	struct timeit *t;
	const struct timeit_execution *x;
	bool bad; /* the user's text or library is not right */
};

/* One run of a side's program. */
static int run_side(struct measuring *m, struct timeit_side *s, uint64_t number, uint64_t warmup,
		    struct snippet_reply *ret, struct error *err)
{
	int64_t steps = TARGET_STEPS * (int64_t)(m->t->resolution_s * NS_PER_S);
	const struct snippet_request request = {
		.number = number,
		.warmup = warmup,
		.target_ns = steps > TARGET_NS ? steps : TARGET_NS,
		.timeout_ns = m->x->timeout_ns,
		.each = m->t->each,
	};
	int got = snippet_run(m->x->shop, s->words, &request, ret, err);
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	m->bad |= got == SNIPPET_BAD;
	if (got < 0) {
		utf8_append_line(&shown, s->label, LABEL_COLUMNS);
		error_prefix(err, "'%s'", shown.text);
	}
	return got < 0 ? -1 : got;
}

static int keep(struct timeit_side *s, const struct snippet_reply *r, struct error *err)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct timing_batch *batches = reallocarray(s->batches, room, sizeof *batches);
		double *empties = batches ? reallocarray(s->empties, room, sizeof *empties) : NULL;

		s->batches = batches ? batches : s->batches;
		if (!empties)
			return error_set(err, "out of memory for %zu batches", room);
		s->empties = empties;
		s->room = room;
	}
	if (s->count == 0)
		s->warmup_s = (double)r->warmup_ns / NS_PER_S;
	s->empties[s->count] = (double)r->empty_ns / NS_PER_S;
	s->batches[s->count++] = (struct timing_batch){
		.number = r->number,
		.seconds = (double)r->ns / NS_PER_S,
		.cycles = r->cycles < 0 ? NAN : (double)r->cycles,
		.instructions = r->instructions < 0 ? NAN : (double)r->instructions,
	};
	return 0;
}

static uint64_t warmup_of(const struct timeit_execution *x, uint64_t number)
{
	uint64_t share = number / WARMUP_SHARE;

	return x->warmup >= 0 ? (uint64_t)x->warmup : share ? share : 1;
}

/* A first run that counts for nothing: it says how many executions a batch takes, and how long that is. */
static int prepare(struct measuring *m, struct timeit_side *s, double *ret_batch_s, struct error *err)
{
	const struct timeit_execution *x = m->x;
	struct snippet_reply reply;
	int got;

	s->number = x->number;
	s->warmup = warmup_of(x, x->number);
	*ret_batch_s = 0;
	if (x->number && x->repeat)
		return 0;
	got = run_side(m, s, x->number, x->number ? s->warmup : 1, &reply, err);
	if (got != 0)
		return got;
	s->number = reply.number;
	s->warmup = warmup_of(x, s->number);
	*ret_batch_s = (double)reply.ns / NS_PER_S;
	return 0;
}

static int run_arm(void *context, size_t side, int block, int position, size_t turn, struct error *err)
{
	struct measuring *m = context;
	struct timeit_side *s = &m->t->sides[side];
	struct snippet_reply reply;
	int got = run_side(m, s, s->number, s->warmup, &reply, err);

	(void)block, (void)position, (void)turn;
	return got ? got : keep(s, &reply, err);
}

static void tell_progress(void *context, size_t at, size_t of, size_t side)
{
	const struct measuring *m = context;

	if (m->x->progress)
		m->x->progress(m->x->context, at, of, side);
}

static int run_batches(struct measuring *m, struct error *err)
{
	struct trial_options o = {
		.sides = m->t->count,
		.pairs = m->x->repeat,
		.order = "random",
		.seed = m->t->seed,
		.run = run_arm,
		.progress = tell_progress,
		.context = m,
	};
	double longest = 0;
	enum trial_stop stop;

	for (size_t i = 0; i < m->t->count; i++) {
		double batch_s;
		int got = prepare(m, &m->t->sides[i], &batch_s, err);

		if (got != 0)
			return got;
		longest = fmax(longest, AROUND * batch_s + START_S);
	}
	if (!o.pairs)
		o.pairs = (size_t)fmin(fmax(SECONDS_PER_SIDE / longest, REPEAT_LEAST), REPEAT_MOST);
	stop = trial_run(&o, err);
	return stop == TRIAL_FAILED ? -1 : stop == TRIAL_INTERRUPTED ? 1 : 0;
}

/* Batches of the adaptive plan; only the first one is warmed up, as the plan has it. */
static int run_by_time(struct measuring *m, struct error *err)
{
	struct timeit_side *s = m->t->sides;
	struct timing_plan plan = {0};
	double last = 0;

	for (size_t i = 0; (s->number = timing_plan_next(&plan, last, m->x->max_time)) > 0; i++) {
		struct snippet_reply reply;
		int got;

		s->warmup = warmup_of(m->x, 1);
		tell_progress(m, i, i + 1, 0);
		got = run_side(m, s, s->number, s->warmup, &reply, err);
		if (got != 0)
			return got;
		if (keep(s, &reply, err) < 0)
			return -1;
		last = (double)reply.ns / NS_PER_S;
	}
	return 0;
}

int timeit_execute(struct timeit *t, const struct timeit_execution *x, struct error *err)
{
	struct measuring m = {.t = t, .x = x};
	int got;

	t->resolution_s = (double)clock_step_ns() / NS_PER_S;
	t->by_time = x->max_time > 0;
	got = t->by_time ? run_by_time(&m, err) : run_batches(&m, err);
	t->state = got < 0 ? BENCH_FAILED : got > 0 ? BENCH_INTERRUPTED : BENCH_DONE;
	return got < 0 && m.bad ? SNIPPET_BAD : got;
}
