#include "store/runjson.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "model/regions.h"
#include "store/peakfile.h"

#define MIB 1048576.0

/* To the microsecond and to the byte: no digits that mean nothing. */
static void put(json_t *object, const char *key, double value)
{
	json_put_number(object, key, round(value * 1e6) / 1e6);
}

static void put_whole(json_t *object, const char *key, double value)
{
	if (isfinite(value))
		json_put_integer(object, key, (json_int_t)llround(value));
}

static double seconds_of(const struct phase *p)
{
	return (double)(p->end - p->start) / 1e9;
}

static double seconds(const struct run *run, int64_t t)
{
	return (double)(t - run->start) / 1e9;
}

static void put_figures(json_t *o, const struct phase_figures *f)
{
	put(o, "cpu_s", f->cpu_s);
	put(o, "cpu_user_s", f->cpu_user_s);
	put(o, "cpu_system_s", f->cpu_system_s);
	put(o, "runqueue_wait_s", f->runqueue_wait_s);
	put_whole(o, "threads_max", f->threads_max);
	put_whole(o, "processes_max", f->processes_max);
	put(o, "rss_peak_mib", f->rss_peak / MIB);
	put(o, "anon_peak_mib", f->anon_peak / MIB);
	put(o, "file_peak_mib", f->file_peak / MIB);
	put(o, "shared_peak_mib", f->shared_peak / MIB);
	put(o, "swap_peak_mib", f->swap_peak / MIB);
	put(o, "read_mib", f->read_bytes / MIB);
	put(o, "write_mib", f->write_bytes / MIB);
	put(o, "read_calls_mib", f->read_chars / MIB);
	put(o, "write_calls_mib", f->write_chars / MIB);
	put_whole(o, "minor_faults", f->minor_faults);
	put_whole(o, "major_faults", f->major_faults);
	put_whole(o, "oom_kills", f->oom_kills);
	put(o, "cpus_allowed", f->cpus_allowed);
	put(o, "busiest_thread_s", f->busiest_thread_s);
	put(o, "touched_mib_per_s", f->touched_rate / MIB);
	put(o, "machine_busy_s", f->machine_busy_s);
	put(o, "machine_steal_s", f->machine_steal_s);
	put_whole(o, "machine_major_faults", f->machine_major_faults);
	put(o, "machine_swap_in_mib", f->swap_in / MIB);
	put(o, "machine_swap_out_mib", f->swap_out / MIB);
	put(o, "machine_refault_mib", f->machine_refault_bytes / MIB);
	put(o, "cgroup_refault_mib", f->group_refault_bytes / MIB);
	put(o, "machine_available_mib", f->memory_available / MIB);
	put(o, "cgroup_memory_peak_mib", f->group_memory_peak / MIB);
	put(o, "cgroup_memory_limit_mib", f->memory_limit / MIB);
	put(o, "cgroup_quota_cpus", f->quota);
	put_whole(o, "cgroup_quota_periods", f->quota_periods);
	put_whole(o, "cgroup_throttled_periods", f->throttled_periods);
	put(o, "cgroup_throttled_s", f->throttled_s);
	put(o, "cgroup_pressure_cpu_some", f->group_psi_cpu_some);
	put(o, "cgroup_pressure_memory_some", f->group_psi_memory_some);
	put(o, "cgroup_pressure_io_some", f->group_psi_io_some);
	put(o, "pressure_cpu_some", f->psi_cpu_some);
	put(o, "pressure_memory_some", f->psi_memory_some);
	put(o, "pressure_memory_full", f->psi_memory_full);
	put(o, "pressure_io_some", f->psi_io_some);
	put(o, "pressure_io_full", f->psi_io_full);
}

#define USERS_SHOWN 8
#define USER_SHARE 0.01 /* of the phase's CPU time */

