#include "model/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *run_status_name(enum run_status status)
{
	static const char *const names[] = {
		[RUN_OK] = "ok",           [RUN_FAILED] = "failed",           [RUN_SIGNAL] = "signal",
		[RUN_TIMEOUT] = "timeout", [RUN_INTERRUPTED] = "interrupted", [RUN_PARTIAL] = "partial",
	};

	return names[status];
}

const struct phase_figures phase_figures_none = {
	.cpu_s = NAN,
	.cpu_user_s = NAN,
	.cpu_system_s = NAN,
	.runqueue_wait_s = NAN,
	.rss_peak = NAN,
	.anon_peak = NAN,
	.file_peak = NAN,
	.shared_peak = NAN,
	.swap_peak = NAN,
	.pss_peak = NAN,
	.machine_refault_bytes = NAN,
	.read_bytes = NAN,
	.write_bytes = NAN,
	.read_chars = NAN,
	.write_chars = NAN,
	.minor_faults = NAN,
	.major_faults = NAN,
	.psi_cpu_some = NAN,
	.psi_memory_some = NAN,
	.psi_memory_full = NAN,
	.psi_io_some = NAN,
	.psi_io_full = NAN,
	.threads_max = NAN,
	.processes_max = NAN,
	.cpus_allowed = NAN,
	.busiest_thread_s = NAN,
	.touched_rate = NAN,
	.machine_busy_s = NAN,
	.machine_steal_s = NAN,
	.machine_major_faults = NAN,
	.swap_in = NAN,
	.swap_out = NAN,
	.oom_kills = NAN,
	.memory_available = NAN,
	.memory_limit = NAN,
	.group_memory_peak = NAN,
	.quota = NAN,
	.quota_periods = NAN,
	.throttled_periods = NAN,
	.throttled_s = NAN,
	.group_refault_bytes = NAN,
	.group_psi_cpu_some = NAN,
	.group_psi_memory_some = NAN,
	.group_psi_io_some = NAN,
};

static int by_name(const void *name, const void *series)
{
	return strcmp(name, ((const struct run_series *)series)->name);
}

const struct run_series *run_series_find(const struct run *r, const char *name)
{
	if (r->series_sorted)
		return bsearch(name, r->series, r->series_count, sizeof *r->series, by_name);
	for (size_t i = 0; i < r->series_count; i++)
		if (strcmp(r->series[i].name, name) == 0)
			return &r->series[i];
	return NULL;
}

const char *run_series_process(const struct run *r, const struct run_series *s)
{
	int pid = strncmp(s->name, "process.", 8) == 0 ? atoi(s->name + 8) : 0;

	for (size_t i = 0; i < r->shown_count && pid > 0; i++)
		if (r->shown[i].pid == pid)
			return r->shown[i].comm;
	return "";
}

void run_init(struct run *r)
{
	*r = (struct run){
		.status = RUN_PARTIAL,
		.exit_code = -1,
		.whole = phase_figures_none,
		.wall_s = NAN,
		.cpu_user_s = NAN,
		.cpu_system_s = NAN,
		.rss_peak = NAN,
		.anon_peak = NAN,
		.max_rss_process = NAN,
		.voluntary_switches = NAN,
		.involuntary_switches = NAN,
		.cost_cpu_s = NAN,
		.cost_helper_cpu_s = NAN,
		.cost_share = NAN,
		.cost_finish_cpu_s = NAN,
		.cost_max_rss = NAN,
		.interval_requested_ms = NAN,
		.interval_effective_ms = NAN,
		.slow_effective_ms = NAN,
		.bandwidth = {{.touched = NAN}, {.touched = NAN}},
		.weights = {.file_bytes = NAN, .bytes_per_token = NAN, .kv_bytes_per_position = NAN},
	};
	phases_init(&r->phases);
	engine_result_init(&r->engine);
	warnings_init(&r->warnings);
}

void run_release(struct run *r)
{
	free(r->label);
	free(r->command_line);
	free(r->figures);
	for (size_t i = 0; i < r->series_count; i++) {
		free(r->series[i].name);
		free(r->series[i].scope);
		free(r->series[i].phases);
	}
	free(r->series);
	free(r->limits);
	free(r->movements);
	if (r->profile)
		profile_release(r->profile);
	free(r->profile);
	if (r->regions)
		run_regions_release(r->regions);
	free(r->regions);
	phases_release(&r->phases);
	engine_result_release(&r->engine);
	warnings_release(&r->warnings);
	run_init(r);
}
