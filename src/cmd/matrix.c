/* assay matrix: is B better than A, over many cases, with both sides run by assay itself, interleaved. */
#include "cmd/command.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "cmd/matrix_plan.h"
#include "exec/apart.h"
#include "report/comparison.h"
#include "trial/matrix.h"

#define NOTE_COLUMNS 400

/* The line that shows progress, to be wiped before anything else is written. */
static bool line_is_shown;

static void wipe_line(void)
{
	if (line_is_shown)
		fputs("\r\033[K", stderr);
	line_is_shown = false;
}

static void say(void *context, const char *text)
{
	CLEANUP(buf_release) struct buf line;

	(void)context;
	buf_init(&line);
	utf8_append_line(&line, text, 1000);
	wipe_line();
	fprintf(stderr, "assay: %s\n", line.text);
}

static void show_progress(void *context, const char *text)
{
	CLEANUP(buf_release) struct buf line;

	(void)context;
	buf_init(&line);
	utf8_append_line(&line, text, 78);
	wipe_line();
	fprintf(stderr, "%s", line.text);
	fflush(stderr);
	line_is_shown = true;
}

struct sentences {
	const char *label; /* NULL once it has been written */
	struct buf *out;
};

static void put_sentence(void *context, enum sentence_kind kind, const char *sentence)
{
	struct sentences *s = context;

	(void)kind;
	if (s->label) {
		buf_putc(s->out, '\n');
		utf8_append_line(s->out, s->label, 90);
		buf_puts(s->out, ":\n");
		s->label = NULL;
	}
	buf_puts(s->out, "  ");
	wrap_append(s->out, sentence, 2, 2, 100);
}

/* What was decided of each case, in words. */
static void put_sentences(const struct matrix *m, const struct matrix_view *view, struct buf *out)
{
	for (size_t i = 0; i < view->count; i++) {
		struct comparison_view v = {
			.comparison = view->rows[i].comparison,
			.metrics = view->metrics,
			.a = view->a,
			.b = view->b,
			.confidence = m->plan.confidence,
			.reference = matrix_is_reference(m),
		};
		struct sentences s = {.label = view->rows[i].label, .out = out};

		if (v.comparison)
			comparison_sentences(&v, put_sentence, &s);
	}
}

static int put_answer(const struct matrix *m, const struct matrix_args *a)
{
	struct matrix_view view;
	CLEANUP(free_cleanup) struct matrix_row *rows = matrix_rows(m, &view);
	CLEANUP(json_cleanup) json_t *root = a->json ? matrix_json(m) : NULL;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	wipe_line();
	if (!rows || (a->json && !root))
		return -1;
	if (a->json)
		comparison_print_json(root, &text);
	else if (a->markdown)
		matrix_table_markdown(&view, &text);
	else
		matrix_table_text(&view, &text);
	if (!a->json && !a->markdown)
		put_sentences(m, &view, &text);
	fwrite(text.text, 1, text.length, stdout);
	return text.failed ? -1 : 0;
}

/* The worst that a case has to say. */
static int answer_status(const struct matrix *m, const struct matrix_args *a)
{
	bool regression = false, undecided = false, nothing = false;

	for (size_t i = 0; i < m->plan.cases.count; i++) {
		const struct matrix_case_result *r = &m->results[i];
		const struct comparison *c = &r->comparison;

		if (!r->has_comparison)
			continue;
		regression |= c->overall == OVERALL_REGRESSION ||
			      (c->overall == OVERALL_TRADEOFF && !a->allow_tradeoff);
		undecided |= c->overall == OVERALL_UNDECIDED;
		for (int side = 0; side < 2; side++) {
			if (side ? c->usable_b : c->usable_a)
				continue;
			fprintf(stderr, "assay matrix: case '%s': no run of side %s (%s) can be counted\n",
				r->what->label, side ? "B" : "A", m->plan.sides[side].name);
			nothing = true;
		}
	}
	if (nothing)
		return EXIT_TROUBLE;
	return regression ? EXIT_DIFFERENT : undecided && a->fail_on_undecided ? EXIT_UNDECIDED : EXIT_DONE;
}

