/* assay inspect: the regions of a recorded run as a table. */
#include "cmd/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/spell.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cmd/region_options.h"
#include "cmd/terminal.h"
#include "report/region_columns.h"
#include "report/region_reports.h"
#include "report/region_tree.h"
#include "store/region_rows.h"
#include "store/region_tree.h"

#define COLUMNS_MAX 22u
#define FACT_COLUMNS 2000

struct inspect_args {
	struct region_options regions;
	const char *sort, *columns;
	bool per_rank, per_thread, tree, metadata, json, csv;
};

#define AT(member) offsetof(struct inspect_args, member)

static const struct option options[] = {
	REGION_OPTIONS(inspect_args, regions),
	{"sort", 's', OPTION_TEXT, AT(sort), "KEY", "name, or a column: largest first", "total"},
	{"columns", 'c', OPTION_TEXT, AT(columns), "LIST", "only these columns, as in calls,total,p99", "most"},
	{"per-rank", 0, OPTION_FLAG, AT(per_rank), NULL, "one row for each region and rank"},
	{"per-thread", 0, OPTION_FLAG, AT(per_thread), NULL, "one row for each region, rank and thread"},
	{"tree", 0, OPTION_FLAG, AT(tree), NULL, "which region was called in which"},
	{"metadata", 0, OPTION_FLAG, AT(metadata), NULL, "what the file says about the run, alone"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "as JSON, times in ns"},
	{"csv", 0, OPTION_FLAG, AT(csv), NULL, "as CSV, times in ns"},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay inspect: %s\n", err->text);
	return status;
}

static int unknown_column(const char *option, const char *name, struct error *err)
{
	const char *names[64], *nearest;
	struct typed typed = typed_show(name, strlen(name));
	size_t count = 0;

	for (; count < region_column_count; count++)
		names[count] = region_columns[count].name;
	nearest = spell_nearest(name, names, count);
	if (nearest)
		return error_set(err, "option '%s': there is no column '%s'; did you mean '%s'?", option, typed.text,
				 nearest);
	return error_set(err, "option '%s': there is no column '%s' (`assay help inspect` lists them)", option,
			 typed.text);
}

/* Splits "calls,total" in place; *ret ends with NULL. */
static int split_columns(char *list, const char **ret, struct error *err)
{
	size_t count = 0;

	for (char *rest = list, *name; (name = strsep(&rest, ","));) {
		const struct region_column_desc *column = region_column_find(name);

		if (!column)
			return unknown_column("--columns", name, err);
		if (count == COLUMNS_MAX)
			return error_set(err, "option '--columns': more than %u columns", COLUMNS_MAX);
		ret[count++] = column->name;
	}
	ret[count] = NULL;
	return 0;
}

