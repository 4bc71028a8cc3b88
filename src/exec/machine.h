/* The machine: what it is, and whether it was quiet before the run. */
#ifndef ASSAY_EXEC_MACHINE_H
#define ASSAY_EXEC_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct machine {
	char cpu_model[128];
	char kernel[128]; /* release and version */
	char system[128]; /* PRETTY_NAME of os-release */
	char architecture[32];
	char boot_id[40];
	char machine_id[40];    /* /etc/machine-id, "" where there is none */
	char hypervisor[32]; /* "" on bare metal or where unknown */
	int cpus, cpus_allowed; /* online; in this process's affinity mask */
	int64_t memory, swap;   /* bytes */
};

void machine_read(struct machine *m);

struct machine_state {
	bool clean;
	double load_1min;
	double busy_cpus;          /* CPUs' worth of time that others used over the last look; NaN where unknown */
	int64_t memory_available;  /* bytes */
	int64_t swap_used;         /* bytes */
	char governor[32];         /* "" where there is none */
	int other_assay;           /* pid of another assay that is recording, 0: none */
	char reasons[6][160];      /* why not clean, one sentence fragment each */
	int reason_count;
};

/* Looks at the machine over `window_ns` (200 ms is enough; 0 leaves busy_cpus unknown). Thresholds stand in machine.c
 * and docs/run.md. Ancestors of this process that are assay too do not count as another assay. */
void machine_look(struct machine_state *s, int64_t window_ns);

#endif
