#include "record/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "exec/launch.h"
#include "record/begin.h"
#include "record/finish.h"
#include "record/instrument.h"
#include "record/judging.h"
#include "record/markers.h"
#include "record/monitor.h"
#include "record/preload_target.h"
#include "record/profiling.h"
#include "record/recording.h"
#include "record/regions.h"
#include "record/results.h"
#include "store/runjson.h"

/* Set by a signal while the results are made. */
static volatile int hurry;

static void on_hurry(int signo)
{
	(void)signo;
	hurry = 1;
}

void record_result_init(struct record_result *r)
{
	*r = (struct record_result){.ends_with_newline = true};
	run_init(&r->run);
	rundir_init(&r->dir);
}

void record_result_release(struct record_result *r)
{
	run_release(&r->run);
	json_decref(r->json);
	r->json = NULL;
	rundir_release(&r->dir);
}

static bool make_dir_below(struct recording *r, const char *folder, const char *label, int64_t wall_ns)
{
	CLEANUP(free_cleanup) char *path = NULL;

	if (!folder || !*folder || asprintf(&path, "%s/assay-XXXXXX", folder) < 0) {
		path = NULL;
		return false;
	}
	return mkdtemp(path) && rundir_create(&r->result->dir, path, label, wall_ns, NULL) == RUNDIR_OK;
}

/* The run directory; where it cannot be written, one below the folder for temporary files, so that the run is not lost.
 */
static int make_dir(struct recording *r, const char *label, int64_t wall_ns, struct error *err)
{
	struct error why;
	int problem = rundir_create(&r->result->dir, r->options->out, label, wall_ns, &why);

	r->has_dir = problem == RUNDIR_OK;
	if (problem == RUNDIR_IN_USE) {
		*err = why;
		return RECORD_USAGE;
	}
	if (problem == RUNDIR_OK)
		return RECORD_OK;
	r->result->elsewhere = true;
	r->has_dir = make_dir_below(r, getenv("TMPDIR"), label, wall_ns) || make_dir_below(r, "/tmp", label, wall_ns);
	if (r->has_dir)
		warnings_add(&r->run->warnings, "%s; the results are in %s instead.", why.text, r->result->dir.path);
	else
		warnings_add(&r->run->warnings, "%s; nothing of this run is kept.", why.text);
	return RECORD_OK;
}

static void write_begin(struct recording *r, const json_t *begin)
{
	struct error err;

	if (r->has_dir && (!begin || json_write_file(r->result->dir.begin_json, begin, &err) < 0))
		warnings_add(&r->run->warnings,
			     "begin.json was not written (%s): `assay recover` would know less of this run.",
			     begin ? err.text : "out of memory");
}

/* Many processes need many descriptors. After the helper was forked: the target keeps the caller's limit. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* CPU samples were asked for: without them there is no point in running. */
static int prepare_sampling(struct recording *r, struct error *err)
{
	struct sampling_options options = {
		.recorder = r->options->sampler ? r->options->sampler : "preload",
		.hz = r->options->profile_hz,
		.rings = r->result->dir.rings,
		.segment_path = r->result->dir.samples_seg,
		.hurry = &hurry,
	};

	if (!options.hz)
		return 0;
	if (!r->has_dir)
		return error_set(err, "CPU samples need a run directory, and none could be made");
	return sampling_new(&options, &r->run->warnings, &r->sampling, err);
}

/* What the target's environment gets for what is recorded inside it; NULL when out of memory. */
static char **prepare_inside(struct recording *r, const char *const *recorded)
{
	const struct rundir *d = r->has_dir ? &r->result->dir : NULL;
	const char *const *sampled = r->sampling ? sampling_environment(r->sampling, r->options->env) : recorded;

	return r->sampling && !sampled ? NULL : regions_prepare(d, r->options, sampled, &r->run->warnings);
}

/* As CPU samples. */
static int prepare_instrument(struct recording *r, char ***ret, struct error *err)
{
	if (!r->options->instrument)
		return 0;
	if (!r->has_dir)
		return error_set(err, "recording calls needs a run directory, and none could be made");
	*ret = instrument_prepare(&r->result->dir, r->options->env, err);
	return *ret ? 0 : -1;
}

