#include "trial/bench.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "judge/bench.h"
#include "judge/stats.h"
#include "trial/bench_output.h"
#include "trial/trial.h"

#define SECONDS_PER_COMMAND 3.0 /* of runs, where their number is left to us */
#define SHELL_WORDS_MAX 64
#define LABEL_COLUMNS 80

struct execution {
	struct bench *bench;
	const struct bench_execution *options;
	struct bench_output *output;
	size_t set_up; /* commands whose setup was begun: those get their cleanup */
	bool command_failed;
};

/* A label or a line for an error: on one line, not longer than a look. */
struct shown {
	char text[4 * LABEL_COLUMNS + 8];
};

static struct shown show(const char *text)
{
	CLEANUP(buf_release) struct buf line;
	struct shown s;

	buf_init(&line);
	utf8_append_line(&line, text, LABEL_COLUMNS);
	snprintf(s.text, sizeof s.text, "%s", line.text);
	return s;
}

/* "exited with status 3", "was ended by signal 11 (SIGSEGV)". A shell's status for a signal is told as what it is. */
static void explain_status(const char *who, const char *line, int status, struct error *err)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status))
			   : code > 128	       ? sigabbrev_np(code - 128)
					       : NULL;

	if (WIFSTOPPED(status))
		error_set(err,
			  "%s'%s' stopped itself (SIG%s) and was ended: commands run in the background, where the "
			  "terminal is not theirs; feed them by --input",
			  who, show(line).text, sigabbrev_np(WSTOPSIG(status)));
	else if (WIFSIGNALED(status))
		error_set(err, "%s'%s' was ended by signal %d (SIG%s)", who, show(line).text, WTERMSIG(status),
			  name ? name : "?");
	else if (name)
		error_set(err, "%s'%s' exited with status %d, a shell's word for signal %d (SIG%s)", who,
			  show(line).text, code, code - 128, name);
	else
		error_set(err, "%s'%s' exited with status %d", who, show(line).text, code);
}

static int run_hook(struct execution *e, const struct bench_command *c, enum bench_extra which, struct error *err)
{
	char *words[SHELL_WORDS_MAX + 3];
	const char *where = c->extras[BENCH_OUTPUT];
	bool shown = where && strcmp(where, "inherit") == 0;
	struct timed_options o = {.argv = words};
	struct bench_descriptors d;
	struct timed_result result;
	char who[32];
	size_t n = 0;
	int got;

	if (!c->extras[which])
		return 0;
	while (n < SHELL_WORDS_MAX && e->options->shell[n]) {
		words[n] = e->options->shell[n];
		n++;
	}
	words[n] = (char[]){"-c"};
	words[n + 1] = c->extras[which];
	words[n + 2] = NULL;
	if (bench_output_open(e->output, shown ? where : NULL, NULL, &d, err) < 0)
		return -1;
	o.in = d.in;
	o.out = d.out;
	o.err = d.err;
	got = timed_run(e->options->timed, &o, which == BENCH_CLEANUP ? NULL : e->options->stop, &result, err);
	bench_output_close(&d);
	if (got != 0)
		return got == 1 ? 1 : -1;
	if (result.status == 0)
		return 0;
	snprintf(who, sizeof who, "--%s ", bench_extra_names[which]);
	explain_status(who, c->extras[which], result.status, err);
	return -1;
}

static void keep(struct bench_run *run, const struct timed_result *r, bool counts)
{
	*run = (struct bench_run){
		.status = r->status,
		.counts = counts,
		.timed_out = r->timed_out,
		.wall_s = (double)r->wall_ns / NS_PER_S,
		.user_s = (double)r->user_ns / NS_PER_S,
		.system_s = (double)r->system_ns / NS_PER_S,
		.peak_bytes = (double)r->max_rss,
		.minor_faults = (double)r->minor_faults,
		.major_faults = (double)r->major_faults,
		.voluntary_switches = (double)r->voluntary_switches,
		.involuntary_switches = (double)r->involuntary_switches,
	};
}

/* Runs words once. `runs` NULL: unmeasured. Failing is what the command does, -1 what we do about it. */
static int run_once(struct execution *e, const char *label, char *const *words, const char *where, bool may_fail,
		    struct bench_runs *runs, struct error *err)
{
	const struct bench_execution *x = e->options;
	struct timed_options o = {.argv = words, .timeout_ns = x->timeout_ns};
	struct bench_descriptors d;
	struct timed_result result;
	struct bench_run *run;
	int got;

	if (bench_output_open(e->output, where, x->input, &d, err) < 0)
		return -1;
	o.in = d.in;
	o.out = d.out;
	o.err = d.err;
	got = timed_run(x->timed, &o, x->stop, &result, err);
	bench_output_close(&d);
	if (got != 0)
		return got == 1 ? 1 : -1;
	if (runs) {
		run = bench_runs_add(runs);
		if (!run)
			return error_set(err, "out of memory for the runs of '%s'", show(label).text);
		keep(run, &result,
		     !result.timed_out && !WIFSTOPPED(result.status) && (result.status == 0 || may_fail));
	}
	if (may_fail || (result.status == 0 && !result.timed_out))
		return 0;
	e->command_failed = true;
	if (result.timed_out)
		error_set(err, "'%s' timed out after %s", show(label).text,
			  units_seconds((double)x->timeout_ns / NS_PER_S).text);
	else
		explain_status("", label, result.status, err);
	return -1;
}

