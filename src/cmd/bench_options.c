#include "cmd/bench_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "judge/stats.h"
#include "trial/trial.h"

#define RUNS_MAX 1e6
#define SEED_MAX 9007199254740992.0 /* 2^53 */

#define AT(field) offsetof(struct bench_args, field)

const struct option bench_options[] = {
	{"warmup", 'w', OPTION_NUMBER, AT(warmup), "N", "unmeasured runs of each command first", "0", NULL, 0,
	 RUNS_MAX},
	{"runs", 'n', OPTION_NUMBER, AT(runs), "N", "runs of each command", "10, and more as fit into 3 s of each",
	 NULL, 1, RUNS_MAX, "a command's name is -N NAME"},
	{"runs", 'r', OPTION_NUMBER, AT(runs), "N", "the same", NULL, NULL, 1, RUNS_MAX},
	{"min-runs", 'm', OPTION_NUMBER, AT(min_runs), "N", "the least, without --runs", "10", NULL, 1, RUNS_MAX},
	{"max-runs", 'M', OPTION_NUMBER, AT(max_runs), "N", "the most, without --runs", "1000; with --until-decided 60",
	 NULL, 1, RUNS_MAX},
	{"until-decided", 0, OPTION_FLAG, AT(until_decided), NULL,
	 "stop as soon as every comparison is decided, asked after 8, 14, 24, 38 and 60 pairs", NULL},
	{"setup", 's', OPTION_LIST, AT(extras[BENCH_SETUP]), "CMD",
	 "run CMD once before all runs; this and the next three: once for all commands, or once for each", NULL},
	{"prepare", 'p', OPTION_LIST, AT(extras[BENCH_PREPARE]), "CMD", "run CMD before each run, untimed", NULL},
	{"conclude", 'C', OPTION_LIST, AT(extras[BENCH_CONCLUDE]), "CMD", "run CMD after each run, untimed", NULL},
	{"cleanup", 'c', OPTION_LIST, AT(extras[BENCH_CLEANUP]), "CMD", "run CMD once after all runs", NULL},
	{"parameter-scan", 'P', OPTION_WORDS, AT(scans), "VAR MIN MAX",
	 "{VAR} in commands and their names stands for each number from MIN to MAX; may be repeated", NULL, NULL, 3, 3},
	{"parameter-step-size", 'D', OPTION_TEXT, AT(step), "STEP", "of parameter scans", "1"},
	{"parameter-list", 'L', OPTION_WORDS, AT(lists), "VAR A,B,...",
	 "{VAR} stands for each of these; all combinations of all parameters run", NULL, NULL, 2, 2},
	{"shell", 'S', OPTION_TEXT, AT(shell), "SHELL",
	 "run commands by this shell (\"bash --norc\"), whose start-up is subtracted; none; default: /bin/sh; auto: "
	 "/bin/sh where a command needs a shell",
	 "auto"},
	{"name", 'N', OPTION_LIST, AT(names), "NAME", "what the next command is called in reports; may be repeated",
	 NULL},
	{"reference", 0, OPTION_TEXT, AT(reference), "CMD", "compare with this command, or with the one of this name",
	 "the first one"},
	{"ignore-failure", 'i', OPTION_FLAG, AT(ignore_failure), NULL,
	 "runs that fail count, too; those that time out are left out", NULL},
	{"input", 0, OPTION_TEXT, AT(input), "FILE", "standard input, from the start of FILE in each run", "/dev/null"},
	{"output", 0, OPTION_LIST, AT(extras[BENCH_OUTPUT]), "WHERE",
	 "null, pipe, inherit, or a file that gets the standard output of each run", "null"},
	{"show-output", 0, OPTION_FLAG, AT(show_output), NULL, "the same as --output inherit", NULL},
	{"timeout", 0, OPTION_NUMBER, AT(timeout_s), "S", "end a run after S seconds (TERM, 1 s later KILL)", "none",
	 NULL, 0, 1e9},
	{"margin", 0, OPTION_NUMBER, AT(margin), "PCT", "differences up to this do not matter", "1", NULL, 0, 1000},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT", "of the intervals, in percent or as a share (0.95)",
	 "95", NULL, 0.5, 99.999},
	{"seed", 0, OPTION_NUMBER, AT(seed), "N", "of the order of the runs", "a new one", NULL, 0, SEED_MAX},
	{"json", 0, OPTION_MAYBE, AT(json), "FILE", "print the results as JSON instead, or write them to FILE", NULL},
	{"export-json", 0, OPTION_TEXT, AT(export_json), "FILE",
	 "write the results as JSON, in hyperfine's form with more in it; - is standard output", NULL},
	{"export-csv", 0, OPTION_TEXT, AT(export_csv), "FILE", "the summary as CSV", NULL},
	{"export-markdown", 0, OPTION_TEXT, AT(export_markdown), "FILE", "the summary as a Markdown table", NULL},
	{"style", 0, OPTION_CHOICE, AT(style), "STYLE", "of what is printed", "auto",
	 "auto|basic|full|nocolor|color|none"},
	{"fail-on-slower", 0, OPTION_FLAG, AT(fail_on_slower), NULL, "exit with 1 where a command is slower", NULL},
	{"fail-on-undecided", 0, OPTION_FLAG, AT(fail_on_undecided), NULL, "exit with 4 where one is undecided", NULL},
	OPTIONS_END,
};

