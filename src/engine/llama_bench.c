/* llama-bench: its progress lines say what it does when, its result rows how fast it was.
 *
 * Without progress lines a row says when a test ended and, by its samples or its rate and repetitions, how long the
 * measured part took; what was before that is load and warmup in one. Where not even that is known, one phase says so
 * by its name. docs/engines.md states the rules. */
#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "engine/bench_rows.h"
#include "engine/marking.h"
#include "engine/text.h"

#define EVENTS_MAX 100000
#define REPETITIONS_DEFAULT 5 /* the tool's own */

enum stage { STAGE_STARTING, STAGE_WARMUP, STAGE_DEPTH, STAGE_PROMPT, STAGE_GENERATION };

/* A progress line. */
struct event {
	int64_t t;
	enum stage stage;
	size_t test; /* which of `tests` */
};

/* A test of which progress lines were seen. */
struct test {
	bool prompt, generation; /* it has such runs, warmup counted */
	bool ran;                /* anything behind `starting` */
	bool last;               /* the tool's last, by its own count */
	size_t row;              /* index + 1; 0: none yet */
};

struct bench {
	struct engine_context context;
	struct bench_rows rows;
	struct event *events;
	size_t event_count, event_room;
	struct test *tests;
	size_t test_count, test_room;
	int64_t repetitions; /* from the progress lines or the command; -1: not known */
	uint64_t progress_lines, lost;
	bool failed; /* out of memory */
};

/* The -r of the command where the command visibly is llama-bench (behind any wrapper), its default otherwise; -1 where
 * llama-bench does not stand there by name. */
static int64_t command_repetitions(char *const *argv)
{
	int64_t repetitions = -1;

	for (; argv && *argv; argv++) {
		const char *slash = strrchr(*argv, '/');
		const char *name = slash ? slash + 1 : *argv;

		if (strcmp(name, "llama-bench") == 0)
			repetitions = REPETITIONS_DEFAULT;
		else if (repetitions > 0 && (strcmp(*argv, "-r") == 0 || strcmp(*argv, "--repetitions") == 0) &&
			 argv[1] && !parse_i64(argv[1], &repetitions))
			return -1;
	}
	return repetitions;
}

static void *bench_open(const struct engine_context *c)
{
	struct bench *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->context = *c;
	b->repetitions = command_repetitions(c->argv);
	bench_rows_init(&b->rows);
	return b;
}

static void bench_close(void *state)
{
	struct bench *b = state;

	bench_rows_release(&b->rows);
	free(b->events);
	free(b->tests);
	free(b);
}

static bool bench_attentive(const void *state)
{
	const struct bench *b = state;

	return bench_rows_attentive(&b->rows);
}

/* Room for one more in an array; false (and failed) without memory. */
static bool grow(struct bench *b, void *items, size_t *room, size_t count, size_t size)
{
	void **array = items, *moved;

	if (count < *room)
		return true;
	moved = reallocarray(*array, *room ? 2 * *room : 16, size);
	if (!moved) {
		b->failed = true;
		return false;
	}
	*array = moved;
	*room = *room ? 2 * *room : 16;
	return true;
}

static void add_event(struct bench *b, int64_t t, enum stage stage, bool warmup, bool last)
{
	bool new_test = stage == STAGE_STARTING || b->test_count == 0;
	struct test *test;

	b->progress_lines++;
	if (b->event_count >= EVENTS_MAX) {
		b->lost++;
		return;
	}
	if (!grow(b, &b->events, &b->event_room, b->event_count, sizeof *b->events) ||
	    !grow(b, &b->tests, &b->test_room, b->test_count, sizeof *b->tests))
		return;
	if (new_test)
		b->tests[b->test_count++] = (struct test){.last = last};
	test = &b->tests[b->test_count - 1];
	test->ran |= stage != STAGE_STARTING;
	test->prompt |= stage == STAGE_PROMPT;
	test->generation |= stage == STAGE_GENERATION;
	b->events[b->event_count++] =
		(struct event){.t = t, .stage = warmup ? STAGE_WARMUP : stage, .test = b->test_count - 1};
}

