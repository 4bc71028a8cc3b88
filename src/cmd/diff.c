/* assay diff: finished runs of side A against finished runs of side B. */
#include "cmd/command.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/spell.h"
#include "base/utf8.h"
#include "cmd/results.h"
#include "cmd/terminal.h"
#include "judge/compare.h"
#include "report/comparison.h"
#include "store/armfile.h"
#include "store/noisefile.h"

#define NAME_COLUMNS 400
#define NAMES_MAX 4096 /* metric names that a misspelt one is compared with */

struct diff_args {
	struct option_list b, metrics, labels;
	const char *rule, *noise, *noise_case;
	double margin, confidence;
	bool json, markdown, allow_tradeoff, fail_on_undecided;
};

#define AT(member) offsetof(struct diff_args, member)

static const struct option options[] = {
	{"vs", 0, OPTION_WORDS, AT(b), "B...", "the runs of side B: the words up to the next option", NULL, NULL, 1,
	 INFINITY},
	{"rule", 0, OPTION_CHOICE, AT(rule), "RULE", "what decides (auto: pairs, where there are any)", "auto",
	 "auto|paired|separation"},
	{"metric", 0, OPTION_WORDS, AT(metrics), "NAME...",
	 "judge these alone, the words up to the next option (--metric=NAME takes one)", "all", NULL, 1, INFINITY},
	{"margin", 0, OPTION_NUMBER, AT(margin), "PCT",
	 "percent that a change must be beyond to count, where that is more than a metric's own floor", "0", NULL, 0,
	 1000},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT", "of the intervals, in percent or as a share (0.95)",
	 "95", NULL, 0.5, 99.9999},
	{"noise", 0, OPTION_TEXT, AT(noise), "FILE", "floors of noise, as `assay noise` makes them"},
	{"noise-case", 0, OPTION_TEXT, AT(noise_case), "LABEL", "the label in that file, where it has several"},
	{"labels", 0, OPTION_WORDS, AT(labels), "A B", "names of the sides in what is printed", "A B", NULL, 2, 2},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print JSON"},
	{"markdown", 0, OPTION_FLAG, AT(markdown), NULL, "print Markdown"},
	{"allow-tradeoff", 0, OPTION_FLAG, AT(allow_tradeoff), NULL,
	 "status 0 where some metrics are better and some worse"},
	{"fail-on-undecided", 0, OPTION_FLAG, AT(fail_on_undecided), NULL, "status 4 where that is the answer"},
	OPTIONS_END,
};

/* What is compared. */
struct sides {
	struct metric_set metrics;
	struct arms a, b;
	bool foreign; /* some came from another tool's file */
	json_t *files[2]; /* real paths of what A and B hold, as the keys of an object */
	size_t again[2];  /* words that named one of them once more */
};

static void sides_release(struct sides *s)
{
	arms_release(&s->a);
	arms_release(&s->b);
	json_decref(s->files[0]);
	json_decref(s->files[1]);
	metric_set_release(&s->metrics);
}

static void say(const char *text)
{
	fprintf(stderr, "assay diff: %s\n", text);
}

/* 1: that side has the file already, by whatever name. One that cannot be resolved is told by who reads it. */
static int note_file(struct sides *s, const char *path, int side, struct error *err)
{
	CLEANUP(buf_release) struct buf file;
	CLEANUP(free_cleanup) char *real = NULL;

	buf_init(&file);
	buf_puts(&file, path);
	if (fs_is_dir(path))
		buf_puts(&file, "/run.json");
	real = file.failed ? NULL : realpath(file.text, NULL);
	if (!real)
		return 0;
	if (json_object_get(s->files[side], real)) {
		s->again[side]++;
		return 1;
	}
	return json_object_set_new_nocheck(s->files[side], real, json_true()) < 0 ? error_set(err, "out of memory") : 0;
}

static int read_path(struct sides *s, const char *path, struct arms *arms, struct error *err)
{
	int noted = note_file(s, path, arms == &s->b, err);

	if (noted)
		return noted > 0 ? 0 : -1;
	return fs_is_dir(path) ? armfile_read(path, &s->metrics, arms, err)
			       : results_read(path, "", &s->metrics, arms, &s->foreign, err);
}

