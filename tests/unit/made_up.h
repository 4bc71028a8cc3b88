/* Runs of one phase whose figures a test makes up, for what judges them. Include it after cmocka.h. */
#ifndef ASSAY_TESTS_MADE_UP_H
#define ASSAY_TESTS_MADE_UP_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/run.h"

#define MIB 1048576.0
#define GIB (1024 * MIB)

/* A run of one phase of 10 s on 4 CPUs, in which nothing has been measured yet. */
static inline void stage(struct run *r, enum phase_group group)
{
	run_init(r);
	r->cpus = r->cpus_allowed = 4;
	r->memory_bytes = 16 * GIB;
	r->cache_bytes = r->cache_one = 32 * MIB;
	r->end = INT64_C(10000000000);
	r->phases.items = calloc(1, sizeof *r->phases.items);
	r->phases.count = 1;
	r->phases.items[0] = (struct phase){.start = 0, .end = r->end, .group = group};
	snprintf(r->phases.items[0].name, sizeof r->phases.items[0].name, "%s", phase_group_name(group));
	r->figures = calloc(1, sizeof *r->figures);
	r->figures[0] = phase_figures_none;
}

/* A quiet phase: everything was measured, and nothing happened. */
static inline struct phase_figures *quiet(struct run *r, enum phase_group group)
{
	struct phase_figures *f;

	stage(r, group);
	f = r->figures;
	f->cpu_s = f->runqueue_wait_s = f->busiest_thread_s = f->machine_busy_s = f->machine_steal_s = 0;
	f->psi_cpu_some = f->psi_memory_some = f->psi_io_some = 0;
	f->read_bytes = f->write_bytes = f->read_chars = f->write_chars = 0;
	f->machine_refault_bytes = f->swap_in = f->swap_out = f->major_faults = 0;
	f->threads_max = f->processes_max = 1;
	f->rss_peak = 8 * MIB;
	return f;
}

static inline void add_series(struct run *r, const char *name, const char *scope, double growth, double mean)
{
	struct run_series *s;

	r->series = realloc(r->series, (r->series_count + 1) * sizeof *r->series);
	s = &r->series[r->series_count++];
	*s = (struct run_series){.name = strdup(name), .scope = strdup(scope), .first = mean, .last = mean};
	s->phases = calloc(r->phases.count, sizeof *s->phases);
	s->phases[0] = (struct series_span){.growth = growth, .mean = mean, .min = mean, .max = mean};
	s->whole = s->phases[0];
}

static inline void add_disk(struct run *r, double read, double busy)
{
	add_series(r, "disk.vda.read_bytes", "disk vda virtual", read, NAN);
	add_series(r, "disk.vda.write_bytes", "disk vda virtual", 0, NAN);
	add_series(r, "disk.vda.busy", "disk vda virtual", busy, NAN);
}

#endif
