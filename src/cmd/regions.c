/* assay regions diff: what changed per region between two files, or two groups of repeats. */
#include "cmd/command.h"

#include <glob.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "cmd/notes.h"
#include "cmd/region_options.h"
#include "cmd/region_side.h"
#include "cmd/terminal.h"
#include "report/region_reports.h"

#define COLUMNS_MOST 200 /* of a terminal that are used */
#define LINE_COLUMNS 1000

struct regions_args {
	const char *metric, *sort;
	double threshold, confidence, margin;
	struct option_list b;
	struct region_options regions;
	bool json;
};

#define AT(member) offsetof(struct regions_args, member)

static const struct option options[] = {
	{"metric", 'm', OPTION_CHOICE, AT(metric), "NAME", "what is compared", "total",
	 "gpu_total|gpu_avg|total|avg|min|max|p50|p95|p99|imbalance|calls"},
	{"sort", 's', OPTION_CHOICE, AT(sort), "KEY", "the largest change first, or by name", "delta",
	 "delta|pct|name"},
	{"threshold", 't', OPTION_NUMBER, AT(threshold), "PCT",
	 "leave out what changed by less; never what one side alone has", "none", NULL, 0, INFINITY},
	REGION_OPTIONS(regions_args, regions),
	{"vs", 0, OPTION_WORDS, AT(b), "B...", "the files of side B: the words up to the next option", NULL, NULL, 1,
	 INFINITY},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT",
	 "of the intervals, where a side has several files; in percent or as a share (0.95)", "95", NULL, 0.5, 99.9999},
	{"margin", 0, OPTION_NUMBER, AT(margin), "PCT", "percent that a change of repeats must be beyond to count",
	 "1", NULL, 0, 1000},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print JSON"},
	OPTIONS_END,
};

/* A path, or a pattern that the shell left as it was. */
static int read_word(struct region_side *s, const char *word, const struct region_query *q, struct warnings *notes,
		     struct error *err)
{
	glob_t found;
	int got = 0;

	if (fs_exists(word) || !strpbrk(word, "*?["))
		return region_side_add(s, word, q, notes, err);
	if (glob(word, 0, NULL, &found) != 0)
		return error_set(err, "%s: no file is called so", word);
	for (size_t i = 0; i < found.gl_pathc && got == 0; i++)
		got = region_side_add(s, found.gl_pathv[i], q, notes, err);
	globfree(&found);
	return got;
}

static int read_side(struct region_side *s, const char *const *words, size_t count, const struct region_query *q,
		     struct warnings *notes, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (read_word(s, words[i], q, notes, err) < 0)
			return -1;
	return 0;
}

static void print_side(char side, const struct region_side *s)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, s->tables[0].path, LINE_COLUMNS);
	printf("%c: %s", side, line.text);
	if (s->count > 1)
		printf(" and %zu more", s->count - 1);
	putchar('\n');
}

static int print(const struct regions_args *args, const struct region_side *a, const struct region_side *b,
		 const struct region_diff *d, struct error *err)
{
	struct region_report_options o = {
		.width = (unsigned)terminal_columns_within(STDOUT_FILENO, COLUMNS_MOST),
		.colour = terminal_has_colour(STDOUT_FILENO),
	};

	if (args->json)
		return region_diff_json(d, stdout, err);
	print_side('A', a);
	print_side('B', b);
	return region_diff_text(d, &o, stdout, err);
}

static enum region_sort sort_of(const char *name)
{
	return strcmp(name, "pct") == 0 ? REGION_SORT_PCT : *name == 'n' ? REGION_SORT_NAME : REGION_SORT_DELTA;
}

static int diff(const struct regions_args *args, const char *const *a, size_t a_count, const char *const *b,
		size_t b_count, struct error *err)
{
	CLEANUP(region_query_release) struct region_query query;
	CLEANUP(region_side_release) struct region_side side_a;
	CLEANUP(region_side_release) struct region_side side_b;
	CLEANUP(region_diff_release) struct region_diff d;
	CLEANUP(warnings_release) struct warnings notes;
	struct region_diff_options o = {.sort = sort_of(args->sort), .threshold = args->threshold};

	region_query_init(&query);
	region_side_init(&side_a);
	region_side_init(&side_b);
	region_diff_init(&d);
	warnings_init(&notes);
	region_metric_find(args->metric, &o.metric);
	o.confidence = args->confidence < 1 ? args->confidence : args->confidence / 100;
	o.margin = args->margin / 100;
	if (region_options_query(&args->regions, &query, err) < 0 ||
	    read_side(&side_a, a, a_count, &query, &notes, err) < 0 ||
	    read_side(&side_b, b, b_count, &query, &notes, err) < 0)
		return -1;
	o.started_a = side_a.started;
	o.started_b = side_b.started;
	if (region_diff(side_a.tables, side_a.count, side_b.tables, side_b.count, &o, &d, err) < 0)
		return -1;
	region_sides_note(&side_a, &side_b, &d, &notes);
	notes_print("assay regions", &notes);
	return print(args, &side_a, &side_b, &d, err);
}

/* The words behind "diff": two files, or those of side A where --vs names those of B. */
static int dispatch(const struct regions_args *args, char **words, size_t count, struct error *err)
{
	const char *const *files = (const char *const *)words + 1;

	if (!count || strcmp(words[0], "diff") != 0)
		return error_set(err, "expected 'diff'; usage: assay regions diff A B");
	count--;
	if (args->confidence >= 1 && args->confidence < 50)
		return error_set(err, "option '--confidence': %g is no percentage of 50 or more, and no share below 1",
				 args->confidence);
	if (args->b.count && count)
		return diff(args, files, count, args->b.items, args->b.count, err);
	if (args->b.count || count != 2)
		return error_set(err, "expected two files, or several of each side: assay regions diff A... --vs B...");
	return diff(args, files, 1, files + 1, 1, err);
}

static int run_regions(int argc, char **argv)
{
	struct regions_args args = {
		.metric = "total", .sort = "delta", .threshold = NAN, .confidence = 95, .margin = 1};
	struct error err;
	int rest, status = options_parse(&cmd_regions, argc, argv, &args, &rest, &err);

	if (status == 0)
		status = dispatch(&args, argv + rest, (size_t)(argc - rest), &err);
	else if (status > 0)
		status = EXIT_DONE;
	if (status < 0)
		fprintf(stderr, "assay regions: %s\n", err.text);
	options_release(&cmd_regions, &args);
	return status < 0 ? EXIT_USAGE : EXIT_DONE;
}

const struct command cmd_regions = {
	.name = "regions",
	.summary = "what changed per region between two files",
	.usage = "diff [options] A B\n       assay regions diff [options] A... --vs B...",
	.description =
		"Compares the regions of two files (or run directories that hold one): one\n"
		"metric of each, the largest change first. Regions that one side alone has are\n"
		"always shown.\n"
		"\n"
		"With repeats of a run on each side the medians are shown, with an interval of\n"
		"the change and whether it is more than noise: by pairs of neighbours where the\n"
		"runs took turns, else by ranks, corrected for the number of regions.\n"
		"\n"
		"The exit status is 0 whatever changed; assay check is the gate.",
	.options = options,
	.examples =
		"# which regions take longer, in total?\n"
		"assay regions diff before.h5 after.h5\n"
		"# the slowest calls, of the solver alone, on the first four ranks\n"
		"assay regions diff before.h5 after.h5 -m p99 --include solve --ranks 0-3\n"
		"# repeats: is it more than noise?\n"
		"assay regions diff old-*.h5 --vs new-*.h5 --threshold 1\n",
	.run = run_regions,
	.mixed = true,
};
