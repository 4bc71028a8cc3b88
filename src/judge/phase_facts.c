#include "judge/phase_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_THREAD 0.5 /* of a CPU: a thread that counts as working */

static double first_of(double a, double b)
{
	return isnan(a) ? b : a;
}

/* 0 for what was not measured, where it only adds to something else. */
static double or_zero(double x)
{
	return isnan(x) ? 0 : x;
}

static double sum(double a, double b)
{
	return isnan(a) ? b : a + or_zero(b);
}

static double per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds : NAN;
}

/* Another series of the device that `like` is a series of: "disk.vda.busy" for "disk.vda.read_bytes". */
static const struct run_series *sibling(const struct run *run, const struct run_series *like, const char *metric)
{
	const char *dot = strrchr(like->name, '.');
	char name[192];

	if (!dot)
		return NULL;
	snprintf(name, sizeof name, "%.*s.%s", (int)(dot - like->name), like->name, metric);
	return run_series_find(run, name);
}

static double growth_rate(const struct run_series *s, size_t phase, double seconds)
{
	return s ? per_second(s->phases[phase].growth, seconds) : NAN;
}

static double mean_of(const struct run_series *s, size_t phase)
{
	return s ? s->phases[phase].mean : NAN;
}

static bool has_form(const struct run_series *s, const char *prefix, const char *suffix)
{
	size_t length = strlen(s->name), end = strlen(suffix);

	return strncmp(s->name, prefix, strlen(prefix)) == 0 && length > end &&
	       strcmp(s->name + length - end, suffix) == 0;
}

/* The device's own name, between the class and the metric. */
static void copy_name(char *to, size_t size, const struct run_series *s, const char *prefix, const char *suffix)
{
	snprintf(to, size, "%.*s", (int)(strlen(s->name) - strlen(prefix) - strlen(suffix)), s->name + strlen(prefix));
}

static void find_disk(struct phase_facts *p)
{
	double most = -1;

	for (size_t i = 0; i < p->run->series_count; i++) {
		const struct run_series *s = &p->run->series[i];
		struct device_facts d = {.speed = NAN};
		const char *kind;

		if (!has_form(s, "disk.", ".read_bytes"))
			continue;
		d.read_rate = growth_rate(s, p->index, p->seconds);
		d.write_rate = growth_rate(sibling(p->run, s, "write_bytes"), p->index, p->seconds);
		d.busy = growth_rate(sibling(p->run, s, "busy"), p->index, p->seconds);
		d.moved_rate = sum(d.read_rate, d.write_rate);
		if (!(d.moved_rate > most))
			continue;
		most = d.moved_rate;
		copy_name(d.name, sizeof d.name, s, "disk.", ".read_bytes");
		kind = strrchr(s->scope, ' ');
		snprintf(d.kind, sizeof d.kind, "%s", kind ? kind + 1 : "");
		p->disk = d;
	}
}

static void find_network(struct phase_facts *p)
{
	double most = -1;

	for (size_t i = 0; i < p->run->series_count; i++) {
		const struct run_series *s = &p->run->series[i];
		struct device_facts d = {.busy = NAN};

		if (!has_form(s, "net.", ".rx_bytes"))
			continue;
		d.read_rate = growth_rate(s, p->index, p->seconds);
		d.write_rate = growth_rate(sibling(p->run, s, "tx_bytes"), p->index, p->seconds);
		d.speed = mean_of(sibling(p->run, s, "speed"), p->index);
		d.moved_rate = sum(d.read_rate, d.write_rate);
		if (!(d.moved_rate > most))
			continue;
		most = d.moved_rate;
		copy_name(d.name, sizeof d.name, s, "net.", ".rx_bytes");
		p->network = d;
	}
}

static void find_gpu(struct phase_facts *p)
{
	p->gpu.target_memory = p->gpu.busy = p->gpu.memory_busy = p->gpu.pcie = p->gpu.pcie_rate = NAN;
	p->gpu.throttled_power = p->gpu.throttled_heat = NAN;
	for (size_t i = 0; i < p->run->series_count; i++) {
		const struct run_series *s = &p->run->series[i];
		struct gpu_facts g;
		double rx, tx;

		if (!has_form(s, "gpu.", ".utilization"))
			continue;
		g.busy = mean_of(s, p->index);
		if (!(g.busy > p->gpu.busy) && *p->gpu.name)
			continue;
		g.memory_busy = mean_of(sibling(p->run, s, "memory_utilization"), p->index);
		g.target_memory = mean_of(sibling(p->run, s, "memory.target"), p->index);
		rx = mean_of(sibling(p->run, s, "pcie.rx"), p->index);
		tx = mean_of(sibling(p->run, s, "pcie.tx"), p->index);
		g.pcie_rate = fmax(rx, tx);
		g.pcie = g.pcie_rate / mean_of(sibling(p->run, s, "pcie.peak"), p->index);
		g.throttled_power = mean_of(sibling(p->run, s, "throttle.power"), p->index);
		g.throttled_heat = mean_of(sibling(p->run, s, "throttle.thermal"), p->index);
		snprintf(g.name, sizeof g.name, "%s", *s->scope ? s->scope : "gpu");
		p->gpu = g;
	}
}