/* Who used the CPU: the series "process.PID.cpu" or "thread.TID.cpu" that grew most in the phase, in that order. */
static json_t *users_json(const struct run *run, size_t phase, const char *class)
{
	const struct run_series *shown[USERS_SHOWN] = {NULL};
	json_t *array = json_array();
	size_t length = strlen(class), count = 0;

	for (size_t i = 0; i < run->series_count; i++) {
		const struct run_series *s = &run->series[i];
		double grew = s->phases[phase].growth;
		size_t at = count;

		if (strncmp(s->name, class, length) != 0 || strcmp(s->name + strlen(s->name) - 4, ".cpu") != 0 ||
		    !(grew >= USER_SHARE * run->figures[phase].cpu_s))
			continue;
		while (at > 0 && shown[at - 1]->phases[phase].growth < grew)
			at--;
		if (at == USERS_SHOWN)
			continue;
		count += count < USERS_SHOWN;
		memmove(shown + at + 1, shown + at, (count - at - 1) * sizeof *shown);
		shown[at] = s;
	}
	for (size_t i = 0; i < count; i++) {
		json_t *o = json_object();

		json_put_text(o, "who", shown[i]->scope);
		if (*run_series_process(run, shown[i]))
			json_put_text(o, "name", run_series_process(run, shown[i]));
		put(o, "cpu_s", shown[i]->phases[phase].growth);
		put(o, "share_of_one_cpu", shown[i]->phases[phase].growth /
						   seconds_of(&run->phases.items[phase]));
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *phases_json(const struct run *run)
{
	json_t *array = json_array();

	for (size_t i = 0; i < run->phases.count; i++) {
		const struct phase *p = &run->phases.items[i];
		json_t *o = json_object();

		json_put_text(o, "name", p->name);
		json_put_text(o, "group", phase_group_name(p->group));
		put(o, "start_s", seconds(run, p->start));
		put(o, "end_s", seconds(run, p->end));
		if (run->figures) {
			put_figures(o, &run->figures[i]);
			json_object_set_new(o, "cpu_by_process", users_json(run, i, "process."));
			json_object_set_new(o, "cpu_by_thread", users_json(run, i, "thread."));
		}
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *groups_json(const struct run *run)
{
	json_t *groups = json_object();

	for (enum phase_group g = 0; g < GROUP_COUNT; g++) {
		double wall = phases_group_seconds(&run->phases, g), cpu = 0;
		json_t *o;

		if (isnan(wall))
			continue;
		o = json_object();
		put(o, "wall_s", wall);
		for (size_t i = 0; run->figures && i < run->phases.count; i++)
			if (run->phases.items[i].group == g)
				cpu += run->figures[i].cpu_s;
		put(o, "cpu_s", run->figures ? cpu : NAN);
		json_object_set_new(groups, phase_group_name(g), o);
	}
	return groups;
}

static void put_count(json_t *o, const char *key, int64_t count)
{
	if (count >= 0)
		json_put_integer(o, key, count);
}

static json_t *rate_json(double rate, double deviation)
{
	json_t *o = json_object();

	json_put_number(o, "tokens_per_s", rate);
	json_put_number(o, "deviation", deviation);
	return o;
}

static json_t *tests_json(const struct engine_result *e)
{
	json_t *array = json_array();

	for (size_t i = 0; i < e->test_count; i++) {
		const struct engine_test *t = &e->tests[i];
		json_t *o = rate_json(t->tokens_per_s, t->deviation);

		json_put_text(o, "name", t->name);
		json_put_text(o, "model", *t->model ? t->model : NULL);
		put_count(o, "n_prompt", t->n_prompt);
		put_count(o, "n_gen", t->n_gen);
		put_count(o, "n_depth", t->n_depth);
		put_count(o, "repetitions", t->repetitions);
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *requests_json(const struct run *run)
{
	json_t *array = json_array();

	for (size_t i = 0; i < run->engine.request_count; i++) {
		const struct engine_request *r = &run->engine.requests[i];
		json_t *o = json_object();

		put_count(o, "id", r->id);
		put_count(o, "slot", r->slot);
		put(o, "start_s", r->start ? seconds(run, r->start) : NAN);
		put(o, "end_s", r->end ? seconds(run, r->end) : NAN);
		put_count(o, "prompt_tokens", r->prompt_tokens);
		put_count(o, "cached_tokens", r->cached_tokens);
		put_count(o, "generated_tokens", r->generated_tokens);
		json_put_number(o, "prompt_ms", r->prompt_ms);
		json_put_number(o, "generated_ms", r->generated_ms);
		json_put_number(o, "prompt_tokens_per_s", r->prompt_per_s);
		json_put_number(o, "generated_tokens_per_s", r->generated_per_s);
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *throughput_json(const struct run *run)
{
	const struct engine_result *e = &run->engine;
	json_t *o = json_object();

	if (!isnan(e->prefill_tokens_per_s))
		json_object_set_new(o, "prefill", rate_json(e->prefill_tokens_per_s, e->prefill_deviation));
	if (!isnan(e->decode_tokens_per_s))
		json_object_set_new(o, "decode", rate_json(e->decode_tokens_per_s, e->decode_deviation));
	json_put_text(o, "source", *e->rate_source ? e->rate_source : NULL);
	if (e->test_count)
		json_object_set_new(o, "tests", tests_json(e));
	if (e->request_count)
		json_object_set_new(o, "requests", requests_json(run));
	if (e->requests_dropped)
		json_put_integer(o, "requests_not_listed", (json_int_t)e->requests_dropped);
	return o;
}

static json_t *engine_json(const struct engine_result *e)
{
	json_t *o = json_object();

	json_put_text(o, "name", e->engine);
	json_put_text(o, "build", *e->build ? e->build : NULL);
	json_put_integer(o, "lines_known", (json_int_t)e->known);
	return o;
}

static json_t *memory_json(const struct run *run)
{
	json_t *memory = json_object(), *host = json_object();

	put(host, "anon_peak_mib", run->anon_peak / MIB);
	json_put_text(host, "anon_peak_is", *run->anon_kind ? run->anon_kind : NULL);
	put(host, "rss_peak_mib", run->rss_peak / MIB);
	json_put_text(host, "rss_peak_is", *run->rss_kind ? run->rss_kind : NULL);
	put(host, "file_peak_mib", run->whole.file_peak / MIB);
	put(host, "shared_peak_mib", run->whole.shared_peak / MIB);
	put(host, "swap_peak_mib", run->whole.swap_peak / MIB);
	put(host, "pss_peak_mib", run->whole.pss_peak / MIB);
	put(host, "largest_process_mib", run->max_rss_process / MIB);
	json_object_set_new(memory, "host", host);
	return memory;
}

static json_t *processes_json(const struct run *run)
{
	json_t *o = json_object(), *top = json_array();

	json_put_integer(o, "count", (json_int_t)run->processes);
	json_put_bool(o, "exact", run->processes_exact);
	json_put_integer(o, "unseen", (json_int_t)run->processes_unseen);
	json_put_integer(o, "survivors", (json_int_t)run->survivors);
	for (size_t i = 0; i < run->shown_count; i++) {
		const struct run_process *p = &run->shown[i];
		json_t *row = json_object();

		json_put_integer(row, "pid", p->pid);
		json_put_integer(row, "ppid", p->ppid);
		json_put_text(row, "name", p->comm);
		json_put_text(row, "command", *p->command ? p->command : NULL);
		put(row, "first_seen_s", p->start_s);
		put(row, "last_seen_s", p->end_s);
		put(row, "cpu_s", p->cpu_s);
		put(row, "cpu_user_s", p->cpu_user_s);
		put(row, "cpu_system_s", p->cpu_system_s);
		put_whole(row, "threads_peak", p->threads_peak);
		put(row, "read_mib", p->read_bytes / MIB);
		put(row, "write_mib", p->write_bytes / MIB);
		put(row, "rss_peak_mib", p->rss_peak / MIB);
		put(row, "anon_peak_mib", p->anon_peak / MIB);
		json_array_append_new(top, row);
	}
	json_object_set_new(o, "top", top);
	return o;
}

static json_t *evidence_json(const struct evidence *evidence, size_t count)
{
	json_t *o = json_object();

	for (size_t i = 0; i < count; i++)
		put(o, evidence[i].name, evidence[i].value);
	return o;
}

static json_t *limits_json(const struct run *run)
{
	json_t *array = json_array();

	for (size_t i = 0; i < run->limit_count; i++) {
		const struct limit *l = &run->limits[i];
		json_t *o = json_object();

		json_put_text(o, "phase", run->phases.items[l->phase].name);
		json_put_integer(o, "phase_index", (json_int_t)l->phase);
		json_put_text(o, "limit", limit_kind_name(l->kind));
		json_put_text(o, "detail", l->detail);
		json_put_text(o, "confidence", limit_confidence_name(l->confidence));
		json_put_text(o, "why", l->why);
		json_object_set_new(o, "evidence", evidence_json(l->evidence, l->evidence_count));
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *movement_json(const struct run *run)
{
	json_t *array = json_array();

	for (size_t i = 0; i < run->movement_count; i++) {
		const struct movement *m = &run->movements[i];
		json_t *o = json_object();

		json_put_text(o, "level", movement_level_name(m->level));
		json_put_text(o, "text", m->text);
		json_object_set_new(o, "evidence", evidence_json(m->evidence, m->evidence_count));
		json_array_append_new(array, o);
	}
	return array;
}

/* What the verdicts on memory bandwidth rest on: the peaks that were measured, and the model's weights. */
static void put_bandwidth(json_t *root, const struct run *run)
{
	static const char *const when[] = {"known_before", "measured_after"};
	json_t *peaks = json_object(), *weights = json_object();

	for (size_t i = 0; i < 2; i++)
		if (run->bandwidth[i].one > 0)
			json_object_set_new(peaks, when[i], bandwidth_json(&run->bandwidth[i]));
	if (json_object_size(peaks))
		json_object_set(root, "memory_bandwidth", peaks);
	json_decref(peaks);
	put(weights, "file_mib", run->weights.file_bytes / MIB);
	put(weights, "mib_per_token", run->weights.bytes_per_token / MIB);
	put(weights, "kv_bytes_per_position", run->weights.kv_bytes_per_position);
	if (json_object_size(weights)) {
		json_put_text(weights, "how", run->weights.how);
		json_object_set(root, "weights", weights);
	}
	json_decref(weights);
}

static json_t *warnings_json(const struct run *run)
{
	json_t *array = json_array();

	for (size_t i = 0; i < run->warnings.count; i++) {
		json_t *o = json_object();

		json_put_text(o, "text", run->warnings.texts[i]);
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *cost_json(const struct run *run)
{
	json_t *o = json_object();

	put(o, "cpu_s", run->cost_cpu_s);
	put(o, "helper_cpu_s", run->cost_helper_cpu_s);
	put(o, "cpu_share_of_one_core", run->cost_share);
	put(o, "finish_cpu_s", run->cost_finish_cpu_s);
	put(o, "max_rss_mib", run->cost_max_rss / MIB);
	put(o, "interval_ms", run->interval_effective_ms);
	put(o, "interval_requested_ms", run->interval_requested_ms);
	put(o, "slow_interval_ms", run->slow_effective_ms);
	json_put_integer(o, "ticks", run->ticks);
	return o;
}

json_t *run_regions_json(const struct run_regions *r)
{
	json_t *o = json_object(), *troubles = json_object(), *top = json_array();

	json_put_text(o, "file", "regions.h5");
	json_put_integer(o, "regions", (json_int_t)r->regions);
	json_put_integer(o, "calls", (json_int_t)r->calls);
	json_put_integer(o, "dropped", (json_int_t)r->dropped);
	json_put_integer(o, "ranks", (json_int_t)r->ranks);
	for (uint32_t kind = 0; kind < RUN_REGION_TROUBLES; kind++)
		if (r->troubles[kind])
			json_put_integer(troubles, region_trouble_name(kind), (json_int_t)r->troubles[kind]);
	json_object_set_new(o, "troubles", troubles);
	for (size_t i = 0; i < r->top_count; i++) {
		json_t *row = json_object();

		json_put_text(row, "name", r->top[i].name);
		json_put_integer(row, "calls", (json_int_t)r->top[i].calls);
		/* To the nanosecond, which these are counted in. */
		json_put_number(row, "total_s", r->top[i].total_s);
		json_put_number(row, "exclusive_s", r->top[i].exclusive_s);
		put(row, "share", r->top[i].share);
		json_array_append_new(top, row);
	}
	json_object_set_new(o, "top", top);
	return o;
}

static void put_outcome(json_t *root, const struct run *run)
{
	json_put_text(root, "status", run_status_name(run->status));
	if (run->exit_code >= 0)
		json_put_integer(root, "exit_code", run->exit_code);
	if (run->signo)
		json_put_integer(root, "signal", run->signo);
	json_put_bool(root, "perturbed", run->perturbed);
	put(root, "wall_s", run->wall_s);
	put(root, "cpu_s", run->cpu_user_s + run->cpu_system_s);
	put(root, "cpu_user_s", run->cpu_user_s);
	put(root, "cpu_system_s", run->cpu_system_s);
}

json_t *runjson_build(const struct run *run, const json_t *begin)
{
	json_t *root = json_object(), *totals = json_object();
	char started[40];
	const char *key;
	json_t *value;

	json_put_integer(root, "schema", RUNJSON_SCHEMA);
	put_outcome(root, run);
	json_object_foreach((json_t *)begin, key, value)
		json_object_set(root, key, value);
	/* begin.json has the moment before the machine was looked at; the command began a little later. */
	clock_iso8601(run->wall_start_ns, started, sizeof started);
	json_put_text(root, "started_at", started);
	json_object_set_new(root, "phases", phases_json(run));
	json_object_set_new(root, "groups", groups_json(run));
	if (run->has_engine) {
		json_object_set_new(root, "engine", engine_json(&run->engine));
		json_object_set_new(root, "throughput", throughput_json(run));
	}
	json_object_set_new(root, "memory", memory_json(run));
	put_figures(totals, &run->whole);
	put_whole(totals, "voluntary_switches", run->voluntary_switches);
	put_whole(totals, "involuntary_switches", run->involuntary_switches);
	json_object_set_new(root, "counters", totals);
	json_object_set_new(root, "processes", processes_json(run));
	if (run->regions)
		json_object_set_new(root, "regions", run_regions_json(run->regions));
	json_object_set_new(root, "limits", limits_json(run));
	json_object_set_new(root, "movement", movement_json(run));
	put_bandwidth(root, run);
	json_object_set_new(root, "warnings", warnings_json(run));
	json_object_set_new(root, "assay_cost", cost_json(run));
	return root;
}