const struct option_elsewhere bench_options_elsewhere[] = {
	{"--command-name", "a command's name is -N NAME here"},
	{"--time-unit", "units are chosen by the figures, and exports have seconds"},
	{"-u", "units are chosen by the figures, and exports have seconds"},
	{"--sort", "commands stand in the order in which they were given"},
	{NULL, NULL},
};

const struct bench_args bench_options_defaults = {
	.shell = "auto",
	.style = "auto",
	.margin = 1,
	.confidence = 95,
	.seed = -1,
};

/* An export that could not be written would be noticed only after all the runs. */
static int check_export(const char *option, const char *path, struct error *err)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char folder[PATH_MAX];

	if (!path || !*path || strcmp(path, "-") == 0)
		return path && !*path ? error_set(err, "--%s: an empty name is no file", option) : 0;
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	if (fs_is_dir(path))
		return error_set(err, "--%s: %s is a folder", option, path);
	if (access(fs_exists(path) ? path : folder, W_OK) < 0)
		return error_set(err, "--%s: %s cannot be written: %s", option, path, strerror(errno));
	return 0;
}

static bool is_same_folder(const char *a, const char *b)
{
	const char *ends[] = {strrchr(a, '/'), strrchr(b, '/')}, *paths[] = {a, b};
	struct stat st[2];

	for (int i = 0; i < 2; i++) {
		char folder[PATH_MAX];

		snprintf(folder, sizeof folder, "%.*s", ends[i] ? (int)(ends[i] - paths[i] + 1) : 1,
			 ends[i] ? paths[i] : ".");
		if (stat(folder, &st[i]) < 0)
			return false;
	}
	return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

/* /dev/null and its like take more than one; standard output does not. */
static bool is_same_file(const char *a, const char *b)
{
	const char *a_name = strrchr(a, '/'), *b_name = strrchr(b, '/');
	bool a_there, b_there;
	struct stat x, y;

	if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
		return strcmp(a, b) == 0;
	a_there = stat(a, &x) == 0;
	b_there = stat(b, &y) == 0;
	if (a_there && b_there)
		return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	return !a_there && !b_there && strcmp(a_name ? a_name + 1 : a, b_name ? b_name + 1 : b) == 0 &&
	       is_same_folder(a, b);
}

static int check_exports(const struct bench_args *a, struct error *err)
{
	const struct {
		const char *option, *path;
	} exports[] = {
		{"json", a->json && !*a->json ? "-" : a->json},
		{"export-json", a->export_json},
		{"export-csv", a->export_csv},
		{"export-markdown", a->export_markdown},
	};

	for (size_t i = 0; i < sizeof exports / sizeof *exports; i++) {
		if (check_export(exports[i].option, exports[i].path, err) < 0)
			return -1;
		for (size_t k = 0; exports[i].path && k < i; k++)
			if (exports[k].path && is_same_file(exports[i].path, exports[k].path))
				return error_set(err, "--%s and --%s: both would write to %s", exports[k].option,
						 exports[i].option,
						 strcmp(exports[i].path, "-") ? exports[i].path : "standard output");
	}
	return 0;
}

bool bench_options_uses_stdout(const struct bench_args *a)
{
	const char *const paths[] = {a->export_json, a->export_csv, a->export_markdown};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (paths[i] && strcmp(paths[i], "-") == 0)
			return true;
	return a->json && !*a->json;
}

/* The runs of the last look. */
static double looked_at(const struct bench_args *a)
{
	return (double)trial_pairs_to_look(a->max_runs > 0 ? (size_t)a->max_runs : stats_looks[STATS_LOOKS - 1]);
}

int bench_options_check(const struct bench_args *a, struct error *err)
{
	if (options_whole("warmup", a->warmup, err) < 0 || options_whole("runs", a->runs, err) < 0 ||
	    options_whole("min-runs", a->min_runs, err) < 0 || options_whole("max-runs", a->max_runs, err) < 0 ||
	    (a->seed >= 0 && options_whole("seed", a->seed, err) < 0))
		return -1;
	if (a->confidence >= 1 && a->confidence < 50)
		return error_set(err, "option '--confidence': %.10g percent is less than 50", a->confidence);
	if (a->max_runs > 0 && a->min_runs > a->max_runs)
		return error_set(err, "--min-runs %.10g is more than --max-runs %.10g", a->min_runs, a->max_runs);
	if (a->until_decided && a->runs == 0 && a->min_runs > looked_at(a))
		return error_set(err, "--until-decided makes at most %.10g runs here, fewer than --min-runs %.10g",
				 looked_at(a), a->min_runs);
	if (a->step && !a->scans.count)
		return error_set(err, "--parameter-step-size: there is no --parameter-scan that it could be of");
	if (a->show_output && a->extras[BENCH_OUTPUT].count)
		return error_set(err, "--show-output and --output cannot both be given");
	if (a->input && access(a->input, R_OK) < 0)
		return error_set(err, "--input: %s: %s", a->input, strerror(errno));
	return check_exports(a, err);
}

static int read_parameters(const struct bench_args *a, struct bench_parameters *p, struct error *err)
{
	const char **s = a->scans.items, **l = a->lists.items;

	for (size_t i = 0; i + 2 < a->scans.count; i += 3)
		if (bench_parameters_scan(p, s[i], s[i + 1], s[i + 2], a->step, err) < 0)
			return error_prefix(err, "--parameter-scan");
	for (size_t i = 0; i + 1 < a->lists.count; i += 2)
		if (bench_parameters_list(p, l[i], l[i + 1], err) < 0)
			return error_prefix(err, "--parameter-list");
	return 0;
}

static bool uses(const struct bench_texts *texts, const char *placeholder)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strstr(texts->items[i], placeholder))
			return true;
	return false;
}