/* "thread 12 of 10 NAME": the name, and the number. */
static void name_thread(char *to, size_t size, const char *scope)
{
	const char *at = scope;

	for (int blanks = 0; blanks < 4 && at; blanks++)
		at = strchr(at + (blanks > 0), ' ');
	snprintf(to, size, "%s", at && at[1] ? at + 1 : scope);
}

static void find_threads(struct phase_facts *p)
{
	double most = 0;
	bool any = false;

	p->busy_threads = p->busy_cores = 0;
	for (size_t i = 0; i < p->run->series_count; i++) {
		const struct run_series *s = &p->run->series[i];
		double share;

		if (!has_form(s, "thread.", ".cpu"))
			continue;
		any = true;
		share = growth_rate(s, p->index, p->seconds);
		if (share >= BUSY_THREAD) {
			p->busy_threads++;
			p->busy_cores += share;
		}
		if (share > most) {
			most = share;
			name_thread(p->busiest_name, sizeof p->busiest_name, s->scope);
		}
	}
	p->top_thread = any ? most : NAN;
	if (!any)
		p->busy_threads = p->busy_cores = NAN;
}

static void find_cpu(struct phase_facts *p)
{
	const struct phase_figures *f = p->f;

	p->cpus = p->run->cpus_allowed > 0 ? (double)p->run->cpus_allowed
		  : p->run->cpus > 0       ? (double)p->run->cpus
					   : (double)NAN;
	if (f->cpus_allowed < p->cpus)
		p->cpus = fmax(1, round(f->cpus_allowed));
	if (f->quota < p->cpus)
		p->cpus = f->quota;
	p->cores = per_second(f->cpu_s, p->seconds);
	p->wait_share = f->runqueue_wait_s / (f->cpu_s + f->runqueue_wait_s);
	if (!(f->cpu_s + f->runqueue_wait_s > 0))
		p->wait_share = isnan(f->runqueue_wait_s) ? NAN : 0;
	p->waiting = per_second(f->runqueue_wait_s, p->seconds);
	p->busiest = per_second(f->busiest_thread_s, p->seconds);
	/* The busiest thread uses at least the mean of all: where it seems to use less than half of that, the looks at
	 * threads were too few, and what they say of waiting is nothing. */
	if (p->busiest < 0.5 * p->cores / fmax(1, f->threads_max))
		p->busiest = p->wait_share = p->waiting = NAN;
	p->in_kernel = f->cpu_system_s / (f->cpu_user_s + f->cpu_system_s);
	p->others = fmax(0, per_second(f->machine_busy_s - f->cpu_s, p->seconds));
	p->stolen = per_second(f->machine_steal_s, p->seconds);
	p->throttled = f->quota_periods > 0 ? f->throttled_periods / f->quota_periods : NAN;
	find_threads(p);
}

static void find_memory(struct phase_facts *p)
{
	const struct phase_figures *f = p->f;
	/* Others' refaults may be among them, but no more than the command has read are its own. */
	double refaults = fmin(first_of(f->group_refault_bytes, f->machine_refault_bytes),
			       isnan(f->read_bytes) ? INFINITY : f->read_bytes);

	p->psi_cpu = first_of(f->group_psi_cpu_some, f->psi_cpu_some);
	p->psi_memory = first_of(f->group_psi_memory_some, f->psi_memory_some);
	p->psi_io = first_of(f->group_psi_io_some, f->psi_io_some);
	p->read_rate = per_second(f->read_bytes, p->seconds);
	p->write_rate = per_second(f->write_bytes, p->seconds);
	p->moved_rate = sum(p->read_rate, p->write_rate);
	p->refaults_of_group = !isnan(f->group_refault_bytes);
	p->refault_rate = per_second(refaults, p->seconds);
	p->refault_share = f->read_bytes > 0 ? refaults / f->read_bytes : NAN;
	p->memory_used = fmax(1 - f->memory_available / p->run->memory_bytes, f->group_memory_peak / f->memory_limit);
	p->copied_rate = per_second(sum(f->read_chars, f->write_chars), p->seconds);
	p->swap_rate = per_second(or_zero(f->swap_in) + or_zero(f->swap_out), p->seconds);
	p->input_bytes = NAN;
	for (size_t i = 0; i < p->run->series_count; i++)
		if (has_form(&p->run->series[i], "input.", ".size"))
			p->input_bytes = or_zero(p->input_bytes) + or_zero(p->run->series[i].last);
}

