/* A benchmark: commands, how they were to be run, and every run of them. Plain data.
 *
 * Times are seconds as measured, the shell's start-up included; the judge subtracts it. */
#ifndef ASSAY_MODEL_BENCH_H
#define ASSAY_MODEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_run {
	int status;     /* as from wait4 */
	bool counts;    /* it ended by itself, with status 0 or where failures are ignored */
	bool timed_out;
	double wall_s, user_s, system_s;
	double peak_bytes, minor_faults, major_faults, voluntary_switches, involuntary_switches;
};

/* In the order in which they ran: items[i] of two commands were neighbours. */
struct bench_runs {
	struct bench_run *items;
	size_t count, room;
};

/* A run that is not filled in yet; NULL when out of memory. */
struct bench_run *bench_runs_add(struct bench_runs *r);

struct bench_parameter {
	char *name, *value;
};

/* What a command brings along, and may be given once for all or once per command. */
enum bench_extra { BENCH_SETUP, BENCH_PREPARE, BENCH_CONCLUDE, BENCH_CLEANUP, BENCH_OUTPUT, BENCH_EXTRAS };
extern const char *const bench_extra_names[BENCH_EXTRAS]; /* "setup", ..., as its option is called */

struct bench_command {
	char *line;                  /* as it is run, parameters filled in */
	char *name;                  /* NULL: none was given */
	char *extras[BENCH_EXTRAS];  /* NULL: none */
	char **words;                /* of the process that is made; ends with NULL */
	struct bench_parameter *parameters;
	size_t parameter_count;
	struct bench_runs runs;
};

enum bench_state { BENCH_DONE, BENCH_FAILED, BENCH_INTERRUPTED };

struct bench {
	struct bench_command *commands;
	size_t count;
	size_t reference;          /* index of the one that the others are compared with */
	char *shell;               /* NULL: none is used */
	struct bench_runs startup; /* of the shell with nothing to do, among the commands' runs */
	double clock_s;            /* the smallest time that the clock tells apart */
	double confidence, margin;
	size_t looks;              /* 1, or STATS_LOOKS where the number of runs was left to them */
	size_t warmup;
	uint64_t seed;
	enum bench_state state;
};

/* What a command is called in reports; borrowed. */
const char *bench_label(const struct bench_command *c);

void bench_release(struct bench *b);

#endif