/* The same command once more for each value: hardly what was meant. */
static void note_unused(const struct bench_request *r)
{
	for (size_t i = 0; i < r->parameters.count; i++) {
		const char *name = r->parameters.items[i].name;
		CLEANUP(buf_release) struct buf placeholder;
		bool used;

		buf_init(&placeholder);
		buf_printf(&placeholder, "{%s}", name);
		used = uses(&r->lines, placeholder.text) || uses(&r->names, placeholder.text);
		for (size_t k = 0; k < BENCH_EXTRAS; k++)
			used |= uses(&r->extras[k], placeholder.text);
		if (!used)
			fprintf(stderr, "assay bench: parameter '%s': {%s} stands in no command, so that each value "
					"runs the same\n",
				typed_show(name, strlen(name)).text, typed_show(name, strlen(name)).text);
	}
}

int bench_options_plan(const struct bench_args *a, char *const *commands, size_t count, struct bench *ret,
		       struct bench_shell *ret_shell, struct error *err)
{
	CLEANUP(bench_parameters_release) struct bench_parameters parameters = {0};
	struct bench_request r = {
		.lines = {(const char *const *)commands, count},
		.names = {a->names.items, a->names.count},
		.reference = a->reference,
		.shell = a->shell,
	};
	const char *inherit = "inherit";
	int status;

	for (size_t i = 0; i < BENCH_EXTRAS; i++)
		r.extras[i] = (struct bench_texts){a->extras[i].items, a->extras[i].count};
	if (a->show_output)
		r.extras[BENCH_OUTPUT] = (struct bench_texts){&inherit, 1};
	status = read_parameters(a, &parameters, err);
	r.parameters = parameters;
	if (status < 0 || bench_plan(&r, ret, ret_shell, err) < 0)
		return -1;
	note_unused(&r);
	return 0;
}