static int prepare(struct recording *r, char *const *recorded, struct error *err)
{
	const struct rundir *d = &r->result->dir;
	char **more = prepare_inside(r, (const char *const *)recorded);
	char **environment = more ? begin_environment(r->options, r->has_dir ? d->markers_log : NULL,
						      r->has_dir ? d->path : NULL, (const char *const *)more)
				  : NULL;
	struct launch_options options = {
		.argv = r->options->argv,
		.environment = environment,
		.summary_only = r->options->summary_only,
		.timeout_ns = (int64_t)(r->options->timeout_s * 1e9),
	};
	int failed;

	begin_environment_free(more);
	if (!environment)
		return error_set(err, "out of memory for the environment");
	if (r->has_dir) {
		options.stdout_log = d->stdout_log;
		options.stderr_log = d->stderr_log;
		options.terminal_log = d->terminal_log;
		options.output_seg = d->output_seg;
	}
	failed = launch_prepare(&options, &r->launch, &r->command, err) < 0;
	begin_environment_free(environment);
	return failed ? -1 : 0;
}

static void on_mark(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end)
{
	struct recording *r = context;

	monitor_mark(r->monitor, t, has_time, name, length, end);
}

static void on_forgotten(void *context, const struct process *p)
{
	struct recording *r = context;

	if (r->sampling)
		sampling_forgotten(r->sampling, p);
}

static int start_watching(struct recording *r, struct error *err)
{
	const struct rundir *d = &r->result->dir;
	struct monitor_options options = {
		.segment_path = r->has_dir ? d->monitor_seg : NULL,
		.command = r->command,
		.helper = launch_helper_pid(r->launch),
		.argv = r->options->argv,
		.command_line = r->run->command_line,
		.interval_ns = (int64_t)(r->options->interval_ms * 1e6),
		.probe = !r->options->no_probe,
		.forgotten = on_forgotten,
		.forgotten_context = r,
	};
	struct error why;

	raise_descriptor_limit();
	if (monitor_new(&options, &r->run->warnings, &r->monitor, err) < 0)
		return -1;
	r->markers.fd = r->markers.notify = -1;
	if (r->has_dir && markers_open(&r->markers, d->markers_log, on_mark, r, &why) < 0)
		warnings_add(&r->run->warnings, "Phase marks are not read: %s.", why.text);
	return 0;
}

static void decide_status(struct recording *r)
{
	struct run *run = r->run;
	int status = r->exit.status;
	bool by_signal = WIFSIGNALED(status);

	if (!r->command_ended) {
		run->status = RUN_PARTIAL;
		r->result->exit_status = 3;
		warnings_add(&run->warnings,
			     "The helper that watched the command is gone: its exit status is not known.");
		return;
	}
	run->signo = by_signal ? WTERMSIG(status) : 0;
	run->exit_code = by_signal ? -1 : WEXITSTATUS(status);
	r->result->exit_status = by_signal ? 128 + run->signo : run->exit_code;
	run->status = by_signal ? RUN_SIGNAL : run->exit_code ? RUN_FAILED : RUN_OK;
	if (r->timed_out) {
		run->status = RUN_TIMEOUT;
		r->result->exit_status = 124;
	} else if (r->interrupted_by && run->status != RUN_OK) {
		run->status = RUN_INTERRUPTED;
		r->result->die_of_interrupt = r->interrupt_by_terminal && run->signo == SIGINT;
	}
}

static void note_survivors(struct recording *r)
{
	pid_t pids[4];
	struct run *run = r->run;

	if (r->no_children || r->gone)
		return;
	run->survivors = tree_survivors(monitor_tree(r->monitor), pids, 4);
	if (!run->survivors)
		return;
	warnings_add(&run->warnings,
		     "%zu process%s of the tree still run%s (pid %d%s): what they use from now on is not counted; "
		     "--wait-tree waits.",
		     run->survivors, run->survivors == 1 ? "" : "es", run->survivors == 1 ? "s" : "", (int)pids[0],
		     run->survivors > 1 ? " and others" : "");
}

