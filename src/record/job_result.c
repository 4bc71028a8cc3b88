#include "record/job_result.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "model/phase.h"
#include "record/regions.h"
#include "record/results.h"
#include "store/armfile.h"
#include "store/region_merge.h"

#define MIB 1048576.0

/* What is found while going through the ranks. */
struct gathering {
	const struct job *job;
	struct run *run;
	json_t *ranks;  /* a row for each that ended */
	json_t *begin;  /* begin.json of the one that began first; owned */
	int64_t first_ns, last_ns; /* wall time */
	struct metric_set metrics;
	struct buf missing;
	int ended, missing_count;
	bool merged; /* all recordings of regions are in one file */
};

static volatile int stop_merging;

static void on_stop(int signo)
{
	(void)signo;
	stop_merging = 1;
}

/* A figure that no rank has stays missing. */
static void add(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

static double number_at(const json_t *root, const char *first, const char *second, const char *key)
{
	const json_t *node = first ? json_object_get(root, first) : root;

	return json_get_number(second ? json_object_get(node, second) : node, key, NAN);
}

static enum run_status status_of(const char *name)
{
	for (enum run_status s = RUN_OK; s < RUN_PARTIAL; s++)
		if (strcmp(name, run_status_name(s)) == 0)
			return s;
	return RUN_PARTIAL;
}

/* The gravest, where ranks ended in different ways: what was ended by a signal says more of the cause than those that
 * were ended because of it. */
static int gravity(enum run_status s)
{
	static const int order[] = {[RUN_OK] = 0,     [RUN_INTERRUPTED] = 1, [RUN_FAILED] = 2,
				    [RUN_TIMEOUT] = 3, [RUN_SIGNAL] = 4,      [RUN_PARTIAL] = 5};

	return order[s];
}

static void add_status(struct gathering *g, const json_t *rank)
{
	enum run_status status = status_of(json_get_text(rank, "status", ""));
	struct run *run = g->run;

	if (g->ended > 0 && gravity(status) <= gravity(run->status))
		return;
	run->status = status;
	run->exit_code = (int)json_get_number(rank, "exit_code", -1);
	run->signo = (int)json_get_number(rank, "signal", 0);
}

static void add_figures(struct run *run, const json_t *rank)
{
	double processes = number_at(rank, "processes", NULL, "count");

	add(&run->cpu_user_s, number_at(rank, NULL, NULL, "cpu_user_s"));
	add(&run->cpu_system_s, number_at(rank, NULL, NULL, "cpu_system_s"));
	add(&run->rss_peak, number_at(rank, "memory", "host", "rss_peak_mib") * MIB);
	add(&run->anon_peak, number_at(rank, "memory", "host", "anon_peak_mib") * MIB);
	run->max_rss_process =
		fmax(run->max_rss_process, number_at(rank, "memory", "host", "largest_process_mib") * MIB);
	add(&run->whole.cpu_s, number_at(rank, "counters", NULL, "cpu_s"));
	add(&run->whole.read_bytes, number_at(rank, "counters", NULL, "read_mib") * MIB);
	add(&run->whole.write_bytes, number_at(rank, "counters", NULL, "write_mib") * MIB);
	add(&run->whole.minor_faults, number_at(rank, "counters", NULL, "minor_faults"));
	add(&run->whole.major_faults, number_at(rank, "counters", NULL, "major_faults"));
	add(&run->cost_cpu_s, number_at(rank, "assay_cost", NULL, "cpu_s"));
	add(&run->cost_helper_cpu_s, number_at(rank, "assay_cost", NULL, "helper_cpu_s"));
	add(&run->cost_finish_cpu_s, number_at(rank, "assay_cost", NULL, "finish_cpu_s"));
	add(&run->cost_max_rss, number_at(rank, "assay_cost", NULL, "max_rss_mib") * MIB);
	if (processes >= 0 && processes < 1e15)
		run->processes += (uint64_t)processes;
	run->processes_exact = run->processes_exact &&
			       json_is_true(json_object_get(json_object_get(rank, "processes"), "exact"));
	run->perturbed = run->perturbed || json_is_true(json_object_get(rank, "perturbed"));
}

static void add_row(struct gathering *g, int number, const json_t *rank)
{
	static const char *const copied[] = {"status", "exit_code", "signal", "started_at", "wall_s", "cpu_s"};
	json_t *row = json_object();

	json_put_integer(row, "rank", number);
	for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
		if (json_object_get(rank, copied[i]))
			json_object_set(row, copied[i], json_object_get(rank, copied[i]));
	json_put_number(row, "rss_peak_mib", number_at(rank, "memory", "host", "rss_peak_mib"));
	json_put_number(row, "anon_peak_mib", number_at(rank, "memory", "host", "anon_peak_mib"));
	json_put_integer(row, "warnings", (json_int_t)json_array_size(json_object_get(rank, "warnings")));
	json_array_append_new(g->ranks, row);
}

static void set_first(struct gathering *g, const char *folder)
{
	CLEANUP(free_cleanup) char *path = fs_join(folder, "begin.json");
	json_t *begin = path ? json_read_file(path, NULL) : NULL;

	if (!begin)
		return;
	json_decref(g->begin);
	g->begin = begin;
}

/* Fails where the rank's run.json cannot be used. */
static int add_rank(struct gathering *g, int number, const char *folder, const char *path, struct error *err)
{
	CLEANUP(json_cleanup) json_t *rank = json_read_file(path, err);
	CLEANUP(arms_release) struct arms arms;
	double wall_s = json_get_number(rank, "wall_s", NAN);
	int64_t started;

	arms_init(&arms);
	if (!rank || armfile_take(rank, path, &g->metrics, &arms, err) < 0)
		return -1;
	started = arms.items[0].started_ns;
	if (started == INT64_MIN || !(wall_s >= 0 && wall_s < 1e9))
		return error_set(err, "%s: it does not say when the rank ran", path);
	if (!g->ended || started < g->first_ns) {
		g->first_ns = started;
		set_first(g, folder);
	}
	if (!g->ended || started + (int64_t)(wall_s * 1e9) > g->last_ns)
		g->last_ns = started + (int64_t)(wall_s * 1e9);
	add_status(g, rank);
	add_figures(g->run, rank);
	add_row(g, number, rank);
	g->ended++;
	return 0;
}

static int gather(struct gathering *g, struct error *err)
{
	for (int number = 0; number < g->job->size; number++) {
		CLEANUP(free_cleanup) char *folder = NULL, *path = NULL;
		struct error why;

		if (asprintf(&folder, "%s/rank-%d", g->job->path, number) < 0)
			folder = NULL;
		path = folder ? fs_join(folder, "run.json") : NULL;
		if (!path)
			return error_set(err, "out of memory for the ranks of the job");
		if (fs_exists(path)) {
			if (add_rank(g, number, folder, path, &why) == 0)
				continue;
			warnings_add(&g->run->warnings, "Rank %d is not counted: %s.", number, why.text);
		}
		buf_printf(&g->missing, "%s%d", g->missing_count++ ? ", " : "", number);
	}
	if (!g->ended)
		return error_set(err, "%s: no rank of the job has left a result", g->job->path);
	return g->missing.failed ? error_set(err, "out of memory for the ranks of the job") : 0;
}

/* The job as one run: from the first rank's start to the last one's end. */
static int describe(struct gathering *g, struct error *err)
{
	struct marks none;
	struct run *run = g->run;

	run->start = 0;
	run->end = g->last_ns - g->first_ns;
	run->wall_start_ns = g->first_ns;
	run->wall_s = (double)run->end / 1e9;
	if (run->wall_s > 0)
		run->cost_share = (run->cost_cpu_s + (isnan(run->cost_helper_cpu_s) ? 0 : run->cost_helper_cpu_s)) /
				  run->wall_s;
	snprintf(run->rss_kind, sizeof run->rss_kind, "sum of the peaks of %d ranks", g->ended);
	snprintf(run->anon_kind, sizeof run->anon_kind, "%s", run->rss_kind);
	run->label = strdup(json_get_text(g->begin, "label", "job"));
	run->command_line = strdup(json_get_text(g->begin, "command", "an unknown command"));
	run->figures = calloc(1, sizeof *run->figures);
	if (!run->label || !run->command_line || !run->figures)
		return error_set(err, "out of memory for the job's result");
	run->figures[0] = run->whole;
	marks_init(&none);
	if (phases_from_marks(&run->phases, &none, run->start, run->end, "start", false, &run->warnings, err) < 0)
		return -1;
	if (g->missing_count) {
		run->status = RUN_PARTIAL;
		warnings_add(&run->warnings,
			     "Of the job's %d ranks %d left no result: %s. What they used is missing here.",
			     g->job->size, g->missing_count, g->missing.text);
	}
	return 0;
}

/* begin.json of the job: that of its first rank, and what makes it a job. */
static int describe_ranks(struct gathering *g, struct error *err)
{
	json_t *job = json_object();

	if (!g->begin)
		g->begin = json_object();
	json_put_text(job, "id", *g->job->id ? g->job->id : NULL);
	json_put_integer(job, "size", g->job->size);
	json_put_integer(job, "ended", g->ended);
	if (g->missing_count)
		json_put_text(job, "missing", g->missing.text);
	json_object_set_new(g->begin, "job", job);
	if (json_object_set(g->begin, "ranks", g->ranks) < 0)
		return error_set(err, "out of memory for the job's ranks");
	return 0;
}

static void note_merge(struct run *run, const struct region_merge_result *merged)
{
	for (size_t i = 0; i < merged->note_count; i++)
		warnings_add(&run->warnings, "%s", merged->notes[i]);
	if (merged->missing)
		warnings_add(&run->warnings, "Ranks whose regions are missing: %s.", merged->missing);
}

/* The recordings are needed again where a rank is still to come. */
static void remove_recordings(const struct gathering *g)
{
	for (int number = 0; !g->missing_count && number < g->job->size; number++) {
		CLEANUP(free_cleanup) char *folder = NULL;
		CLEANUP(rundir_release) struct rundir dir;
		struct error why;

		rundir_init(&dir);
		if (asprintf(&folder, "%s/rank-%d", g->job->path, number) < 0) {
			folder = NULL;
			continue;
		}
		if (rundir_open(&dir, folder, &why) < 0 || regions_remove_recordings(&dir, &why) < 0)
			warnings_add(&g->run->warnings, "Recordings that are merged could not be removed: %s.",
				     why.text);
	}
}

/* Whether the file of regions there is of all ranks: a result says so, and its recordings are then removed one rank
 * after the other, so that what is left of them may be less. */
static bool is_merged(const struct rundir *dir)
{
	CLEANUP(json_cleanup) json_t *before = json_read_file(dir->run_json, NULL);
	const json_t *job = json_object_get(before, "job");

	return job && !json_object_get(job, "missing") && fs_exists(dir->regions_h5);
}

static void merge_regions(struct gathering *g, const struct rundir *dir)
{
	const char *folders[] = {dir->path};
	struct region_merge_options options = {
		.folders = folders, .folder_count = 1, .out = dir->regions_h5, .stop = &stop_merging};
	struct region_merge_result merged;
	struct run *run = g->run;
	struct error err;
	int problem;

	g->merged = is_merged(dir);
	if (g->merged) {
		regions_tell(dir, run);
		return;
	}
	region_merge_result_init(&merged);
	problem = region_merge(&options, &merged, &err);
	if (problem < 0)
		warnings_add(&run->warnings, "The ranks' regions are not merged: %s.", err.text);
	if (problem == 0) {
		note_merge(run, &merged);
		regions_tell(dir, run);
	}
	g->merged = problem == 0;
	region_merge_result_release(&merged);
}

/* A signal that would end us stops the merge alone; one that the caller has ignored stays so. */
static void merge_interruptibly(struct gathering *g, const struct rundir *dir)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct sigaction stop = {.sa_handler = on_stop}, before[2];

	stop_merging = 0;
	for (size_t i = 0; i < 2; i++) {
		sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &stop, NULL);
	}
	merge_regions(g, dir);
	for (size_t i = 0; i < 2; i++)
		sigaction(signals[i], &before[i], NULL);
}

