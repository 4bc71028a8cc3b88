/* A finished run, as its readers see it: everything that run.json says, as plain data.
 *
 * Missing numbers are NaN, missing counts -1; a writer leaves them out. Times are ns of CLOCK_MONOTONIC. */
#ifndef ASSAY_MODEL_RUN_H
#define ASSAY_MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/bandwidth.h"
#include "model/engine_result.h"
#include "model/limit.h"
#include "model/phase.h"
#include "model/process.h"
#include "model/profile.h"
#include "model/run_regions.h"
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
	double cpus_allowed;     /* CPUs that its running threads may use, by their affinity: mean of the phase */
	double busiest_thread_s; /* CPU time of whichever thread was the busiest, from look to look */
	double touched_rate;     /* bytes of distinct pages touched per second, mean of the looks; see counters.md */
	double machine_busy_s, machine_steal_s; /* CPU seconds of everybody; taken by the hypervisor */
	double machine_major_faults, swap_in, swap_out; /* of the machine; bytes */
	double memory_available;     /* of the machine, the least in the phase; bytes */
	/* Of the command's control group. */
	double oom_kills;
	double memory_limit, quota; /* bytes, the least in the phase; CPUs, their mean */
	double group_memory_peak;   /* bytes in use, page cache included */
	double quota_periods, throttled_periods, throttled_s;
	double group_refault_bytes;
	double group_psi_cpu_some, group_psi_memory_some, group_psi_io_some; /* shares */
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

/* A series whose name holds a device, a process, a thread or a file: disk.vda.busy, thread.123.cpu. */
struct run_series {
	char *name, *scope; /* owned */
	bool counter;
	struct series_span {
		double growth;         /* of a counter over the phase */
		double mean, min, max; /* of a gauge */
	} *phases, whole; /* one per phase; owned. NaN where there is nothing to say */
	double first, last; /* the first and the last value of all */
};

/* What of the model's weights one generated token takes, from the header of the model file. */
struct run_weights {
	double file_bytes;      /* of the model's files */
	double bytes_per_token; /* weights touched for one token; NaN: unknown */
	double kv_bytes_per_position; /* read of the cache for each position of the context; NaN: unknown */
	char how[160]; /* how this was found, one phrase; "" where there is no model file */
};

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

	struct run_series *series;
	size_t series_count;
	bool series_sorted; /* by name */

	/* The machine; 0 where unknown. */
	int cpus, cpus_allowed;
	double memory_bytes;
	double cache_bytes, cache_one; /* the last level: all instances, and the largest one */
	struct bandwidth bandwidth[2]; /* how fast its memory is: as known before the run, as measured after it */
	struct run_weights weights;

	struct profile *profile; /* CPU samples with the names of their code; owned; NULL: none were taken */

	struct run_regions *regions; /* that the program marked; owned; NULL: none */

	struct limit *limits; /* in the order of the phases */
	size_t limit_count;
	struct movement *movements;
	size_t movement_count;

	/* What watching cost. */
	double cost_cpu_s, cost_helper_cpu_s, cost_share; /* while the command ran; share: of one core */
	double cost_finish_cpu_s;                         /* for making the results, after it had ended */
	double cost_max_rss;                              /* bytes, of assay itself over all of that */
	double interval_requested_ms, interval_effective_ms, slow_effective_ms;
	int64_t ticks;

	struct warnings warnings;
};

/* The series of that name, NULL where there is none. */
const struct run_series *run_series_find(const struct run *r, const char *name);

/* The name of the process that a series "process.PID.cpu" is of; "" where it is not among those that are shown. */
const char *run_series_process(const struct run *r, const struct run_series *s);

void run_init(struct run *r);
void run_release(struct run *r);

#endif
