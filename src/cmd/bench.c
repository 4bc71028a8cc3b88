/* assay bench: how long commands take, and which is faster. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cmd/bench_options.h"
#include "cmd/bench_progress.h"
#include "cmd/interrupt.h"
#include "cmd/terminal.h"
#include "judge/bench.h"
#include "report/bench_report.h"
#include "trial/bench.h"
#include "trial/bench_plan.h"

#define LEAST_RUNS 10
#define MOST_RUNS 1000
#define NAMES_NOT_SHELL "-N names a command here; hyperfine's -N is --shell none"

static bool has_style(const struct bench_args *a, const char *names)
{
	size_t length = strlen(a->style);

	for (const char *at = names; (at = strstr(at, a->style)); at += length)
		if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Replaces the file whole, or leaves it. "-" is standard output. */
static int put_file(const char *option, const char *path, const struct buf *text, struct error *err)
{
	if (text->failed)
		return error_set(err, "--%s: out of memory", option);
	if (strcmp(path, "-") == 0)
		fwrite(text->text, 1, text->length, stdout);
	else if (fs_write_file(path, text->text, text->length, err) < 0)
		return error_prefix(err, "--%s", option);
	return 0;
}

static int put_json(const char *option, const char *path, const struct bench *b, const struct bench_answer *answer,
		    struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = bench_json(b, answer);
	CLEANUP(free_cleanup) char *printed = root ? json_print(root) : NULL;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (!printed)
		return error_set(err, "--%s: out of memory", option);
	buf_printf(&text, "%s\n", printed);
	return put_file(option, path, &text, err);
}

typedef void put_report(const struct bench *b, const struct bench_answer *answer, struct buf *out);

static int put_export(const char *option, const char *path, put_report *put, const struct bench *b,
		      const struct bench_answer *answer, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (!path)
		return 0;
	put(b, answer, &text);
	return put_file(option, path, &text, err);
}

/* All of them are tried; each failure is said. Returns how many failed. */
static int put_exports(const struct bench_args *a, const struct bench *b, const struct bench_answer *answer)
{
	struct error errors[4];
	int failed = 0;

	failed += a->export_json && put_json("export-json", a->export_json, b, answer, &errors[failed]) < 0;
	failed += a->json && put_json("json", *a->json ? a->json : "-", b, answer, &errors[failed]) < 0;
	failed += put_export("export-csv", a->export_csv, bench_csv, b, answer, &errors[failed]) < 0;
	failed += put_export("export-markdown", a->export_markdown, bench_markdown, b, answer, &errors[failed]) < 0;
	for (int i = 0; i < failed; i++)
		fprintf(stderr, "assay bench: %s\n", errors[i].text);
	return failed;
}

/* The report goes to standard output, unless that is where an export goes. */
static void put_text(const struct bench_args *a, const struct bench *b, const struct bench_answer *answer)
{
	CLEANUP(buf_release) struct buf text;
	bool colour = has_style(a, "full color") || (has_style(a, "auto") && terminal_has_colour(STDOUT_FILENO));

	buf_init(&text);
	if (has_style(a, "none") || bench_options_uses_stdout(a))
		return;
	bench_text(b, answer, colour, &text);
	fwrite(text.text, 1, text.length, stdout);
}

static int status_of(const struct bench_args *a, const struct bench_answer *answer)
{
	if (a->fail_on_slower && bench_has_slower(answer))
		return EXIT_DIFFERENT;
	return a->fail_on_undecided && bench_has_undecided(answer) ? EXIT_UNDECIDED : EXIT_DONE;
}

static bool has_figures(const struct bench_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		if (answer->items[i].counted)
			return true;
	return false;
}

/* What was measured is shown and kept, whatever ended it. */
static int report(const struct bench_args *a, const struct bench *b, int *ret_status)
{
	CLEANUP(bench_answer_release) struct bench_answer answer = {0};
	struct error err;

	if (bench_judge(b, &answer, &err) < 0) {
		fprintf(stderr, "assay bench: %s\n", err.text);
		return -1;
	}
	if (b->state != BENCH_DONE && !has_figures(&answer))
		return 0;
	put_text(a, b, &answer);
	*ret_status = status_of(a, &answer);
	return put_exports(a, b, &answer) ? -1 : 0;
}

static size_t least_runs(const struct bench_args *a)
{
	/* The first looks are at fewer runs than the default's least. */
	double least = a->min_runs > 0 ? a->min_runs : a->until_decided ? 0 : LEAST_RUNS;

	return (size_t)(a->max_runs > 0 && a->max_runs < least ? a->max_runs : least);
}

static size_t most_runs(const struct bench_args *a)
{
	double most = a->until_decided ? (double)stats_looks[STATS_LOOKS - 1] : MOST_RUNS;

	most = a->max_runs > 0 ? a->max_runs : most;
	return (size_t)(most > a->min_runs ? most : a->min_runs);
}