static int make(struct gathering *g, struct record_result *ret, struct error *err)
{

	if (gather(g, err) < 0 || describe(g, err) < 0 || describe_ranks(g, err) < 0 ||
	    rundir_open(&ret->dir, g->job->path, err) < 0)
		return -1;
	merge_interruptibly(g, &ret->dir);
	ret->started = true;
	if (results_write(&ret->dir, g->begin, g->run, &ret->json, err) < 0)
		return -1;
	ret->kept = true;
	/* Not before the result is there, by which one knows that the file is whole. */
	if (g->merged)
		remove_recordings(g);
	return 0;
}

int job_result_make(const struct job *j, struct record_result *ret, struct error *err)
{
	struct gathering g = {.job = j, .run = &ret->run, .ranks = json_array()};
	int problem;

	buf_init(&g.missing);
	ret->run.processes_exact = true;
	ret->run.cost_cpu_s = ret->run.cost_helper_cpu_s = ret->run.cost_finish_cpu_s = ret->run.cost_max_rss = NAN;
	if (!g.ranks || metric_set_init(&g.metrics, err) < 0) {
		json_decref(g.ranks);
		return g.ranks ? -1 : error_set(err, "out of memory for the job's ranks");
	}
	problem = make(&g, ret, err);
	metric_set_release(&g.metrics);
	buf_release(&g.missing);
	json_decref(g.ranks);
	json_decref(g.begin);
	return problem;
}
