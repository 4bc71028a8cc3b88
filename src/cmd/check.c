/* assay check: the gate for CI. Did any figure get worse by more than a budget? */
#include "cmd/command.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/check_sides.h"
#include "cmd/notes.h"
#include "cmd/region_options.h"
#include "cmd/terminal.h"
#include "report/check_format.h"

#define NS_PER_S 1e9

struct check_args {
	double max_regression, min_total;
	struct option_list metrics;
	struct region_options regions;
	const char *format;
	bool fail_on_new, fail_on_missing, by_regions, json, all;
};

#define CHECK_FORMAT(name, summary) "|" #name
static const char formats[] =
#include "report/check_formats.def"
	;
#undef CHECK_FORMAT

#define AT(member) offsetof(struct check_args, member)

static const struct option options[] = {
	{"max-regression", 0, OPTION_NUMBER, AT(max_regression), "PCT", "how much worse a figure may get, in percent",
	 "0", NULL, 0, INFINITY},
	{"fail-on-new", 0, OPTION_FLAG, AT(fail_on_new), NULL, "fail for what side B alone has"},
	{"fail-on-missing", 0, OPTION_FLAG, AT(fail_on_missing), NULL, "fail for what side A alone has"},
	{"min-total", 0, OPTION_NUMBER, AT(min_total), "S",
	 "leave out regions that take less than so many seconds in total on both sides", "0", NULL, 0, INFINITY},
	{"metric", 'm', OPTION_LIST, AT(metrics), "NAME",
	 "what is compared: one metric of regions (see assay regions), or metrics of runs, once for each",
	 "total; of runs all that count"},
	REGION_OPTIONS(check_args, regions),
	{"regions", 0, OPTION_FLAG, AT(by_regions), NULL, "compare the regions of run directories, not their metrics"},
	{"format", 'f', OPTION_CHOICE, AT(format), "FORMAT", "how it is told", "text", formats + 1},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "the same as --format json"},
	{"all", 0, OPTION_FLAG, AT(all), NULL, "list what passed, too"},
	OPTIONS_END,
};

static int read_sides(const struct check_args *args, const char *a, const char *b, struct check_sides *s,
		      const char **ret_metric, struct error *err)
{
	CLEANUP(region_query_release) struct region_query query;
	enum region_metric metric = REGION_METRIC_TOTAL;
	const char *name = args->metrics.count ? args->metrics.items[0] : "total";

	region_query_init(&query);
	if (region_options_query(&args->regions, &query, err) < 0)
		return -1;
	if (!args->by_regions && !check_sides_has_regions(a) && !check_sides_has_regions(b)) {
		if (args->regions.ranks)
			return error_set(err, "option '--ranks' is for regions, and these are runs");
		*ret_metric = NULL;
		return check_sides_runs(s, a, b, &query, &args->metrics, err);
	}
	if (args->metrics.count > 1)
		return error_set(err, "option '--metric': of regions one metric is compared at a time");
	if (!region_metric_find(name, &metric))
		return error_set(err,
				 "option '--metric': '%s' is no metric of regions; 'assay help regions' lists them",
				 typed_show(name, strlen(name)).text);
	*ret_metric = region_metric_name(metric);
	return check_sides_regions(s, a, b, &query, metric, err);
}

/* A gate that compared nothing has not been passed. */
static int refuse_nothing(const struct check_args *args, const struct check_result *r, struct error *err)
{
	const char *what = args->regions.include.count || args->regions.exclude.count || args->regions.ranks
				   ? " that the filters leave"
				   : "";

	if (r->failed || r->compared)
		return 0;
	if (r->per_finding[CHECK_TOO_SMALL])
		return error_set(err, "nothing was compared: all that both sides have%s is below --min-total", what);
	return error_set(err, "nothing was compared: the two sides have nothing in common%s", what);
}

static int check(const struct check_args *args, const char *a, const char *b, struct error *err)
{
	const char *name = args->json ? "json" : args->format ? args->format : "text";
	const struct check_format *format = check_format_find(name);
	const struct check_budget budget = {args->max_regression, args->fail_on_new, args->fail_on_missing,
					    args->min_total * NS_PER_S};
	CLEANUP(check_sides_release) struct check_sides sides = {0};
	CLEANUP(check_result_release) struct check_result result = {0};
	struct check_report report = {.result = &result, .a = a, .b = b, .all = args->all};

	if (check_sides_init(&sides, err) < 0 || read_sides(args, a, b, &sides, &report.metric, err) < 0 ||
	    check_judge(sides.items, sides.count, &budget, &result, err) < 0)
		return -1;
	if (refuse_nothing(args, &result, err) < 0) {
		notes_print("assay check", &sides.notes); /* there is no report, and they may be why */
		return -1;
	}
	report.notes = (const char *const *)sides.notes.texts;
	report.note_count = sides.notes.count;
	report.colour = terminal_has_colour(STDOUT_FILENO);
	if (format->write(&report, stdout, err) < 0)
		return -1;
	return result.failed ? EXIT_DIFFERENT : EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
	struct check_args args = {0};
	struct error err;
	int rest, status = options_parse(&cmd_check, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && argc - rest != 2)
		status = error_set(&err, "expected two sides; usage: assay check [options] A B");
	if (status == 0 && args.json && args.format && strcmp(args.format, "json") != 0)
		status = error_set(&err, "options '--json' and '--format %s' exclude each other", args.format);
	if (status == 0)
		status = check(&args, argv[rest], argv[rest + 1], &err);
	if (status < 0)
		fprintf(stderr, "assay check: %s\n", err.text);
	options_release(&cmd_check, &args);
	return status < 0 ? EXIT_USAGE : status;
}

#define CHECK_FORMAT(name, summary) "  " #name "\n      " summary "\n"

const struct command cmd_check = {
	.name = "check",
	.summary = "the gate for CI: did anything get worse by more than a budget?",
	.usage = "[options] A B",
	.description =
		"Compares B with the baseline A and fails if a figure got worse by more than the\n"
		"budget. Each is a file of regions, a run directory, its run.json, or another\n"
		"benchmark's results (hyperfine, Google Benchmark, llama-bench). Of repetitions\n"
		"the median counts.\n"
		"\n"
		"Equal figures pass. A cost where there was none fails, as does what is not a\n"
		"number. What is new or vanished is listed, and passes unless asked to fail.\n"
		"Where nothing can be compared, and where a run did not end well, the status is\n"
		"2: that is no pass.\n"
		"\n"
#include "report/check_formats.def"
		"\n"
		"Exit status: 0 passed, 1 failed, 2 bad usage or nothing to compare.",
	.options = options,
	.examples =
		"# may no region take more than 5% longer?\n"
		"assay check baseline.h5 new.h5 --max-regression 5\n"
		"# annotations in GitHub Actions, without regions below 10 ms\n"
		"assay check baseline.h5 new.h5 --max-regression 5 --min-total 0.01 -f github\n"
		"# two results of hyperfine\n"
		"assay check before.json after.json --max-regression 3 -f junit > check.xml\n",
	.run = run_check,
	.mixed = true,
};