/* This process's own high-water mark: ru_maxrss would be that of whoever started us. */
static double own_peak_rss(void)
{
	CLEANUP(buf_release) struct buf text;
	const char *at;

	buf_init(&text);
	if (fs_read_file("/proc/self/status", 65536, &text, NULL) < 0)
		return NAN;
	at = strstr(text.text, "VmHWM:");
	return at ? strtod(at + 6, NULL) * 1024 : NAN;
}

/* What watching cost; making the results after the command's end stands apart. */
static void note_watching(struct recording *r, int64_t cpu_ns, int64_t helper_ns)
{
	struct run *run = r->run;

	run->wall_s = (double)(run->end - run->start) / 1e9;
	run->cost_cpu_s = (double)cpu_ns / 1e9;
	run->cost_helper_cpu_s = helper_ns < 0 ? NAN : (double)helper_ns / 1e9;
	if (run->wall_s > 0)
		run->cost_share = (run->cost_cpu_s + (helper_ns < 0 ? 0 : run->cost_helper_cpu_s)) / run->wall_s;
}

/* From here on a Ctrl-C, and its like, only shortens what assay itself does. */
static void let_signals_hurry(struct recording *r)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_hurry};
	sigset_t set;

	recording_take_signals(r);
	hurry = r->asked_to_finish;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (launch_signal_ignored(signals[i]))
			continue;
		sigaction(signals[i], &action, NULL);
		sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The results, and run.json last. */
static void finish(struct recording *r, json_t *begin)
{
	int64_t cpu_before = clock_process_ns();
	struct run *run = r->run;
	struct judging_options judging = {
		.probe = r->has_dir && !r->options->no_probe,
		.hurry = &hurry,
		.progress = r->options->progress,
		.progress_context = r->options->say_context,
	};
	struct regions_finishing regions = {
		.survivors = run->survivors || r->gone,
		.hurry = &hurry,
		.progress = r->options->progress,
		.context = r->options->say_context,
	};
	struct error err;

	if (!r->drained && !r->gone)
		warnings_add(&run->warnings,
			     "Not all output had been passed on and kept when these results were made.");
	if (r->has_dir && finish_run(&r->result->dir, begin, FINISH_LIVE, &hurry, run, &err) < 0)
		warnings_add(&run->warnings, "The results are incomplete: %s.", err.text);
	if (r->sampling && profiling_finish(&r->result->dir, r->sampling, &hurry, run, &err) < 0)
		warnings_add(&run->warnings, "There is no CPU profile: %s.", err.text);
	if (r->options->instrument)
		instrument_finish(&r->result->dir, run->survivors || r->gone, &hurry, run);
	if (r->has_dir && !r->options->in_job)
		regions_finish(&r->result->dir, &regions, run);
	if (judging_run(run, begin, &judging, &err) < 0)
		warnings_add(&run->warnings, "What limited the run is not told: %s.", err.text);
	run->cost_finish_cpu_s = (double)(clock_process_ns() - cpu_before) / 1e9;
	run->cost_max_rss = own_peak_rss();
	if (!r->has_dir) {
		r->result->json = runjson_build(run, begin);
		return;
	}
	r->result->kept = results_write(&r->result->dir, begin, run, &r->result->json, &err) == 0;
	if (!r->result->kept)
		warnings_add(&run->warnings, "run.json was not written: %s.", err.text);
}

static void note_markers(struct recording *r)
{
	const struct markers_watch *m = &r->markers;
	struct warnings *w = &r->run->warnings;

	if (m->truncated)
		warnings_add(w, "The markers file was written over; marks may be missing (append with >>).");
	if (m->replaced)
		warnings_add(w, "The markers file was replaced by another; marks may be missing.");
	if (m->cut)
		warnings_add(w, "Lines of the markers file over 4,096 bytes, which were cut: %" PRIu64 ".", m->cut);
	if (m->future)
		warnings_add(w, "Marks that named a time to come, and got the time they were seen: %" PRIu64 ".",
			     m->future);
	if (m->wall_clock)
		warnings_add(w, "Marks that named wall-clock time, which was converted: %" PRIu64 ".", m->wall_clock);
}

