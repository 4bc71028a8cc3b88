/* The process around a measured snippet: warm-up, the rows, the clock and the counters, one reply for assay.
 *
 * Everything here happens outside of the rows; within them there is only the snippet's own loop. */
#include "exec/snippet_runner.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROWTH_LEAST 2.0
#define GROWTH_MOST 100.0
#define AIM 1.2 /* beyond the target, so that the next row is likely to reach it */
/* A first row this many times as long as the target is long enough, cold or not. */
#define LONG_COLD 10
#define PAUSES 100 /* of a millisecond, for children to end by themselves */

enum stage { BEFORE, WARMING, CHOOSING, MEASURING, OVER };

/* As the kernel writes a group of two counters with PERF_FORMAT_GROUP and both times. */
struct counts {
	uint64_t members, enabled, running, values[2];
};

static struct {
	enum stage stage;
	uint64_t number, warmup;
	int64_t target, from, ns, row_ns; /* ns: of all rows; row_ns: of the executions timed alone in this row */
	uint64_t row_stops;
	int each, counters, odd;
	struct counts before;
	struct snippet_reply *reply;
	const char *path;
	pid_t pid;
	int forks;
	volatile int *stray; /* a page that its children share; NULL: there is none */
} run;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A process that the statement made, and that did not end: it would measure, too, and make processes of its own. */
static void end_stray(void)
{
	if (getpid() == run.pid)
		return;
	if (run.stray)
		*run.stray = 1;
	_exit(0);
}

static void count_fork(void)
{
	run.forks = 1;
}

/* Children that end soon may tell whether they were strays; what lives longer is not left behind. */
static void end_children(void)
{
	const struct timespec pause = {0, 1000000};
	pid_t got = 1;

	for (int i = 0; i < PAUSES && got >= 0; i++) {
		while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (got == 0)
			nanosleep(&pause, NULL);
	}
	if (got == 0 && getpgrp() == run.pid) {
		signal(SIGTERM, SIG_IGN);
		kill(0, SIGTERM);
	}
}

static int open_counter(uint64_t config, int group)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = config;
	attr.exclude_kernel = attr.exclude_hv = 1;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* -1 where this machine or its settings do not let us count. */
static int open_counters(void)
{
	int cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES, -1);

	if (cycles >= 0 && open_counter(PERF_COUNT_HW_INSTRUCTIONS, cycles) < 0) {
		close(cycles);
		return -1;
	}
	return cycles;
}

static int read_counters(struct counts *ret)
{
	return run.counters >= 0 && read(run.counters, ret, sizeof *ret) == (ssize_t)sizeof *ret && ret->members == 2;
}

/* Counters that had to share the hardware have only an estimate: none is better. */
static void keep_counts(const struct counts *after)
{
	const struct counts *before = &run.before;

	if (after->running - before->running != after->enabled - before->enabled || after->running == before->running)
		return;
	run.reply->cycles = (int64_t)(after->values[0] - before->values[0]);
	run.reply->instructions = (int64_t)(after->values[1] - before->values[1]);
}

static uint64_t grown(uint64_t number, int64_t ns)
{
	double factor = ns > 0 ? AIM * (double)run.target / (double)ns : GROWTH_MOST;

	factor = factor < GROWTH_LEAST ? GROWTH_LEAST : factor > GROWTH_MOST ? GROWTH_MOST : factor;
	factor *= (double)number;
	return factor < (double)SNIPPET_NUMBER_MAX ? (uint64_t)factor : SNIPPET_NUMBER_MAX;
}

/* What the row that has ended says, and which one comes next. */
static void advance(struct snippet_batch *batch, int64_t ns)
{
	switch (run.stage) {
	case BEFORE:
		run.stage = run.warmup ? WARMING : run.number ? MEASURING : CHOOSING;
		batch->number = run.warmup ? run.warmup : run.number ? run.number : 1;
		return;
	case WARMING:
		run.reply->warmup_ns = ns;
		run.stage = run.number ? MEASURING : CHOOSING;
		batch->number = run.number ? run.number : 1;
		if (run.number || run.warmup != 1 || ns < LONG_COLD * run.target)
			return;
		run.reply->number = 1;
		run.ns = ns;
		run.stage = OVER;
		return;
	case CHOOSING:
		run.reply->number = batch->number;
		run.ns = ns;
		if (ns >= run.target || batch->number >= SNIPPET_NUMBER_MAX)
			run.stage = OVER;
		batch->number = grown(batch->number, ns);
		return;
	case MEASURING:
		run.reply->number = batch->number;
		run.ns = ns;
		run.stage = OVER;
		return;
	case OVER:
		return;
	}
}

