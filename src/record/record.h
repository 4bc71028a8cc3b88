/* The recorder: one run from launch to finished run directory. Used by run, and later by profile and matrix.
 *
 * It prints nothing but through the callbacks of its options; the target's own output is passed on by the helper. */
#ifndef ASSAY_RECORD_RECORD_H
#define ASSAY_RECORD_RECORD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "model/run.h"
#include "store/rundir.h"

enum precheck { PRECHECK_WAIT, PRECHECK_REFUSE, PRECHECK_WARN, PRECHECK_OFF };

struct record_options {
	char *const *argv;         /* the command, ends with NULL */
	const char *const *env;    /* "K=V" to set for the target, ends with NULL; may be NULL */
	const char *out, *label;   /* NULL: default */
	const char *engine;        /* "auto", "none" or a parser's name */
	double timeout_s;          /* 0: none */
	double interval_ms;
	enum precheck precheck;
	bool wait_tree, summary_only;
	bool end_tree;             /* a signal that would end assay ends the whole tree, as a timeout does */
	bool no_probe;             /* neither look at pages touched, nor measure memory bandwidth */
	bool in_design;            /* an arm of a comparison: `block` and `arm` are its place there */
	int block, arm;            /* from 0; arm: position within the block */
	bool instrument;           /* calls of a program compiled with -finstrument-functions are recorded */
	unsigned profile_hz;       /* CPU samples per CPU second; 0: none are taken */
	const char *sampler;       /* who takes them, "preload" or "perf"; NULL: preload */
	const char *regions;       /* how the program's regions are recorded, $ASSAY_REGIONS; NULL: as it is set */
	bool in_job;               /* one rank of a job: its regions stay as recorded, the job's last rank merges all */
	/* Something for the person at the terminal, a sentence; may be NULL. */
	void (*say)(void *context, const char *text);
	/* What assay is doing that takes a while; NULL where nobody is watching. */
	void (*progress)(void *context, const char *text);
	void *say_context; /* of both */
};

struct record_result {
	struct run run;
	json_t *json; /* run.json as written; NULL where it could not be made */
	struct rundir dir;
	bool ends_with_newline; /* the caller's stdout is at the start of a line */
	bool kept;              /* run.json was written */
	bool elsewhere;         /* the results are not where they were wanted: the first warning says where and why */
	uint64_t undelivered;   /* bytes of output that the caller's file did not take */
	int exit_status;        /* what `run` passes on */
	bool started;           /* false: the command never ran; `why` says so */
	bool die_of_interrupt;  /* the target died of a Ctrl-C from the terminal: so should we */
};

enum record_problem { RECORD_OK = 0, RECORD_USAGE = -1, RECORD_REFUSED = -2, RECORD_TROUBLE = -3 };

void record_result_init(struct record_result *r);
void record_result_release(struct record_result *r);

/* Runs the command and finishes its run directory. Returns enum record_problem; with RECORD_OK what went wrong inside
 * assay stands in run.warnings. */
int record_run(const struct record_options *options, struct record_result *result, struct error *err);

#endif