/* "llama-bench: benchmark 1/2: warmup prompt run", "... prompt run 1/5", "... depth run 2/2 (cached)" */
static bool progress_line(struct bench *b, const struct log_line *line)
{
	const char *at = line_after(line, "llama-bench: benchmark ");
	int64_t number, of, run, runs;
	enum stage stage;
	bool warmup;

	if (!at || !text_integer(&at, &number) || !text_skip(&at, "/") || !text_integer(&at, &of) ||
	    !text_skip(&at, ":"))
		return false;
	warmup = text_skip(&at, "warmup");
	if (text_skip(&at, "starting"))
		stage = STAGE_STARTING;
	else if (text_skip(&at, "prompt run"))
		stage = STAGE_PROMPT;
	else if (text_skip(&at, "generation run"))
		stage = STAGE_GENERATION;
	else if (text_skip(&at, "depth run"))
		stage = STAGE_DEPTH;
	else
		return false;
	if (text_integer(&at, &run) && text_skip(&at, "/") && text_integer(&at, &runs) && runs > 0)
		b->repetitions = runs;
	add_event(b, line->t, stage, warmup, number == of);
	return true;
}

/* A row belongs to the last test that has run and has no row yet: rows and progress lines come through two pipes, so
 * the next test's `starting` can be seen before the row. */
static void assign_row(struct bench *b)
{
	for (size_t i = b->test_count; i-- > 0 && !b->tests[i].row;) {
		if (b->tests[i].ran) {
			b->tests[i].row = b->rows.count;
			return;
		}
	}
}

static void rows_line(struct bench *b, void (*read)(struct bench_rows *r, const struct log_line *line),
		      const struct log_line *line)
{
	size_t before = b->rows.count;

	read(&b->rows, line);
	if (b->rows.count > before)
		assign_row(b);
}

static void bench_line(void *state, const struct log_line *line)
{
	if (!progress_line(state, line))
		rows_line(state, bench_rows_line, line);
}

static void bench_rest(void *state, const struct log_line *line)
{
	rows_line(state, bench_rows_rest, line);
}

/* How long the test's measured part took in all, ns; NaN where that cannot be known. */
static double measured_ns(const struct bench *b, const struct bench_row *row)
{
	int64_t repetitions = row->test.repetitions > 0 ? row->test.repetitions : b->repetitions;

	if (!isnan(row->samples_ns))
		return row->samples_ns;
	if (repetitions <= 0)
		repetitions = row->inferred;
	return repetitions > 0 ? (double)repetitions * bench_row_repetition_ns(row) : NAN;
}

static enum phase_group row_group(const struct bench_row *row)
{
	if (row->test.n_prompt > 0 && row->test.n_gen > 0)
		return GROUP_OTHER;
	return row->test.n_prompt > 0 ? GROUP_PREFILL : GROUP_DECODE;
}

/* What a test's measured runs are called: by its row, or by what runs were seen where there is none. */
static void run_phase(const struct bench *b, const struct test *test, enum phase_group *group, const char **name)
{
	if (test->row) {
		const struct bench_row *row = &b->rows.items[test->row - 1];

		*group = row_group(row);
		*name = row->test.name;
	} else if (test->prompt && test->generation) {
		*group = GROUP_OTHER;
		*name = "prefill+decode";
	} else {
		*group = test->prompt ? GROUP_PREFILL : GROUP_DECODE;
		*name = phase_group_name(*group);
	}
}

static int mark_event(const struct bench *b, const struct event *e, struct engine_result *r, struct error *err)
{
	const struct test *test = &b->tests[e->test];
	const struct test *previous = e->test ? test - 1 : NULL;
	enum phase_group group = GROUP_LOAD;
	const char *name = "load";
	int64_t t = e->t;

	switch (e->stage) {
	case STAGE_STARTING: /* a test ends at its row, not at the next one's start */
		if (previous && previous->row && !previous->last && b->rows.items[previous->row - 1].t < t)
			t = b->rows.items[previous->row - 1].t;
		break;
	case STAGE_WARMUP:
		group = GROUP_WARMUP;
		name = "warmup";
		break;
	case STAGE_DEPTH:
		group = GROUP_WARMUP;
		name = "depth";
		break;
	case STAGE_PROMPT:
	case STAGE_GENERATION:
		run_phase(b, test, &group, &name);
	}
	return marking_add(r, &b->context, t, group, name, err);
}

