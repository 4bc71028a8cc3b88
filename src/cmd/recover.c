/* assay recover: rebuilds the results of a run whose recorder was killed. */
#include "cmd/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cmd/terminal.h"
#include "record/finish.h"
#include "record/judging.h"
#include "record/profiling.h"
#include "record/regions.h"
#include "record/results.h"
#include "record/sampling.h"
#include "report/summary.h"

struct recover_args {
	bool force, quiet, json;
};

static const struct option options[] = {
	{"force", 'f', OPTION_FLAG, offsetof(struct recover_args, force), NULL,
	 "replace a run.json that is there, or read a run that goes on", NULL},
	{"quiet", 'q', OPTION_FLAG, offsetof(struct recover_args, quiet), NULL, "print no summary", NULL},
	{"json", 0, OPTION_FLAG, offsetof(struct recover_args, json), NULL, "print run.json on standard output", NULL},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay recover: %s\n", err->text);
	return status;
}

static int show(const struct recover_args *a, const struct run *run, const json_t *json, const char *where)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(free_cleanup) char *printed = NULL;

	buf_init(&text);
	if (!a->quiet) {
		summary_print(run, where, terminal_has_colour(STDERR_FILENO), terminal_columns(STDERR_FILENO), &text);
		fwrite(text.text, 1, text.length, stderr);
	}
	if (!a->json)
		return EXIT_DONE;
	printed = json_print(json);
	if (!printed) {
		fprintf(stderr, "assay recover: --json: out of memory\n");
		return EXIT_TROUBLE;
	}
	puts(printed);
	return EXIT_DONE;
}

static int recover(const struct recover_args *a, const char *path)
{
	CLEANUP(rundir_release) struct rundir dir;
	CLEANUP(run_release) struct run run;
	CLEANUP(json_cleanup) json_t *begin = NULL;
	CLEANUP(json_cleanup) json_t *json = NULL;
	struct judging_options judging = {.probe = false};
	struct regions_finishing regions = {.survivors = false};
	struct error err;
	int recorder;

	rundir_init(&dir);
	run_init(&run);
	if (rundir_open(&dir, path, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (fs_exists(dir.run_json) && !a->force && !sampling_rings_left(dir.rings) && !regions_left(&dir)) {
		error_set(&err, "%s is there already: nothing is missing (--force makes it anew from the records)",
			  dir.run_json);
		return trouble(&err, EXIT_USAGE);
	}
	begin = json_read_file(dir.begin_json, &err);
	recorder = finish_recorder_pid(&dir, begin);
	if (recorder && !a->force) {
		error_set(&err, "%s: process %d is still recording it (--force makes results from what is there now)",
			  path, recorder);
		return trouble(&err, EXIT_USAGE);
	}
	if (!begin)
		warnings_add(&run.warnings, "What was run is not known: %s.", err.text);
	if (finish_run(&dir, begin, FINISH_RECOVERED, NULL, &run, &err) < 0) {
		error_prefix(&err, "%s: nothing to recover", path);
		return trouble(&err, EXIT_USAGE);
	}
	if (profiling_recover(&dir, &run, &err) < 0)
		warnings_add(&run.warnings, "There is no CPU profile: %s.", err.text);
	regions_finish(&dir, &regions, &run);
	if (judging_run(&run, begin, &judging, &err) < 0)
		warnings_add(&run.warnings, "What limited the run is not told: %s.", err.text);
	if (results_write(&dir, begin, &run, &json, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	return show(a, &run, json, dir.path);
}

static int run_recover(int argc, char **argv)
{
	struct recover_args args = {0};
	struct error err;
	int rest, status = options_parse(&cmd_recover, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && (!argv[rest] || argv[rest + 1]))
		status = error_set(&err, "expected one run directory; usage: assay recover [options] DIR");
	return status < 0 ? trouble(&err, EXIT_USAGE) : recover(&args, argv[rest]);
}

const struct command cmd_recover = {
	.name = "recover",
	.summary = "rebuild the results of a run that was killed",
	.usage = "[options] DIR",
	.description =
		"Makes run.json, timeline.h5 and regions.h5 from what a killed `assay run` had\n"
		"recorded in DIR. The status is then \"partial\"; what could not be known is named in the\n"
		"warnings.",
	.options = options,
	.examples =
		"# after a kill -9 of assay, or of the whole job\n"
		"assay recover assay-runs/2026-11-29T17-15-41-train\n"
		"# the same, for a script\n"
		"assay recover -q --json DIR > run.json\n",
	.run = run_recover,
};