/* A word of the command line: a path, or a pattern that the shell left as it was. */
static int read_word(struct sides *s, const char *word, struct arms *arms, struct error *err)
{
	glob_t found;
	int got = 0;

	if (fs_exists(word) || !strpbrk(word, "*?["))
		return read_path(s, word, arms, err);
	if (glob(word, 0, NULL, &found) != 0)
		return error_set(err, "%s: no file or folder is called so", word);
	for (size_t i = 0; i < found.gl_pathc && got == 0; i++)
		got = read_path(s, found.gl_pathv[i], arms, err);
	globfree(&found);
	return got;
}

static int read_side(struct sides *s, char *const *words, size_t count, struct arms *arms, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (read_word(s, words[i], arms, err) < 0)
			return -1;
	return 0;
}

/* A run counts once on a side; on both sides it speaks for neither. */
static void warn_repeated(const struct sides *s, const struct comparison *c)
{
	size_t shared = 0;
	const char *path;
	json_t *value;

	for (int side = 0; side < 2; side++)
		if (s->again[side])
			fprintf(stderr, "assay diff: side %s: paths that name a file which it has already: %zu; "
					"each file counts once\n",
				side ? "B" : "A", s->again[side]);
	json_object_foreach(s->files[0], path, value)
		shared += json_object_get(s->files[1], path) != NULL;
	if (shared && !c->same_runs)
		fprintf(stderr, "assay diff: %zu file%s on both sides\n", shared, shared == 1 ? " is" : "s are");
}

static int unknown_metric(const struct metric_set *set, const char *typed, struct error *err)
{
	const char *names[NAMES_MAX];
	size_t count = 0;
	const char *nearest;

	for (; count < set->count && count < NAMES_MAX; count++)
		names[count] = set->items[count].name;
	nearest = spell_nearest(typed, names, count);
	return error_set(err, "option '--metric': there is no metric '%s' in these runs%s%s%s%s",
			 typed_show(typed, strlen(typed)).text, nearest ? "; did you mean '" : "",
			 nearest ? nearest : "", nearest ? "'?" : "",
			 !nearest && fs_exists(typed) ? "; a file may follow --metric=NAME, not --metric NAME" : "");
}

/* One flag per metric, owned by the caller; NULL in *ret where all are judged. */
static int select_metrics(const struct diff_args *args, const struct metric_set *set, bool **ret, struct error *err)
{
	CLEANUP(free_cleanup) bool *selected = calloc(set->count + 1, sizeof *selected);

	if (!selected)
		return error_set(err, "out of memory");
	for (size_t i = 0; i < args->metrics.count; i++) {
		size_t metric = metric_find(set, args->metrics.items[i]);

		if (metric == SIZE_MAX)
			return unknown_metric(set, args->metrics.items[i], err);
		selected[metric] = true;
	}
	*ret = args->metrics.count ? selected : NULL;
	if (*ret)
		selected = NULL; /* handed over */
	return 0;
}

static void say_notes(const struct warnings *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, notes->texts[i], NAME_COLUMNS);
		say(line.text);
	}
	if (notes->lost)
		fprintf(stderr, "assay diff: ... and %zu more such names\n", notes->lost);
}