static int mark_end(const struct bench *b, int64_t t, bool last, struct engine_result *r, struct error *err)
{
	if (last)
		return marking_add(r, &b->context, t, GROUP_SHUTDOWN, "shutdown", err);
	return marking_add(r, &b->context, t, GROUP_OTHER, "after the last result", err);
}

static int mark_progress(const struct bench *b, struct engine_result *r, struct error *err)
{
	for (size_t i = 0; i < b->event_count; i++) {
		const struct test *test = &b->tests[b->events[i].test];
		bool test_ends = i + 1 == b->event_count || b->events[i + 1].test != b->events[i].test;

		if (mark_event(b, &b->events[i], r, err) < 0)
			return -1;
		if (test_ends && test->row && (test->last || i + 1 == b->event_count) &&
		    mark_end(b, b->rows.items[test->row - 1].t, test->last, r, err) < 0)
			return -1;
	}
	return 0;
}

/* Rows [first, last] that arrived together, or whose duration is not known: one phase for all of them. */
static int mark_together(const struct bench *b, size_t first, size_t last, int64_t from, struct engine_result *r,
			 struct error *err)
{
	struct buf name;
	int status;

	buf_init(&name);
	buf_puts(&name, first == 0 ? "load" : "warmup");
	for (size_t i = first; i <= last && name.length < PHASE_NAME_MAX; i++)
		buf_printf(&name, "%s%s", i == first ? "+" : ", ", b->rows.items[i].test.name);
	status = marking_add(r, &b->context, from, GROUP_OTHER, name.text, err);
	buf_release(&name);
	return status;
}

/* Where neither the rows nor the command say how often each test ran, the times between the rows may. */
static void infer_repetitions(struct bench *b, struct engine_result *r)
{
	if (b->repetitions > 0)
		return;
	bench_rows_infer(&b->rows, b->context.start);
	for (size_t i = 0; i < b->rows.count; i++)
		if (b->rows.items[i].inferred > 0)
			warnings_add(&r->warnings,
				     "llama-bench's number of repetitions (%" PRId64 ") was inferred from the times "
				     "between its rows; --progress tells it.",
				     b->rows.items[i].inferred);
}

static int mark_rows(const struct bench *b, struct engine_result *r, struct error *err)
{
	int64_t from = b->context.start;
	size_t first = 0;

	for (size_t i = 0; i < b->rows.count; i++) {
		const struct bench_row *row = &b->rows.items[i];
		const struct bench_row *next = i + 1 < b->rows.count ? row + 1 : NULL;
		bool first_row = i == 0;

		if (next && next->t - row->t < BENCH_TOGETHER_NS)
			continue; /* they arrived together */
		if (first == i && bench_row_fits(row, measured_ns(b, row), from)) {
			int64_t begin = row->t - (int64_t)measured_ns(b, row);

			if (marking_add(r, &b->context, from, first_row ? GROUP_LOAD : GROUP_WARMUP,
					first_row ? "load+warmup" : "warmup", err) < 0 ||
			    marking_add(r, &b->context, begin, row_group(row), row->test.name, err) < 0)
				return -1;
		} else {
			if (first < i)
				warnings_add(&r->warnings, "llama-bench's results arrived together, so it is not known "
							   "when each test ran; "
							   "--progress tells.");
			if (mark_together(b, first, i, from, r, err) < 0)
				return -1;
		}
		from = row->t;
		first = i + 1;
	}
	return b->rows.count ? mark_end(b, from, b->rows.ended, r, err) : 0;
}

/* The tool prints a deviation of 0 for one repetition, which means that it is not known. */
static struct engine_test final_test(const struct bench *b, const struct bench_row *row)
{
	struct engine_test test = row->test;