/* What of --noise will not be used: a misspelt name, a case that it does not know. */
static void warn_noise(const struct matrix *m)
{
	CLEANUP(warnings_release) struct warnings notes;

	warnings_init(&notes);
	for (size_t i = 0; m->has_noise && i < m->plan.cases.count; i++) {
		const char *label = m->results[i].what->label;

		if (!m->results[i].selected)
			continue;
		if (!noisefile_knows(&m->noise, label))
			warnings_add(&notes, "%s: no floors of case '%s' in it", m->plan.noise, label);
		noisefile_unknown(&m->noise, label, &m->metrics, m->plan.noise, &notes);
	}
	for (size_t i = 0; i < notes.count; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, notes.texts[i], NOTE_COLUMNS);
		say(NULL, line.text);
	}
	if (notes.lost)
		fprintf(stderr, "assay: ... and %zu more such notes\n", notes.lost);
}

static int run_matrix(struct matrix *m, const struct matrix_args *a)
{
	struct error err;
	enum matrix_end end;

	m->say = a->quiet ? NULL : say;
	m->progress = !a->quiet && isatty(STDERR_FILENO) ? show_progress : NULL;
	if (!a->quiet)
		warn_noise(m);
	end = matrix_run(m, &err);
	if (put_answer(m, a) < 0) {
		fprintf(stderr, "assay matrix: out of memory for the table\n");
		return EXIT_TROUBLE;
	}
	if (end == MATRIX_TROUBLE) {
		fprintf(stderr, "assay matrix: %s\n", err.text);
		return EXIT_TROUBLE;
	}
	if (end == MATRIX_INTERRUPTED) {
		fprintf(stderr, "assay matrix: interrupted; what was finished is kept: assay matrix --resume %s\n",
			m->folder);
		return 128 + (apart_signal() ? apart_signal() : SIGINT);
	}
	if (!a->quiet)
		say(NULL, m->folder);
	return answer_status(m, a);
}

static int begin(struct matrix *m, const struct matrix_args *a, char **words, struct error *err)
{
	struct matrix_plan plan = {.seed = 0};
	int failed;

	if (a->resume)
		return matrix_args_check_resume(a, words, err) < 0 ? -1 : matrix_resume(m, a->resume, err);
	failed = matrix_args_plan(a, words, &plan, err) < 0 || matrix_begin(m, &plan, a->out, err) < 0;
	matrix_plan_release(&plan);
	return failed ? -1 : 0;
}

extern const struct command cmd_matrix;

static int run(int argc, char **argv)
{
	struct matrix_args args = matrix_args_none;
	CLEANUP(matrix_release) struct matrix m;
	struct error err;
	int rest, status;

	matrix_init(&m);
	status = options_parse(&cmd_matrix, argc, argv, &args, &rest, &err);
	if (status > 0) {
		options_release(&cmd_matrix, &args);
		return EXIT_DONE;
	}
	if (status == 0)
		status = begin(&m, &args, argv + rest, &err);
	if (status < 0)
		fprintf(stderr, "assay matrix: %s\n", err.text);
	status = status < 0 ? EXIT_USAGE : run_matrix(&m, &args);
	options_release(&cmd_matrix, &args);
	return status;
}

const struct command cmd_matrix = {
	.name = "matrix",
	.summary = "run both sides of a comparison over many cases, and judge them",
	.usage = "[options] CASES.json --a NAME=BIN_DIR --b NAME=BIN_DIR",
	.description = "Runs each case of CASES.json with the binaries of both folders, in randomised\n"
		       "balanced blocks, each arm in a fresh process that is recorded as `assay run`\n"
		       "does, and tells for each case whether B is better. What has been finished is\n"
		       "kept whatever happens; --resume goes on. Exit status 1: a regression (or a\n"
		       "tradeoff), 3: a case of which nothing can be counted.",
	.options = matrix_options,
	.examples = "# two builds, eight pairs of runs for each case\n"
		    "assay matrix cases.json --a old=build-old/bin --b new=build/bin\n"
		    "# as many pairs as it takes, one case only\n"
		    "assay matrix cases.json --a old=o --b new=n --until-decided --only '^pp512$'\n"
		    "# how much the machine alone makes differ, for --noise\n"
		    "assay matrix cases.json --a x=build/bin --b y=build/bin -o null && assay noise null/matrix.json\n"
		    "# go on after a Ctrl-C\n"
		    "assay matrix --resume assay-runs/2026-11-29T17-15-41-matrix\n",
	.run = run,
	.mixed = true,
};
