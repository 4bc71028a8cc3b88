#include "trial/matrix.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/units.h"
#include "exec/apart.h"
#include "trial/matrix_arm.h"
#include "trial/matrix_files.h"
#include "trial/trial.h"

void matrix_init(struct matrix *m)
{
	*m = (struct matrix){.lock = -1};
	noisefile_init(&m->noise);
}

void matrix_release(struct matrix *m)
{
	for (size_t i = 0; m->results && i < m->plan.cases.count; i++) {
		struct matrix_case_result *r = &m->results[i];

		arms_release(&r->sides[0]);
		arms_release(&r->sides[1]);
		json_decref(r->arms);
		json_decref(r->json);
		if (r->has_comparison)
			comparison_release(&r->comparison);
	}
	free(m->results);
	free(m->folder);
	fd_cleanup(&m->lock);
	noisefile_release(&m->noise);
	metric_set_release(&m->metrics);
	matrix_plan_release(&m->plan);
}

static int select_cases(struct matrix *m, struct error *err)
{
	size_t selected = 0;
	regex_t only;
	int problem = m->plan.only ? regcomp(&only, m->plan.only, REG_EXTENDED | REG_NOSUB) : 0;

	if (problem) {
		char why[200];

		regerror(problem, &only, why, sizeof why);
		return error_set(err, "--only '%.100s': it is no regular expression: %s", m->plan.only, why);
	}
	for (size_t i = 0; i < m->plan.cases.count; i++) {
		m->results[i].selected =
			!m->plan.only || regexec(&only, m->plan.cases.items[i].label, 0, NULL, 0) == 0;
		selected += m->results[i].selected;
	}
	if (m->plan.only)
		regfree(&only);
	return selected ? 0 : error_set(err, "--only '%.100s': no label matches it", m->plan.only);
}

/* What both a new and an old matrix need. */
static int prepare(struct matrix *m, struct error *err)
{
	if (matrix_plan_check(&m->plan, err) < 0 || metric_set_init(&m->metrics, err) < 0)
		return -1;
	if (m->plan.noise) {
		if (noisefile_read(m->plan.noise, &m->noise, err) < 0)
			return -1;
		m->has_noise = true;
	}
	m->null = matrix_plan_is_null(&m->plan);
	m->results = calloc(m->plan.cases.count, sizeof *m->results);
	if (!m->results)
		return error_set(err, "out of memory for %zu cases", m->plan.cases.count);
	for (size_t i = 0; i < m->plan.cases.count; i++) {
		struct matrix_case_result *r = &m->results[i];

		r->what = &m->plan.cases.items[i];
		arms_init(&r->sides[0]);
		arms_init(&r->sides[1]);
		r->arms = json_array();
		if (!r->arms)
			return error_set(err, "out of memory for %zu cases", m->plan.cases.count);
	}
	return select_cases(m, err);
}

