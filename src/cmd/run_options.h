/* The options of every command that runs another one under the recorder: `run` and `profile`. */
#ifndef ASSAY_CMD_RUN_OPTIONS_H
#define ASSAY_CMD_RUN_OPTIONS_H

#include "cmd/options.h"
#include "record/record.h"
#include "record/sampling.h"

#define RUN_TEXT_OF(number) RUN_TEXT_OF_VALUE(number)
#define RUN_TEXT_OF_VALUE(number) #number

/* Member of the command's own struct of arguments. */
struct run_options {
	const char *out, *label, *engine, *precheck, *cpu_profile, *sampler, *regions;
	struct option_list env;
	double timeout_s, interval_ms;
	bool wait_tree, exit_zero, quiet, summary_only, no_probe;
	bool in_job; /* not an option: one rank of a job */
	bool instrument; /* an option of profile alone */
};

extern const struct run_options run_options_defaults;

/* Their rows, for a struct S whose member M is a struct run_options. */
#define RUN_OPTION_AT(S, M, field) (offsetof(S, M) + offsetof(struct run_options, field))
#define RUN_OPTION_ROWS(S, M)                                                                                          \
	{"out", 'o', OPTION_TEXT, RUN_OPTION_AT(S, M, out), "DIR", "folder for the results; must be new or empty",     \
	 "assay-runs/DATE-LABEL"},                                                                                     \
	{"label", 0, OPTION_TEXT, RUN_OPTION_AT(S, M, label), "TEXT", "name of this run in reports",                   \
	 "the command's name"},                                                                                        \
	{"env", 0, OPTION_LIST, RUN_OPTION_AT(S, M, env), "K=V",                                                       \
	 "set a variable for the command; may be repeated", NULL},                                                     \
	{"timeout", 0, OPTION_NUMBER, RUN_OPTION_AT(S, M, timeout_s), "S",                                             \
	 "end the whole process tree after S seconds (TERM, 5 s later KILL); exit status 124", "none", NULL, 0, 1e9},  \
	{"interval", 0, OPTION_NUMBER, RUN_OPTION_AT(S, M, interval_ms), "MS",                                         \
	 "time between readings; stretched when reading would cost over 0.7% of a core", "10", NULL, 1, 60000},        \
	{"engine", 0, OPTION_TEXT, RUN_OPTION_AT(S, M, engine), "NAME",                                                \
	 "parser for the command's output: auto, none, or one that `assay doctor` lists", "auto"},                     \
	{"precheck", 0, OPTION_CHOICE, RUN_OPTION_AT(S, M, precheck), "WHAT",                                          \
	 "when the machine is busy or short of memory before the run", "warn", "wait|refuse|warn|off"},                \
	{"no-probe", 0, OPTION_FLAG, RUN_OPTION_AT(S, M, no_probe), NULL,                                              \
	 "do not measure how fast memory can be read, nor look at which pages are touched", NULL},                     \
	{"wait-tree", 0, OPTION_FLAG, RUN_OPTION_AT(S, M, wait_tree), NULL,                                            \
	 "wait for descendants that outlive the command, too", NULL},                                                  \
	{"cpu-profile", 0, OPTION_MAYBE, RUN_OPTION_AT(S, M, cpu_profile), "HZ",                                       \
	 "sample the CPU HZ times per CPU second and thread, for `assay profile DIR`",                                 \
	 RUN_TEXT_OF(SAMPLING_HZ_DEFAULT)},                                                                            \
	{"sampler", 0, OPTION_CHOICE, RUN_OPTION_AT(S, M, sampler), "WHO",                                             \
	 "who takes these samples: a library in the command's processes, or perf events", "preload", "preload|perf"},  \
	{"regions", 0, OPTION_CHOICE, RUN_OPTION_AT(S, M, regions), "MODE",                                            \
	 "what is recorded of the regions that the program marks; sets ASSAY_REGIONS",                                \
	 "as ASSAY_REGIONS says, or trace",                                                                            \
	 "trace|aggregate|count|off"},                                                                                 \
	{"summary-only", 0, OPTION_FLAG, RUN_OPTION_AT(S, M, summary_only), NULL,                                      \
	 "the command's standard output goes to its log only", NULL},                                                  \
	{"exit-zero", 0, OPTION_FLAG, RUN_OPTION_AT(S, M, exit_zero), NULL,                                            \
	 "exit with 0 whatever the command's status was", NULL},                                                       \
	{"quiet", 'q', OPTION_FLAG, RUN_OPTION_AT(S, M, quiet), NULL, "print no summary", NULL}

/* What cannot be, before anything runs; *ret_hz is what --cpu-profile asks for, 0 without it. */
int run_options_check(const struct run_options *o, unsigned *ret_hz, struct error *err);

/* Which of them was given, other than by its default: its name; NULL: none. For a command that also has other work. */
const char *run_options_given(const struct run_options *o);

/* Runs the command under the recorder, hands the result to `answer` to print, and returns the exit status: the
 * command's own unless --exit-zero, or what assay's trouble is, said on stderr after "assay WHO: ". */
int run_options_execute(const struct run_options *o, unsigned hz, const char *who, char **command,
			void (*answer)(void *context, struct record_result *result), void *context);

/* A JSON answer of a live run on standard output, behind what the command printed there, or to the file that `path`
 * names where it is not "". `root` may be NULL: out of memory. */
void run_options_put_json(const char *who, const char *path, const json_t *root, const struct record_result *result);

/* The summary of a run on stderr. */
void run_options_put_summary(const struct record_result *result);

#endif