	if (test.repetitions <= 0)
		test.repetitions = b->repetitions;
	if (!(test.deviation >= 0) || !isfinite(test.deviation) || (test.deviation <= 0 && test.repetitions <= 1))
		test.deviation = NAN;
	return test;
}

/* Takes the test for the headline if it is the first pure one of its kind at depth 0; returns whether it was another of
 * the same name as the headline's. */
static bool take_headline(struct engine_test *headline, const struct engine_test *test)
{
	if (headline->name[0] == '\0' && !isnan(test->tokens_per_s)) {
		*headline = *test;
		return false;
	}
	return strcmp(headline->name, test->name) == 0;
}

static int take_tests(const struct bench *b, struct engine_result *r, struct error *err)
{
	struct engine_test prefill = {.tokens_per_s = NAN, .deviation = NAN}, decode = prefill;
	size_t again = 0;

	for (size_t i = 0; i < b->rows.count; i++) {
		struct engine_test test = final_test(b, &b->rows.items[i]);

		if (engine_result_add_test(r, &test, err) < 0)
			return -1;
		if (test.n_depth > 0 || (test.n_prompt > 0 && test.n_gen > 0))
			continue;
		again += take_headline(test.n_prompt > 0 ? &prefill : &decode, &test);
	}
	r->prefill_tokens_per_s = prefill.tokens_per_s;
	r->prefill_deviation = prefill.deviation;
	r->decode_tokens_per_s = decode.tokens_per_s;
	r->decode_deviation = decode.deviation;
	if (prefill.name[0] || decode.name[0])
		snprintf(r->rate_source, sizeof r->rate_source, "printed by llama-bench: %.28s%s%.28s", prefill.name,
			 prefill.name[0] && decode.name[0] ? " and " : "", decode.name);
	if (again > 0)
		warnings_add(
			&r->warnings,
			"llama-bench ran the same test %zu more time%s with another model or other settings; the "
			     "rates are those of the first.",
			again, again == 1 ? "" : "s");
	return 0;
}

static int bench_finish(void *state, struct engine_result *r, struct error *err)
{
	struct bench *b = state;
	size_t before = b->rows.count;

	bench_rows_end(&b->rows);
	if (b->rows.count > before)
		assign_row(b);
	if (b->failed || b->rows.failed)
		return error_set(err, "out of memory for the output of llama-bench");
	snprintf(r->engine, sizeof r->engine, "llama-bench");
	snprintf(r->build, sizeof r->build, "%s", b->rows.build);
	r->known = b->rows.known + b->progress_lines;
	if (b->lost + b->rows.lost > 0)
		warnings_add(&r->warnings,
			     "%" PRIu64 " of llama-bench's lines were more than are kept and are missing.",
			     b->lost + b->rows.lost);
	if (take_tests(b, r, err) < 0)
		return -1;
	if (b->event_count)
		return mark_progress(b, r, err);
	infer_repetitions(b, r);
	return mark_rows(b, r, err);
}

static const char *const phrases[] = {
	"llama-bench: benchmark ",
	"| model  ",
	"\"build_commit\":",
	"\"model_filename\":",
	"\"model_type\":",
	"\"n_prompt\":",
	"\"n_gen\": ",
	"\"n_depth\":",
	"\"avg_ts\":",
	"avg_ts,stddev_ts",
	"INSERT INTO llama_bench (",
	"INSERT INTO test (",
	"CREATE TABLE IF NOT EXISTS llama_bench",
	"CREATE TABLE IF NOT EXISTS test (",
	"llama_bench: error: ",
	NULL,
};

const struct engine engine_llama_bench = {
	.name = "llama-bench",
	.summary = "llama.cpp's benchmark: table, json, jsonl, csv and sql, with and without --progress",
	.phrases = phrases,
	.attentive = bench_attentive,
	.rest = bench_rest,
	.open = bench_open,
	.line = bench_line,
	.finish = bench_finish,
	.close = bench_close,
};