static int lock(struct matrix *m, const char *path, struct error *err)
{
	m->lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (m->lock < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	if (flock(m->lock, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, "%s: another process is at work on this matrix", m->folder);
	return 0;
}

int matrix_begin(struct matrix *m, struct matrix_plan *plan, const char *folder, struct error *err)
{
	const struct trial_options design = {.sides = 2, .pairs = plan->pairs, .order = plan->order};
	CLEANUP(free_cleanup) uint16_t *sides = NULL;
	CLEANUP(free_cleanup) char *path = NULL;
	size_t count;

	m->plan = *plan;
	*plan = (struct matrix_plan){.seed = 0};
	if (trial_plan(&design, &sides, &count, err) < 0 || prepare(m, err) < 0 ||
	    matrix_make_folder(folder, &m->folder, err) < 0)
		return -1;
	path = fs_join(m->folder, "plan.json");
	if (!path)
		return error_set(err, "out of memory for the folder's name");
	return matrix_plan_write(&m->plan, path, err) < 0 ? -1 : lock(m, path, err);
}

int matrix_resume(struct matrix *m, const char *folder, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(folder, "plan.json");

	m->folder = strdup(folder);
	if (!path || !m->folder)
		return error_set(err, "out of memory for the folder's name");
	if (!fs_exists(path))
		return error_set(err, "%s: there is no matrix in it (no plan.json)", folder);
	if (lock(m, path, err) < 0)
		return -1;
	return matrix_plan_read(path, &m->plan, err) < 0 || prepare(m, err) < 0 || matrix_load(m, err) < 0 ? -1 : 0;
}

static void say(const struct matrix *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct matrix *m, const char *format, ...)
{
	CLEANUP(buf_release) struct buf text;
	va_list args;

	buf_init(&text);
	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	if (m->say && !text.failed)
		m->say(m->context, text.text);
}

static enum compare_rule rule_of(const char *name)
{
	return strcmp(name, "separation") == 0 ? RULE_SEPARATION
	       : strcmp(name, "paired") == 0   ? RULE_PAIRED
					       : RULE_AUTO;
}

/* Judges what the case has so far, in place of what was judged before. */
static int judge(struct matrix *m, struct matrix_case_result *r, struct error *err)
{
	CLEANUP(free_cleanup) double *floors = calloc(m->metrics.count + 1, sizeof *floors);
	struct compare_options options = {
		.rule = rule_of(m->plan.rule),
		.confidence = m->plan.confidence,
		.margin = m->plan.margin,
		.looks = m->plan.until_decided ? STATS_LOOKS : 1,
		.reference = matrix_is_reference(m),
	};
	struct comparison c;

	if (!floors)
		return error_set(err, "out of memory for the noise floors");
	if (m->has_noise && noisefile_floors(&m->noise, r->what->label, &m->metrics, floors)) {
		options.noise = floors;
		options.noise_count = m->metrics.count;
	}
	if (compare(&m->metrics, &r->sides[0], &r->sides[1], &options, &c, err) < 0)
		return -1;
	if (r->has_comparison)
		comparison_release(&r->comparison);
	r->comparison = c;
	r->has_comparison = true;
	return 0;
}

static int keep(struct matrix *m, struct matrix_case_result *r, bool table, struct error *err)
{
	if (!r->skipped && judge(m, r, err) < 0)
		return -1;
	matrix_case_json(m, r);
	if (matrix_write_json(m, err) < 0)
		return -1;
	return table ? matrix_write_table(m, err) : 0;
}

/* One case under way. */
struct running {
	struct matrix *m;
	struct matrix_case_result *r;
	size_t number;   /* of the arm that comes next */
	size_t of;       /* the most that may come */
	size_t later;    /* arms of the cases behind it */
	struct error *err;
	bool failed;
};

static int run_arm(void *context, size_t side, int block, int position, size_t turn, struct error *err)
{
	struct running *now = context;
	struct matrix *m = now->m;
	struct matrix_arm arm = {
		.side = side, .block = block, .position = position, .number = block < 0 ? turn : now->number};
	int64_t begun = clock_mono_ns();
	int got = matrix_arm_run(m, now->r->what, &arm, err);

	if (got >= 0 && *arm.status && strcmp(arm.status, "ok") != 0)
		say(m, "%s: %s %zu (%s): %s%s%s", now->r->what->label, block < 0 ? "warm-up" : "arm", arm.number + 1,
		    m->plan.sides[side].name, arm.status, *arm.why ? ": " : "", arm.why);
	if (got == 0) {
		m->timed++;
		m->timed_s += (double)(clock_mono_ns() - begun) / 1e9;
	}
	if (block >= 0 && got >= 0 && *arm.status) {
		now->number++;
		if (matrix_take_arm(m, now->r, &arm, err) < 0 || keep(m, now->r, false, err) < 0)
			got = -1;
	}
	free(arm.folder);
	return got;
}

/* Every gated metric has its answer, or one is worse: more pairs cannot make that good. */
static bool is_decided(void *context, size_t pairs)
{
	struct running *now = context;
	const struct comparison *c = &now->r->comparison;

	(void)pairs; /* it has been judged after the last arm */
	if (!now->r->has_comparison || c->rule != RULE_PAIRED || c->overall == OVERALL_UNDECIDED)
		return false;
	if (c->overall == OVERALL_REGRESSION || c->overall == OVERALL_TRADEOFF)
		return true;
	for (size_t i = 0; i < c->count; i++) {
		const struct compare_metric *metric = &c->metrics[i];

		if (metric->gated && metric->has_pairs && metric->paired.verdict == PAIRED_UNDECIDED)
			return false;
	}
	return true;
}

static void show_progress(void *context, size_t at, size_t of, size_t side)
{
	struct running *now = context;
	struct matrix *m = now->m;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (!m->progress)
		return;
	buf_printf(&text, "%s: arm %zu/%zu (%s)", now->r->what->label, at + 1, of, m->plan.sides[side].name);
	if (m->timed)
		buf_printf(&text, ", %s%s left", m->plan.until_decided ? "at most " : "about ",
			   units_seconds(m->timed_s / (double)m->timed * (double)(of - at + now->later)).text);
	m->progress(m->context, text.text);
}

/* A seed of its own for each case, by its place in the file: --only changes no other case's order. */
static uint64_t seed_of(const struct matrix *m, const struct matrix_case_result *r)
{
	return (uint64_t)m->plan.seed * UINT64_C(0xd1342543de82ef95) + (uint64_t)(r - m->results);
}

static enum trial_stop run_case(struct matrix *m, struct matrix_case_result *r, size_t later, struct error *err)
{
	struct running now = {.m = m, .r = r, .number = json_array_size(r->arms), .later = later};
	const struct trial_options options = {
		.sides = 2,
		.pairs = m->plan.pairs,
		.until_decided = m->plan.until_decided,
		.order = m->plan.order,
		.seed = seed_of(m, r),
		.warmup = m->plan.warmup,
		.done = json_array_size(r->arms),
		.run = run_arm,
		.decided = is_decided,
		.progress = show_progress,
		.context = &now,
	};

	return trial_run(&options, err);
}

static size_t arms_behind(const struct matrix *m, const struct matrix_case_result *r)
{
	size_t count = 0;

	for (const struct matrix_case_result *later = r + 1; later < m->results + m->plan.cases.count; later++)
		if (later->selected && !later->done)
			count += 2 * (m->plan.pairs + m->plan.warmup);
	return count;
}

static enum matrix_end finish_case(struct matrix *m, struct matrix_case_result *r, struct error *err)
{
	enum trial_stop stop;
	struct error later;

	if (r->what->model && !fs_exists(r->what->model)) {
		r->skipped = "model missing";
		say(m, "%s: model missing, skipped", r->what->label);
		r->done = true;
		return keep(m, r, true, err) < 0 ? MATRIX_TROUBLE : MATRIX_COMPLETE;
	}
	stop = run_case(m, r, arms_behind(m, r), err);
	r->done = stop == TRIAL_DONE || stop == TRIAL_DECIDED;
	if (keep(m, r, true, stop == TRIAL_FAILED ? &later : err) < 0)
		return MATRIX_TROUBLE;
	if (r->done)
		say(m, "%s: %s", r->what->label, overall_verdict_name(r->comparison.overall));
	return r->done ? MATRIX_COMPLETE : stop == TRIAL_INTERRUPTED ? MATRIX_INTERRUPTED : MATRIX_TROUBLE;
}

/* What an earlier process had finished stands in the tables, too. */
static int judge_old(struct matrix *m, struct error *err)
{
	for (size_t i = 0; i < m->plan.cases.count; i++) {
		struct matrix_case_result *r = &m->results[i];

		if (json_array_size(r->arms) == 0)
			continue;
		if (judge(m, r, err) < 0)
			return -1;
		matrix_case_json(m, r);
	}
	return 0;
}

enum matrix_end matrix_run(struct matrix *m, struct error *err)
{
	apart_catch_signals();
	if (judge_old(m, err) < 0)
		return MATRIX_TROUBLE;
	for (size_t i = 0; i < m->plan.cases.count; i++) {
		struct matrix_case_result *r = &m->results[i];
		enum matrix_end end;

		/* A skipped one is looked at again: its model may have come. */
		if (!r->selected || (r->done && json_array_size(r->arms)))
			continue;
		r->done = false;
		end = finish_case(m, r, err);
		if (end != MATRIX_COMPLETE)
			return end;
	}
	return matrix_write_json(m, err) < 0 || matrix_write_table(m, err) < 0 ? MATRIX_TROUBLE : MATRIX_COMPLETE;
}

bool matrix_is_reference(const struct matrix *m)
{
	return strcmp(m->plan.rule, "separation") == 0;
}

bool matrix_is_complete(const struct matrix *m)
{
	for (size_t i = 0; i < m->plan.cases.count; i++)
		if (m->results[i].selected && !m->results[i].done)
			return false;
	return true;
}

struct matrix_row *matrix_rows(const struct matrix *m, struct matrix_view *ret)
{
	struct matrix_row *rows = calloc(m->plan.cases.count, sizeof *rows);
	size_t count = 0;
	bool trusted = true;

	for (size_t i = 0; rows && i < m->plan.cases.count; i++) {
		const struct matrix_case_result *r = &m->results[i];

		if (!r->skipped && !r->has_comparison)
			continue;
		rows[count++] = (struct matrix_row){
			.label = r->what->label,
			.skipped = r->skipped,
			.comparison = r->has_comparison ? &r->comparison : NULL,
			.failed = r->failed,
			.refused = r->refused,
			.unfinished = !r->done,
		};
		if (r->has_comparison && r->comparison.overall != OVERALL_NEUTRAL &&
		    r->comparison.overall != OVERALL_UNDECIDED)
			trusted = false;
	}
	*ret = (struct matrix_view){
		.a = m->plan.sides[0].name,
		.b = m->plan.sides[1].name,
		.metrics = &m->metrics,
		.rows = rows,
		.count = count,
		.null = m->null,
		.trusted = trusted,
		.complete = matrix_is_complete(m),
	};
	return rows;
}
