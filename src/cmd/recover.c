/* assay recover: rebuilds the results of a run, or of a job of several, whose recorder was killed. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cmd/terminal.h"
#include "record/finish.h"
#include "record/instrument.h"
#include "record/job.h"
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

/* Makes the results of one run, or of one rank of a job: a rank's regions stay as they were recorded, for the job. */
static int rebuild(const struct rundir *dir, const json_t *begin, bool in_job, struct run *run, json_t **ret_json,
		   struct error *err)
{
	struct judging_options judging = {.probe = false};
	struct regions_finishing regions = {.survivors = false};
	struct error why;

	if (finish_run(dir, begin, FINISH_RECOVERED, NULL, run, err) < 0) {
		error_prefix(err, "%s: nothing to recover", dir->path);
		return EXIT_USAGE;
	}
	if (profiling_recover(dir, run, &why) < 0)
		warnings_add(&run->warnings, "There is no CPU profile: %s.", why.text);
	if (fs_is_dir(dir->calls))
		instrument_finish(dir, false, NULL, run);
	if (!in_job)
		regions_finish(dir, &regions, run);
	if (judging_run(run, begin, &judging, &why) < 0)
		warnings_add(&run->warnings, "What limited the run is not told: %s.", why.text);
	return results_write(dir, begin, run, ret_json, err) < 0 ? EXIT_TROUBLE : EXIT_DONE;
}

/* What was run, and that nobody is still recording it. */
static int look(const struct recover_args *a, const struct rundir *dir, struct run *run, json_t **ret_begin,
		struct error *err)
{
	struct error why;
	int recorder;

	*ret_begin = json_read_file(dir->begin_json, &why);
	recorder = finish_recorder_pid(dir, *ret_begin);
	if (recorder && !a->force)
		return error_set(err,
				 "%s: process %d is still recording it (--force makes results from what is there now)",
				 dir->path, recorder);
	if (!*ret_begin)
		warnings_add(&run->warnings, "What was run is not known: %s.", why.text);
	return 0;
}

/* A rank's folder in that of its job. */
static bool is_rank(const struct rundir *dir)
{
	CLEANUP(free_cleanup) char *around = fs_join(dir->path, "..");
	const char *slash = strrchr(dir->path, '/');
	CLEANUP(job_release) struct job job;

	job_init(&job);
	return around && slash && strncmp(slash, "/rank-", 6) == 0 && job_open(&job, around, NULL) > 0;
}

static int recover(const struct recover_args *a, const char *path)
{
	CLEANUP(rundir_release) struct rundir dir;
	CLEANUP(run_release) struct run run;
	CLEANUP(json_cleanup) json_t *begin = NULL;
	CLEANUP(json_cleanup) json_t *json = NULL;
	struct error err;
	bool in_job;
	int status;

	rundir_init(&dir);
	run_init(&run);
	if (rundir_open(&dir, path, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	in_job = is_rank(&dir);
	if (fs_exists(dir.run_json) && !a->force && !sampling_rings_left(dir.rings) &&
	    !instrument_left(&dir) && (in_job || !regions_left(&dir))) {
		error_set(&err, "%s is there already: nothing is missing (--force makes it anew from the records)",
			  dir.run_json);
		return trouble(&err, EXIT_USAGE);
	}
	if (look(a, &dir, &run, &begin, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	status = rebuild(&dir, begin, in_job, &run, &json, &err);
	return status == EXIT_DONE ? show(a, &run, json, dir.path) : trouble(&err, status);
}

/* A rank that left no result. What cannot be made of it is told, and the rank is then missing in that of the job. */
static bool recover_rank(const struct recover_args *a, const char *folder)
{
	CLEANUP(rundir_release) struct rundir dir;
	CLEANUP(run_release) struct run run;
	CLEANUP(json_cleanup) json_t *begin = NULL;
	CLEANUP(json_cleanup) json_t *json = NULL;
	struct error err;

	rundir_init(&dir);
	run_init(&run);
	if (rundir_open(&dir, folder, &err) == 0 && look(a, &dir, &run, &begin, &err) == 0 &&
	    rebuild(&dir, begin, true, &run, &json, &err) == EXIT_DONE)
		return true;
	trouble(&err, EXIT_DONE);
	return false;
}

/* Makes what ranks have not made themselves. *ret_changed: the job's result can be better than it was. */
static int recover_ranks(const struct recover_args *a, const struct job *job, bool *ret_changed, struct error *err)
{
	for (int rank = 0; rank < job->size && !a->force; rank++)
		if (job_rank_lives(job, rank))
			return error_set(err, "%s: rank %d is still being recorded (--force makes results from what is "
					 "there now)", job->path, rank);
	for (int rank = 0; rank < job->size; rank++) {
		CLEANUP(free_cleanup) char *folder = NULL;
		CLEANUP(rundir_release) struct rundir dir;

		rundir_init(&dir);
		if (asprintf(&folder, "%s/rank-%d", job->path, rank) < 0) {
			folder = NULL;
			return error_set(err, "%s: out of memory", job->path);
		}
		if (!fs_is_dir(folder))
			continue;
		if (rundir_open(&dir, folder, err) < 0)
			return -1;
		if (!fs_exists(dir.run_json))
			*ret_changed |= recover_rank(a, folder);
		*ret_changed |= regions_left(&dir);
	}
	return 0;
}

/* The ranks of `mpirun assay run`, and then what the last of them would have made. */
static int recover_job(const struct recover_args *a, struct job *job)
{
	CLEANUP(record_result_release) struct record_result result;
	CLEANUP(free_cleanup) char *made = fs_join(job->path, "run.json");
	struct error err;
	bool changed;

	record_result_init(&result);
	changed = a->force || !made || !fs_exists(made);
	if (recover_ranks(a, job, &changed, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (!changed) {
		error_set(&err, "%s is there already: nothing is missing (--force makes it anew from the ranks')",
			  made);
		return trouble(&err, EXIT_USAGE);
	}
	if (job_recover(job, &result, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	return show(a, &result.run, result.json, job->path);
}

static int recover_path(const struct recover_args *a, const char *path)
{
	CLEANUP(job_release) struct job job;
	struct error err;
	int is_job;

	job_init(&job);
	is_job = job_open(&job, path, &err);
	if (is_job < 0)
		return trouble(&err, EXIT_USAGE);
	return is_job ? recover_job(a, &job) : recover(a, path);
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
	return status < 0 ? trouble(&err, EXIT_USAGE) : recover_path(&args, argv[rest]);
}

const struct command cmd_recover = {
	.name = "recover",
	.summary = "rebuild the results of a run that was killed",
	.usage = "[options] DIR",
	.description =
		"Makes run.json, timeline.h5, regions.h5 and calls.graph from what a killed\n"
		"`assay run` or `assay profile` had recorded in DIR. The status is then \"partial\"; what\n"
		"could not be known is named in the warnings. Of a job (`mpirun assay run`) the ranks that\n"
		"left no result are recovered, and all are joined as its last rank would have done.",
	.options = options,
	.examples =
		"# after a kill -9 of assay, or of the whole job\n"
		"assay recover assay-runs/2026-11-29T17-15-41-train\n"
		"# the same, for a script\n"
		"assay recover -q --json DIR > run.json\n",
	.run = run_recover,
};