/* What as many threads as were busy could read at most, by one measurement. */
static double peak_of(const struct bandwidth *b, double threads)
{
	if (!(b->one > 0) || !(b->all > 0))
		return NAN;
	return threads >= b->threads ? b->all : fmin(threads * b->one, b->all);
}

static bool requests_overlap(const struct engine_result *e, const struct phase *phase)
{
	for (size_t i = 1; i < e->request_count; i++) {
		const struct engine_request *a = &e->requests[i - 1], *b = &e->requests[i];

		if (a->end && b->start && b->start < a->end && a->slot != b->slot && b->start < phase->end &&
		    a->end > phase->start)
			return true;
	}
	return false;
}

/* The mean length of the context over the generations, in tokens; 0 where the engine did not say. */
static double mean_context(const struct engine_result *e)
{
	double sum = 0, count = 0;

	for (size_t i = 0; i < e->request_count; i++) {
		const struct engine_request *r = &e->requests[i];

		if (r->generated_tokens <= 0)
			continue;
		sum += (double)r->generated_tokens *
		       ((r->prompt_tokens > 0 ? (double)r->prompt_tokens : 0) +
			(r->cached_tokens > 0 ? (double)r->cached_tokens : 0) + (double)r->generated_tokens / 2);
		count += (double)r->generated_tokens;
	}
	for (size_t i = 0; i < e->test_count; i++) {
		const struct engine_test *t = &e->tests[i];

		if (t->n_gen <= 0 || t->n_prompt > 0)
			continue;
		sum += (double)t->n_gen * ((t->n_depth > 0 ? (double)t->n_depth : 0) + (double)t->n_gen / 2);
		count += (double)t->n_gen;
	}
	return count > 0 ? sum / count : 0;
}

static void find_bandwidth(struct phase_facts *p)
{
	const struct run *run = p->run;
	const struct bandwidth *newest = run->bandwidth[1].one > 0 ? &run->bandwidth[1] : &run->bandwidth[0];
	const struct run_weights *w = &run->weights;
	double before, after;

	p->peak_threads = p->cores > 1.25 ? round(p->cores) : 1;
	before = peak_of(&run->bandwidth[0], p->peak_threads);
	after = peak_of(&run->bandwidth[1], p->peak_threads);
	p->peak_low = fmin(before, after);
	p->peak_high = fmax(before, after);
	/* What a look can see is bounded for each thread, since setting a page's bit again takes it a while. */
	p->touched_share = p->f->touched_rate / (fmax(run->bandwidth[0].touched, run->bandwidth[1].touched) *
						 fmin(1, p->peak_threads / fmax(1, newest->threads)));
	p->overlapping = requests_overlap(&run->engine, p->phase);
	p->token_bytes = p->token_rate = p->stream_rate = NAN;
	if (p->phase->group == GROUP_DECODE && run->has_engine && !p->overlapping) {
		p->token_bytes = w->bytes_per_token +
				 or_zero(w->kv_bytes_per_position) * mean_context(&run->engine);
		p->token_rate = run->engine.decode_tokens_per_s;
		p->stream_rate = p->token_bytes * p->token_rate;
	}
	/* What it copies through calls lies in the page cache, which is not in its own memory. */
	p->fits_cache = p->f->rss_peak < (p->peak_threads > 1 ? run->cache_bytes : run->cache_one) &&
			!(p->copied_rate > COPIES_MUCH);
}

void phase_facts_find(const struct run *run, size_t phase, struct phase_facts *ret)
{
	*ret = (struct phase_facts){
		.run = run,
		.phase = &run->phases.items[phase],
		.f = &run->figures[phase],
		.index = phase,
		.seconds = (double)(run->phases.items[phase].end - run->phases.items[phase].start) / 1e9,
		.disk = {.read_rate = NAN, .write_rate = NAN, .moved_rate = NAN, .busy = NAN, .speed = NAN},
		.network = {.read_rate = NAN, .write_rate = NAN, .moved_rate = NAN, .busy = NAN, .speed = NAN},
	};
	find_cpu(ret);
	find_memory(ret);
	find_disk(ret);
	find_network(ret);
	find_gpu(ret);
	find_bandwidth(ret);
}

size_t phase_facts_missing(const struct phase_facts *p, const char *names[PHASE_FACTS_WANTED])
{
	const struct {
		const char *name;
		double value;
	} wanted[PHASE_FACTS_WANTED] = {
		{"CPU time", p->cores},
		{"the busiest thread", p->busiest},
		{"waiting for a CPU (schedstat)", p->wait_share},
		{"stalls on CPU, memory and I/O (PSI)", p->psi_io},
		{"bytes read (/proc/PID/io)", p->read_rate},
		{"refaults (vmstat)", p->refault_rate},
		{"disks", p->disk.busy},
	};
	size_t count = 0;

	for (size_t i = 0; i < PHASE_FACTS_WANTED; i++)
		if (isnan(wanted[i].value))
			names[count++] = wanted[i].name;
	return count;
}