/* One floor per metric, owned by the caller; NULL in *ret without a file. */
static int read_noise(const struct diff_args *args, const struct metric_set *set, double **ret, struct error *err)
{
	CLEANUP(noisefile_release) struct noisefile noise;
	CLEANUP(free_cleanup) char *labels = NULL;
	const char *label = args->noise_case;
	struct warnings notes;
	double *floors;

	noisefile_init(&noise);
	if (!args->noise)
		return label ? error_set(err, "option '--noise-case' needs a file: --noise FILE") : 0;
	if (noisefile_read(args->noise, &noise, err) < 0)
		return -1;
	labels = noisefile_labels(&noise);
	if (!label && !noise.flat && !(label = noisefile_only_label(&noise)))
		return error_set(err, "%s has floors of several labels: name one with --noise-case: %s", args->noise,
				 labels ? labels : "");
	floors = calloc(set->count + 1, sizeof *floors);
	if (!floors)
		return error_set(err, "out of memory");
	if (!noisefile_floors(&noise, label, set, floors)) {
		free(floors);
		return error_set(err, "%s has no floors of '%s', but of: %s", args->noise,
				 typed_show(label, strlen(label)).text, labels ? labels : "");
	}
	warnings_init(&notes);
	noisefile_unknown(&noise, label, set, args->noise, &notes);
	say_notes(&notes);
	warnings_release(&notes);
	if (!noisefile_trusted(&noise, label))
		say("the floors of --noise are not to be trusted: their null comparison found a difference");
	*ret = floors;
	return 0;
}

static void warn_alone(const char *side, const char *name)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, name, NAME_COLUMNS);
	fprintf(stderr, "assay diff: only side %s has '%s'\n", side, line.text);
}

/* Names that one side alone has, where files of other tools are paired by name. -1: none is on both. */
static int check_names(const struct sides *s, const struct comparison *c, struct error *err)
{
	size_t common = 0;

	if (!s->foreign || !c->usable_a || !c->usable_b)
		return 0;
	for (size_t i = 0; i < c->count; i++)
		common += c->metrics[i].a_count && c->metrics[i].b_count;
	if (!common)
		return error_set(err, "no benchmark is on both sides: their names are paired, and have none in common");
	for (size_t i = 0; i < c->count; i++) {
		const struct compare_metric *m = &c->metrics[i];

		if (!m->a_count || !m->b_count)
			warn_alone(m->a_count ? "A" : "B", s->metrics.items[m->metric].name);
	}
	return 0;
}