int snippet_next(struct snippet_batch *batch)
{
	int64_t ns = now_ns() - run.from;
	struct counts after;

	if (run.stage == MEASURING && !run.each && read_counters(&after) && run.before.members == 2)
		keep_counts(&after);
	end_stray();
	if (run.stage != BEFORE && (batch->left || (run.each && run.row_stops != batch->number))) {
		run.odd = 1;
		run.reply->number = batch->number;
		run.reply->left = run.each && !batch->left ? batch->number - run.row_stops : batch->left;
		return 0;
	}
	advance(batch, run.each ? run.row_ns : ns);
	if (run.stage == OVER)
		return 0;
	batch->left = batch->number;
	run.row_ns = 0;
	run.row_stops = 0;
	if (!read_counters(&run.before))
		run.before.members = 0;
	run.from = now_ns();
	return 1;
}

void snippet_start(void)
{
	run.from = now_ns();
}

void snippet_stop(void)
{
	run.row_ns += now_ns() - run.from;
	run.row_stops++;
}

/* One loop from its first row to its last. False where the statement left it. */
static int go(snippet_loop *loop, void (*function)(void), uint64_t number, uint64_t warmup)
{
	struct snippet_batch batch = {0, 0, function};

	run.stage = BEFORE;
	run.number = number;
	run.warmup = warmup;
	run.odd = 0;
	loop(&batch);
	if (run.stage == OVER && !run.odd)
		return 1;
	if (!run.odd) { /* it left the function, rows and all */
		run.reply->number = batch.number;
		run.reply->left = batch.number;
	}
	run.reply->outcome = SNIPPET_LEFT;
	return 0;
}

static void nothing(void)
{
	__asm__ __volatile__("");
}

static void measure_empty(snippet_loop *empty, void (*function)(void))
{
	struct snippet_reply *reply = run.reply, kept = *reply;

	if (go(empty, function, kept.number, 0) && (kept.empty_ns < 0 || run.ns < kept.empty_ns))
		kept.empty_ns = run.ns;
	*reply = kept;
}

static int put_reply(const struct snippet_reply *reply)
{
	int fd = open(run.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int whole = fd >= 0 && write(fd, reply, sizeof *reply) == (ssize_t)sizeof *reply;

	return fd >= 0 && close(fd) == 0 && whole ? 0 : 1;
}

/* The empty loop runs right before and right behind the measured row, with as many executions. */
int snippet_main(char **argv, snippet_loop *statement, snippet_loop *empty, void (*function)(void))
{
	static struct snippet_reply reply;
	uint64_t number = strtoull(argv[SNIPPET_NUMBER], NULL, 10), warmup = strtoull(argv[SNIPPET_WARMUP], NULL, 10);
	void (*volatile empty_function)(void) = function ? nothing : NULL;
	void *shared;
	int got;

	reply.magic = SNIPPET_MAGIC;
	reply.outcome = SNIPPET_MEASURED;
	reply.cycles = reply.instructions = reply.empty_ns = -1;
	run.reply = &reply;
	run.path = argv[SNIPPET_REPLY];
	run.target = strtoll(argv[SNIPPET_TARGET], NULL, 10);
	run.each = strcmp(argv[SNIPPET_EACH], "1") == 0;
	run.pid = getpid();
	run.counters = -1;
	if (number) {
		reply.number = number;
		measure_empty(empty, empty_function);
		run.counters = open_counters();
	}
	shared = mmap(NULL, sizeof *run.stray, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	run.stray = shared == MAP_FAILED ? NULL : shared;
	pthread_atfork(end_stray, count_fork, NULL);
	got = go(statement, function, number, warmup);
	reply.ns = run.ns;
	if (run.forks)
		end_children();
	if (run.stray && *run.stray)
		reply.outcome = SNIPPET_STRAY;
	run.counters = -1;
	if (got && number)
		measure_empty(empty, empty_function);
	return put_reply(&reply);
}

#ifdef SNIPPET_WITH_MAIN
int main(int argc, char **argv)
{
	return argc == SNIPPET_ARGUMENTS ? snippet_main(argv, snippet_statement, snippet_empty, NULL) : 2;
}
#endif
