/* What the rules ask of a phase, worked out once from its figures: rates and shares in place of totals.
 *
 * Only arithmetic: no threshold and no verdict is here. A number that was not measured is NaN, and compares as false.
 */
#ifndef ASSAY_JUDGE_PHASE_FACTS_H
#define ASSAY_JUDGE_PHASE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/run.h"

/* Bytes per second through calls beyond which what is copied does not stay in the caches. */
#define COPIES_MUCH 5e8

struct device_facts {
	char name[48], kind[48]; /* "vda", "virtual"; "" where there is none */
	double read_rate, write_rate; /* bytes per second; of a network interface: received, sent */
	double moved_rate;            /* both */
	double busy;  /* share of the phase with a request under way; of a GPU: with a kernel running */
	double speed; /* bytes per second that it can do; NaN: unknown */
};

struct gpu_facts {
	char name[96];
	double busy, memory_busy; /* shares */
	double target_memory;     /* bytes on it of the command's own processes; NaN: not known */
	double pcie;              /* the busier direction's share of the link */
	double pcie_rate;         /* bytes per second in that direction */
	double throttled_power, throttled_heat; /* shares */
};

struct phase_facts {
	const struct run *run;
	const struct phase *phase;
	const struct phase_figures *f;
	size_t index;
	double seconds;

	/* CPU */
	double cpus;         /* that the command may use: affinity and quota */
	double cores;        /* CPU seconds per second */
	double wait_share;   /* of the time in which its threads wanted a CPU, they waited for one */
	double waiting;      /* threads' worth that were ready and had no CPU */
	double busiest;      /* share of a CPU that whichever thread was the busiest used */
	double top_thread;   /* that the thread with the most CPU time in the phase used; NaN: not known */
	double in_kernel;    /* of the CPU time, spent in the kernel */
	double busy_threads; /* how many used at least half a CPU; NaN: not known */
	double busy_cores;   /* what those used together */
	char busiest_name[96]; /* of the thread with the most CPU time; "" unknown */
	double others;       /* CPUs used by everybody else, assay itself included */
	double stolen;       /* CPUs' worth taken by the hypervisor */
	double throttled;    /* share of the quota's periods in which the group was held back */

	/* Waiting, as shares of the phase: of the control group where it has its own account, else of the machine. */
	double psi_cpu, psi_memory, psi_io;

	/* Memory and disk */
	double read_rate, write_rate; /* bytes per second, of the tree */
	double moved_rate;            /* both; a part that was not measured adds nothing */
	double refault_rate;          /* file pages dropped and read again */
	double refault_share;         /* of what was read */
	bool refaults_of_group;
	double memory_used; /* share of the memory that there is, or that the control group may use, whichever is more
			     */
	double swap_rate;
	double copied_rate; /* bytes per second through read and write calls */
	double input_bytes; /* of the large files that the command reads; NaN: none known */
	struct device_facts disk, network; /* the one that moved most */
	struct gpu_facts gpu;              /* the busiest one */

	/* Memory bandwidth. Low and high: by the lower and the higher of the peaks that were measured. */
	double peak_threads;          /* that the peaks are of: as many as were busy */
	double peak_low, peak_high;   /* bytes per second; NaN: not measured */
	double token_bytes;           /* read per token */
	double token_rate;            /* tokens per second */
	double stream_rate;           /* bytes per second by tokens */
	double touched_share;         /* of the pages per second that a program reading at the peak would touch */
	bool fits_cache;              /* what it works on is not larger than the caches */
	bool overlapping;             /* several requests were decoded at once: a step's tokens share one reading */
};

void phase_facts_find(const struct run *run, size_t phase, struct phase_facts *ret);

/* The counters without which most rules have nothing to say, those of them that were not measured: how many, and their
 * names (static). */
#define PHASE_FACTS_WANTED 7
size_t phase_facts_missing(const struct phase_facts *p, const char *names[PHASE_FACTS_WANTED]);

#endif