static int print(const struct diff_args *args, const struct comparison_view *v, struct error *err)
{
	CLEANUP(buf_release) struct buf out;
	CLEANUP(json_cleanup) json_t *root = NULL;

	buf_init(&out);
	if (args->json) {
		root = comparison_json(v);
		if (root)
			comparison_print_json(root, &out);
		out.failed |= !root;
	} else {
		(args->markdown ? comparison_markdown : comparison_text)(v, &out);
	}
	if (out.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(out.text, 1, out.length, stdout);
	return 0;
}

static int status_of(const struct diff_args *args, enum overall_verdict verdict)
{
	switch (verdict) {
	case OVERALL_REGRESSION:
		return EXIT_DIFFERENT;
	case OVERALL_TRADEOFF:
		return args->allow_tradeoff ? EXIT_DONE : EXIT_DIFFERENT;
	case OVERALL_UNDECIDED:
		return args->fail_on_undecided ? EXIT_UNDECIDED : EXIT_DONE;
	default:
		return EXIT_DONE;
	}
}

static void warn_unusable(const struct comparison *c)
{
	if (!c->usable_a || !c->usable_b)
		fprintf(stderr, "assay diff: warning: %s no usable run (all failed or were traced), so nothing is "
				"compared\n",
			c->usable_a ? "side B has" : c->usable_b ? "side A has" : "neither side has");
}

static enum compare_rule rule_of(const char *name)
{
	if (strcmp(name, "separation") == 0)
		return RULE_SEPARATION;
	return strcmp(name, "paired") == 0 ? RULE_PAIRED : RULE_AUTO;
}

/* Returns the exit status; -1 with *err for wrong input. */
static int diff(const struct diff_args *args, char *const *a, size_t a_count, struct error *err)
{
	CLEANUP(sides_release) struct sides s = {.files = {json_object(), json_object()}};
	CLEANUP(comparison_release) struct comparison c = {0};
	CLEANUP(free_cleanup) bool *selected = NULL;
	CLEANUP(free_cleanup) double *noise = NULL;
	struct compare_options o = {.rule = rule_of(args->rule), .margin = args->margin / 100, .looks = 1};
	struct comparison_view v = {.comparison = &c, .metrics = &s.metrics, .a = "A", .b = "B"};

	o.confidence = v.confidence = args->confidence < 1 ? args->confidence : args->confidence / 100;
	o.reference = v.reference = o.rule == RULE_SEPARATION;
	v.colour = terminal_has_colour(STDOUT_FILENO);
	if (args->labels.count) {
		v.a = args->labels.items[args->labels.count - 2];
		v.b = args->labels.items[args->labels.count - 1];
	}
	if (!s.files[0] || !s.files[1])
		return error_set(err, "out of memory");
	if (metric_set_init(&s.metrics, err) < 0 || read_side(&s, a, a_count, &s.a, err) < 0 ||
	    read_side(&s, (char *const *)args->b.items, args->b.count, &s.b, err) < 0 ||
	    select_metrics(args, &s.metrics, &selected, err) < 0 || read_noise(args, &s.metrics, &noise, err) < 0)
		return -1;
	o.selected = selected;
	o.noise = noise;
	o.noise_count = s.metrics.count;
	if (compare(&s.metrics, &s.a, &s.b, &o, &c, err) < 0 || check_names(&s, &c, err) < 0)
		return -1;
	warn_unusable(&c);
	warn_repeated(&s, &c);
	return print(args, &v, err) < 0 ? -1 : status_of(args, c.overall);
}

static int check(const struct diff_args *args, size_t a_count, struct error *err)
{
	const char *const *labels = args->labels.count ? args->labels.items + args->labels.count - 2 : NULL;

	if (!a_count || !args->b.count)
		return error_set(err, "expected runs of two sides; usage: assay diff A... --vs B...");
	if (args->labels.count && strcmp(labels[0], labels[1]) == 0)
		return error_set(err, "option '--labels': both sides are called '%s'",
				 typed_show(labels[0], strlen(labels[0])).text);
	if (args->json && args->markdown)
		return error_set(err, "options '--json' and '--markdown' exclude each other");
	if (args->confidence >= 1 && args->confidence < 50)
		return error_set(err, "option '--confidence': %g is no percentage of 50 or more, and no share below 1",
				 args->confidence);
	return 0;
}

static int run_diff(int argc, char **argv)
{
	struct diff_args args = {.rule = "auto", .confidence = 95};
	struct error err;
	int rest, status = options_parse(&cmd_diff, argc, argv, &args, &rest, &err);

	if (status == 0 && (status = check(&args, (size_t)(argc - rest), &err)) == 0)
		status = diff(&args, argv + rest, (size_t)(argc - rest), &err);
	else if (status > 0)
		status = EXIT_DONE;
	if (status < 0)
		say(err.text);
	options_release(&cmd_diff, &args);
	return status < 0 ? EXIT_USAGE : status;
}

const struct command cmd_diff = {
	.name = "diff",
	.summary = "is B better, worse, the same as A, or not yet to be told?",
	.usage = "[options] A... --vs B...",
	.description =
		"Compares finished runs. Each word is a run directory, its run.json, the same\n"
		"from the reference tool, another benchmark's results (hyperfine, Google\n"
		"Benchmark, llama-bench), or a quoted pattern of such paths.\n"
		"\n"
		"Two rules are computed and shown. Pairs of neighbouring runs decide where the\n"
		"runs took turns (their blocks or start times tell): an exact interval of the\n"
		"change, and a verdict only beyond the margin. Separation decides elsewhere: no\n"
		"run of one side among those of the other. With --rule separation the answer is\n"
		"that of the reference tool, in its form.\n"
		"\n"
		"Exit status: 0 improvement, neutral or undecided, 1 regression or tradeoff, 4\n"
		"undecided with --fail-on-undecided.",
	.options = options,
	.examples =
		"# runs made in turns: old, new, new, old, ...\n"
		"assay diff 'runs/old-*' --vs 'runs/new-*' --labels old new\n"
		"# a gate for a script: speed alone, changes of 2% or more\n"
		"assay diff old/* --vs new/* --metric decode_tps --margin 2 --json\n"
		"# two results of hyperfine, paired by command\n"
		"assay diff before.json --vs after.json\n",
	.run = run_diff,
	.mixed = true,
};