/* By the column, largest first, NaN last; then by calls, as the table of `assay run` has it, name, rank and thread. */
static int by_column(const void *a, const void *b, void *column)
{
	const struct region_row *x = a, *y = b;
	const struct region_column_desc *of = column;
	double p = of ? of->value(x) : 0, q = of ? of->value(y) : 0;

	if (isnan(p) != isnan(q))
		return isnan(p) ? 1 : -1;
	if (p != q && !isnan(p))
		return p > q ? -1 : 1;
	if (of && x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	if (strcmp(x->name, y->name) != 0)
		return strcmp(x->name, y->name);
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static int print_table(struct region_file *f, const struct inspect_args *a, const struct region_query *q,
		       const char *const *columns)
{
	const struct regions *r = region_file_regions(f);
	enum region_rows_by by = a->per_thread ? REGION_ROWS_BY_THREAD
				 : a->per_rank ? REGION_ROWS_BY_RANK
					       : REGION_ROWS_BY_REGION;
	const struct region_report_options o = {.columns = columns,
						.width = (unsigned)terminal_columns(STDOUT_FILENO),
						.colour = terminal_has_colour(STDOUT_FILENO)};
	CLEANUP(region_table_release) struct region_table t;
	struct error err;
	int got;

	region_table_init(&t);
	if (region_rows(f, q, by, &t, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (!t.count)
		region_options_warn_of_nothing("assay inspect", q, r);
	qsort_r(t.rows, t.count, sizeof *t.rows, by_column, (void *)(uintptr_t)region_column_find(a->sort));
	if (a->json)
		got = region_table_json(&t, r, stdout, &err);
	else
		got = a->csv ? region_table_csv(&t, &o, stdout, &err) : region_table_text(&t, r, &o, stdout, &err);
	return got < 0 ? trouble(&err, EXIT_TROUBLE) : EXIT_DONE;
}

/* What a tree has no place for, and its figures are without. */
static int warn_of_tree(const struct regions *r, const struct region_query *q, struct error *err)
{
	CLEANUP(free_cleanup) bool *names = calloc(r->name_count + 1, sizeof *names);
	uint64_t dropped = 0, untimed = 0;

	if (!names)
		return error_set(err, "out of memory for %zu regions", r->name_count);
	if (region_query_names(q, (const char *const *)r->names, r->name_count, names, err) < 0)
		return -1;
	for (size_t i = 0; i < r->part_count; i++) {
		const struct region_part *p = &r->parts[i];

		if (!region_query_takes_rank(q, p->rank) || !names[p->region])
			continue;
		dropped += p->dropped;
		untimed += p->calls > p->count ? p->calls - p->count : 0;
	}
	if (dropped)
		fprintf(stderr, "assay inspect: calls that found no room (ASSAY_LIMIT, a full disk), and are in none "
				"of these figures: %s\n", units_count((double)dropped).text);
	if (untimed)
		fprintf(stderr, "assay inspect: calls that were only added up or counted, and are in none of these "
				"figures: %s\n", units_count((double)untimed).text);
	return 0;
}

static int print_tree(struct region_file *f, const struct inspect_args *a, const struct region_query *q)
{
	CLEANUP(region_tree_release) struct region_tree tree;
	struct error err;
	int got;

	region_tree_init(&tree);
	if (region_tree_read(f, q, &tree, &err) < 0 || region_tree_finish(&tree, REGION_TREE_BY_TOTAL, &err) < 0 ||
	    warn_of_tree(region_file_regions(f), q, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (tree.count < 2) /* but for the root */
		region_options_warn_of_nothing("assay inspect", q, region_file_regions(f));
	got = a->json ? region_tree_json(&tree, stdout, &err) : region_tree_text(&tree, stdout, &err);
	return got < 0 ? trouble(&err, EXIT_TROUBLE) : EXIT_DONE;
}

static void print_metadata(const struct regions *r)
{
	for (size_t i = 0; i < r->fact_count; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, r->facts[i].key, FACT_COLUMNS);
		buf_puts(&line, ": ");
		utf8_append_line(&line, r->facts[i].value, FACT_COLUMNS);
		puts(line.text);
	}
}

static int inspect(const struct inspect_args *a, const struct region_query *q, const char *const *columns,
		   const char *path)
{
	CLEANUP(region_file_cleanup) struct region_file *f = NULL;
	struct error err;

	if (region_file_open(path, &f, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	region_options_warn("assay inspect", q, region_file_regions(f));
	if (a->metadata) {
		print_metadata(region_file_regions(f));
		return EXIT_DONE;
	}
	return a->tree ? print_tree(f, a, q) : print_table(f, a, q, columns);
}

/* What options contradict each other. */
static int check_options(const struct inspect_args *a, struct error *err)
{
	if (a->json && a->csv)
		return error_set(err, "options '--json' and '--csv' exclude each other");
	if (a->tree && (a->per_rank || a->per_thread || a->metadata || a->csv || a->columns))
		return error_set(err, "option '--tree' goes with --json and the choice of ranks and regions alone");
	if (a->metadata && (a->json || a->csv))
		return error_set(err, "option '--metadata' is for people: --json has it as \"metadata\"");
	if (a->json && a->columns)
		return error_set(err, "options '--json' and '--columns' exclude each other: JSON has all columns");
	if (strcmp(a->sort, "name") != 0 && !region_column_find(a->sort))
		return unknown_column("--sort", a->sort, err);
	return 0;
}

static int run_inspect(int argc, char **argv)
{
	struct inspect_args args = {.sort = "total"};
	CLEANUP(region_query_release) struct region_query query;
	CLEANUP(free_cleanup) char *list = NULL;
	const char *columns[COLUMNS_MAX + 1] = {NULL};
	struct error err;
	int rest, status, exit_status;

	region_query_init(&query);
	status = options_parse(&cmd_inspect, argc, argv, &args, &rest, &err);
	if (status == 0 && argc - rest != 1)
		status = error_set(&err, "expected one file of regions; usage: assay inspect [options] FILE");
	if (status == 0)
		status = check_options(&args, &err);
	if (status == 0 && args.columns) {
		list = strdup(args.columns);
		status = list ? split_columns(list, columns, &err) : error_set(&err, "out of memory");
	}
	if (status == 0)
		status = region_options_query(&args.regions, &query, &err);
	if (status == 0)
		exit_status = inspect(&args, &query, args.columns ? columns : NULL, argv[rest]);
	else
		exit_status = status > 0 ? EXIT_DONE : trouble(&err, EXIT_USAGE);
	options_release(&cmd_inspect, &args);
	return exit_status;
}

const struct command cmd_inspect = {
	.name = "inspect",
	.summary = "regions of a recorded run as a table",
	.usage = "[options] FILE",
	.description =
		"Shows the regions in a file that `assay merge` or `assay run` made, or the Python\n"
		"package scope-profiler, or those of a run directory: how often each was called\n"
		"and how long it took. The calls on all selected ranks count alike. Percentiles\n"
		"are exact and interpolate linearly; where calls were only added up they come\n"
		"from a histogram and are marked.\n"
		"\n"
		"Columns: calls total exclusive avg min max std p50 p95 p99 imbalance share\n"
		"ranks dropped timed gpu_calls gpu_total gpu_avg first_start last_end.",
	.options = options,
	.examples =
		"# the regions that took the longest\n"
		"assay inspect run.h5\n"
		"# how evenly two of them were spread over the first four ranks\n"
		"assay inspect run.h5 --ranks 0-3 --include 'solve|exchange' --per-rank\n"
		"# the slowest percent of calls, for a script\n"
		"assay inspect run.h5 --csv --columns calls,p99 --sort p99\n",
	.run = run_inspect,
	.mixed = true,
};