static int measure(const struct bench_args *a, struct timed *timed, struct bench *b, const struct bench_shell *shell)
{
	struct bench_progress progress = {.bench = b};
	struct bench_execution x = {
		.timed = timed,
		.runs = (size_t)a->runs,
		.least = least_runs(a),
		.most = most_runs(a),
		.until_decided = a->until_decided,
		.ignore_failure = a->ignore_failure,
		.input = a->input,
		.timeout_ns = (int64_t)(a->timeout_s * 1e9),
		.shell = shell->hooks,
		.empty = shell->empty,
		.stop = &interrupted_by,
		.context = &progress,
	};
	struct error err;
	int got, status = EXIT_DONE;

	if (isatty(STDERR_FILENO) && has_style(a, "auto full nocolor"))
		x.progress = bench_progress_show;
	b->seed = options_seed(a->seed);
	b->warmup = (size_t)a->warmup;
	b->confidence = a->confidence > 1 ? a->confidence / 100 : a->confidence;
	b->margin = a->margin / 100;
	b->looks = a->until_decided ? STATS_LOOKS : 1;
	got = bench_execute(b, &x, &err);
	bench_progress_clear(&progress);
	if (report(a, b, &status) < 0)
		status = EXIT_TROUBLE;
	fflush(stdout); /* so that the reason stands behind the figures */
	if (got < 0) {
		fprintf(stderr, "assay bench: %s\n", err.text);
		return EXIT_TROUBLE;
	}
	if (got > 0)
		fprintf(stderr, "assay bench: interrupted\n");
	return got > 0 ? 128 + interrupted_by : status;
}

/* One name alone that holds blanks may be a command's line behind hyperfine's -N. */
static bool looks_like_no_shell(const struct bench_args *a)
{
	return a->names.count == 1 && strpbrk(a->names.items[0], " \t") != NULL;
}

/* The starter comes first, while this process is small. */
static int run_with(const struct bench_args *a, char *const *lines, size_t count)
{
	CLEANUP(bench_release) struct bench b = {0};
	CLEANUP(bench_shell_release) struct bench_shell shell = {0};
	struct timed *timed;
	struct error err;
	int status;

	timed = timed_new(&err);
	if (!timed) {
		fprintf(stderr, "assay bench: %s\n", err.text);
		return EXIT_TROUBLE;
	}
	if (bench_options_plan(a, lines, count, &b, &shell, &err) < 0) {
		fprintf(stderr, "assay bench: %s\n", err.text);
		timed_free(timed);
		return EXIT_USAGE;
	}
	if (looks_like_no_shell(a))
		fprintf(stderr, "assay bench: " NAMES_NOT_SHELL "\n");
	interrupt_catch(0); /* the first one ends the measuring and keeps what there is */
	status = measure(a, timed, &b, &shell);
	timed_free(timed);
	return status;
}

static int run(int argc, char **argv)
{
	struct bench_args args = bench_options_defaults;
	struct error err;
	int rest, status;

	status = options_parse(&cmd_bench, argc, argv, &args, &rest, &err);
	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && !argv[rest])
		status = error_set(&err, "no command given; %susage: assay bench [options] COMMAND [COMMAND...]",
				   args.names.count ? NAMES_NOT_SHELL "; " : "");
	if (status == 0)
		status = bench_options_check(&args, &err);
	if (status < 0)
		fprintf(stderr, "assay bench: %s\n", err.text);
	status = status < 0 ? EXIT_USAGE : run_with(&args, argv + rest, (size_t)(argc - rest));
	options_release(&cmd_bench, &args);
	return status;
}

const struct command cmd_bench = {
	.name = "bench",
	.summary = "how long commands take, and which is faster",
	.usage = "[options] COMMAND [COMMAND...]",
	.description = "Each COMMAND is one word for your shell: quote it. The commands run in turn, in\n"
		       "blocks of random order, so that a machine that drifts favours none; each is\n"
		       "compared with the first one, or with --reference, by pairs of neighbouring\n"
		       "runs. A line that needs no shell runs without one; where one does, all run by\n"
		       "/bin/sh, whose start-up is measured and subtracted. Options may stand behind\n"
		       "the commands, too; everything behind -- is a command.",
	.options = bench_options,
	.mixed = true,
	.elsewhere = bench_options_elsewhere,
	.examples = "# which is faster?\n"
		    "assay bench 'gzip -kc file' 'zstd -c file'\n"
		    "# until every comparison is decided, for a script\n"
		    "assay bench --until-decided --export-json out.json ./old ./new\n"
		    "# a scan, each run with cold files\n"
		    "assay bench -P n 1 8 --prepare 'make clean' 'make -j{n}'\n",
	.run = run,
};