static int record(struct recording *r, json_t *begin, struct error *err)
{
	int64_t cpu_before = clock_process_ns();
	char **recorded = NULL;
	int problem = prepare_sampling(r, err) < 0 || prepare_instrument(r, &recorded, err) < 0 ||
		      prepare(r, recorded, err) < 0 || start_watching(r, err) < 0;

	preload_environment_free(recorded);
	if (problem)
		return RECORD_TROUBLE;
	if (r->sampling && sampling_begin(r->sampling, r->command, err) < 0)
		return RECORD_TROUBLE;
	monitor_begin(r->monitor, clock_mono_ns());
	problem = launch_go(r->launch, &r->start, err);
	if (problem) {
		r->result->exit_status = problem;
		return problem < 0 ? RECORD_TROUBLE : RECORD_OK;
	}
	r->result->started = true;
	r->run->start = r->run->end = r->start;
	r->run->wall_start_ns = r->start + clock_wall_offset_ns();
	r->deadline = r->options->timeout_s > 0 ? r->start + (int64_t)(r->options->timeout_s * 1e9) : 0;
	recording_watch(r);
	if (r->run->end == r->start)
		r->run->end = clock_mono_ns();
	monitor_end(r->monitor, r->run->end);
	let_signals_hurry(r);
	if (r->sampling)
		sampling_end(r->sampling, monitor_processes(r->monitor), clock_mono_ns());
	markers_close(&r->markers, r->run->end);
	note_markers(r);
	decide_status(r);
	note_survivors(r);
	monitor_report(r->monitor, r->run);
	monitor_free(r->monitor);
	r->monitor = NULL;
	note_watching(r, clock_process_ns() - cpu_before, launch_helper_cpu_ns(r->launch));
	finish(r, begin);
	return RECORD_OK;
}

static void note_machine(struct recording *r, const struct machine_state *state)
{
	CLEANUP(buf_release) struct buf reasons;

	buf_init(&reasons);
	if (state->clean || r->options->precheck == PRECHECK_OFF)
		return;
	begin_reasons(state, &reasons);
	warnings_add(&r->run->warnings, "The machine was not quiet before the run: %s.", reasons.text);
}

static const char *default_label(const char *command)
{
	const char *slash = strrchr(command, '/');

	return slash && slash[1] ? slash + 1 : command;
}

int record_run(const struct record_options *options, struct record_result *result, struct error *err)
{
	struct recording r = {.options = options, .result = result, .run = &result->run, .signals = -1};
	CLEANUP(json_cleanup) json_t *begin = NULL;
	const char *label = options->label ? options->label : default_label(options->argv[0]);
	struct machine_state state;
	int64_t wall = clock_wall_ns();
	int problem = begin_precheck(options, &state, err);

	r.markers.fd = r.markers.notify = -1;
	if (problem != RECORD_OK)
		return problem;
	/* From here on Ctrl-C means the command, which is about to start. */
	r.signals = launch_block_signals(err);
	if (r.signals < 0)
		return RECORD_TROUBLE;
	problem = make_dir(&r, label, wall, err);
	if (problem != RECORD_OK) {
		close(r.signals);
		return problem;
	}
	begin = begin_build(options, &state, label, wall);
	result->run.label = strdup(label);
	result->run.command_line = strdup(json_get_text(begin, "command", label));
	write_begin(&r, begin);
	note_machine(&r, &state);
	problem = record(&r, begin, err);
	markers_close(&r.markers, clock_mono_ns());
	monitor_free(r.monitor);
	sampling_free(r.sampling);
	launch_free(r.launch);
	if (r.signals >= 0)
		close(r.signals);
	if (r.has_dir && !result->started)
		rundir_discard(&result->dir);
	return problem;
}