/* Says which run of the command it was, and what helps where it was the command that failed. */
static void name_turn(struct error *err, bool warmup, size_t turn, bool by_itself, const char *where)
{
	size_t length = strlen(err->text);
	bool shown = where && strcmp(where, "inherit") == 0;

	snprintf(err->text + length, sizeof err->text - length, " (%srun %zu)%s%s", warmup ? "warm-up " : "", turn + 1,
		 by_itself ? "; -i goes on all the same" : "",
		 by_itself && !shown ? ", --output inherit shows what it writes" : "");
}

static int run_arm(void *context, size_t side, int block, int position, size_t turn, struct error *err)
{
	struct execution *e = context;
	struct bench *b = e->bench;
	struct bench_command *c = &b->commands[side];
	bool warmup = block < 0;
	int got;

	(void)position;
	if (side == b->count)
		return run_once(e, b->shell, e->options->empty, NULL, false, warmup ? NULL : &b->startup, err);
	got = run_hook(e, c, BENCH_PREPARE, err);
	if (got != 0)
		return got;
	got = run_once(e, c->line, c->words, c->extras[BENCH_OUTPUT], e->options->ignore_failure,
		       warmup ? NULL : &c->runs, err);
	if (got < 0)
		name_turn(err, warmup, turn, e->command_failed, c->extras[BENCH_OUTPUT]);
	return got ? got : run_hook(e, c, BENCH_CONCLUDE, err);
}

static bool is_decided(void *context, size_t pairs)
{
	const struct execution *e = context;
	bool decided;

	if (pairs < e->options->least)
		return false;
	/* What cannot be judged for want of memory now fails with its reason at the end. */
	return bench_decided(e->bench, &decided, NULL) == 0 && decided;
}

static void tell_progress(void *context, size_t at, size_t of, size_t side)
{
	const struct execution *e = context;

	if (e->options->progress)
		e->options->progress(e->options->context, at, of, side);
}

/* Two stages where the number of runs is left to us: the first tells how long a turn takes. Both draw from one plan. */
static size_t choose_runs(const struct bench_execution *x, size_t commands, size_t so_far, double seconds)
{
	double fit = SECONDS_PER_COMMAND * (double)commands / (seconds / (double)so_far);
	size_t runs = fit < (double)x->most ? (size_t)fit & ~(size_t)1 : x->most;

	return runs > so_far ? runs : so_far;
}

static enum trial_stop run_trial(struct execution *e, struct error *err)
{
	const struct bench_execution *x = e->options;
	struct bench *b = e->bench;
	struct trial_options o = {
		.sides = b->count + (x->empty ? 1 : 0),
		.pairs = x->runs ? x->runs : x->least,
		.until_decided = x->until_decided,
		.order = "random",
		.seed = b->seed,
		.warmup = b->warmup,
		.run = run_arm,
		.decided = is_decided,
		.progress = tell_progress,
		.context = e,
	};
	int64_t from = clock_mono_ns();
	enum trial_stop stop;

	if (x->until_decided)
		o.pairs = x->runs ? x->runs : x->most;
	else if (!x->runs && o.pairs < x->most)
		o.pairs += o.pairs % 2; /* whole blocks, or the second stage would draw others */
	stop = trial_run(&o, err);
	if (stop != TRIAL_DONE || x->runs || x->until_decided)
		return stop;
	o.done = o.pairs * o.sides;
	o.pairs = choose_runs(x, b->count, o.pairs, (double)(clock_mono_ns() - from) / NS_PER_S);
	o.warmup = 0;
	return o.pairs * o.sides > o.done ? trial_run(&o, err) : stop;
}

static int set_up(struct execution *e, struct error *err)
{
	int got = 0;

	while (got == 0 && e->set_up < e->bench->count)
		got = run_hook(e, &e->bench->commands[e->set_up++], BENCH_SETUP, err);
	return got;
}

/* Also after a failure: what setup made is to go. The first failure is the one that is told. */
static int clean_up(struct execution *e, struct error *err)
{
	int failed = 0;

	for (size_t i = 0; i < e->set_up; i++) {
		struct error own;

		if (run_hook(e, &e->bench->commands[i], BENCH_CLEANUP, &own) < 0 && failed++ == 0)
			*err = own;
	}
	return failed ? -1 : 0;
}

int bench_execute(struct bench *b, const struct bench_execution *x, struct error *err)
{
	CLEANUP(bench_output_release) struct bench_output output = {.null = -1, .drain = {-1, -1}, .quit = -1};
	struct execution e = {.bench = b, .options = x, .output = &output};
	struct error cleaning;
	int got;

	if (bench_output_init(&output, err) < 0)
		return -1;
	b->clock_s = (double)clock_step_ns() / NS_PER_S;
	got = set_up(&e, err);
	if (got == 0) {
		enum trial_stop stop = run_trial(&e, err);

		got = stop == TRIAL_FAILED ? -1 : stop == TRIAL_INTERRUPTED ? 1 : 0;
	}
	if (clean_up(&e, &cleaning) < 0 && got == 0) {
		*err = cleaning;
		got = -1;
	}
	b->state = got < 0 ? BENCH_FAILED : got > 0 ? BENCH_INTERRUPTED : BENCH_DONE;
	return got;
}
