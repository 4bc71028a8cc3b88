/* A finished run, as its readers see it: everything that run.json says, as plain data.
 *
 * Missing numbers are NaN, missing counts -1; a writer leaves them out. Times are ns of CLOCK_MONOTONIC. */
#ifndef ASSAY_MODEL_RUN_H
#define ASSAY_MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/engine_result.h"
#include "model/phase.h"
#include "model/process.h"
#include "model/warnings.h"

enum run_status { RUN_OK, RUN_FAILED, RUN_SIGNAL, RUN_TIMEOUT, RUN_INTERRUPTED, RUN_PARTIAL };

const char *run_status_name(enum run_status status);

/* What happened in one phase (or in the whole run). */
struct phase_figures {
	double cpu_s, cpu_user_s, cpu_system_s; /* cpu_s is from a finer clock than its two parts */
	double runqueue_wait_s;
	/* Bytes, over the phase's ticks, summed over the tree. */
	double rss_peak, anon_peak, file_peak, shared_peak, swap_peak, pss_peak;
	double read_bytes, write_bytes;           /* at the storage layer, of the tree */
	double read_chars, write_chars;           /* through system calls */
	double minor_faults, major_faults;
	double psi_cpu_some, psi_memory_some, psi_memory_full, psi_io_some,
		psi_io_full;	      /* share of the phase, machine */
	double machine_refault_bytes; /* file pages that were dropped and read again, whole machine */
	double threads_max, processes_max;
	double oom_kills; /* in the command's control group */
};

extern const struct phase_figures phase_figures_none; /* all NaN */

/* A process of the tree, for the report. */
struct run_process {
	int pid, ppid;
	double start_s, end_s; /* since the command's start, as seen */
	double cpu_s, cpu_user_s, cpu_system_s, rss_peak, anon_peak, threads_peak, read_bytes, write_bytes;
	char comm[64];
	char command[160]; /* masked */
};

#define RUN_PROCESSES_SHOWN 32

struct run {
	enum run_status status;
	bool perturbed;
	int exit_code, signo; /* -1 / 0 where there is none */
	int assay_exit; /* the exit status that `assay run` passes on */

	char *label, *command_line; /* owned; the command line is masked */
	int64_t start, end;         /* of the command, ns */
	int64_t wall_start_ns;      /* wall time at start */

	struct phases phases;
	struct phase_figures *figures; /* one per phase */
	struct phase_figures whole;

	struct engine_result engine;
	bool has_engine;

	double wall_s, cpu_user_s,
		cpu_system_s; /* of the tree: rusage of what was reaped, and of survivors as last seen */

	double rss_peak, anon_peak;     /* bytes, summed over the tree at one tick, refined by high-water marks */
	double max_rss_process;         /* ru_maxrss: the largest single process */
	char rss_kind[96], anon_kind[96]; /* how these were found, one phrase each */

	uint64_t processes, processes_unseen;
	bool processes_exact;
	size_t survivors;               /* descendants that lived on after the command */
	struct run_process shown[RUN_PROCESSES_SHOWN]; /* the largest by CPU time, those that were seen */
	size_t shown_count;

	double voluntary_switches, involuntary_switches;

	/* What watching cost. */
	double cost_cpu_s, cost_helper_cpu_s, cost_share; /* while the command ran; share: of one core */
	double cost_finish_cpu_s;                         /* for making the results, after it had ended */
	double cost_max_rss;                              /* bytes, of assay itself over all of that */
	double interval_requested_ms, interval_effective_ms, slow_effective_ms;
	int64_t ticks;

	struct warnings warnings;
};

void run_init(struct run *r);
void run_release(struct run *r);

#endif
