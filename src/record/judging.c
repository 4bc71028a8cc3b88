#include "record/judging.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "exec/bandwidth.h"
#include "ingest/gguf.h"
#include "judge/limits.h"
#include "judge/movement.h"

#define CPUS_MOST 65536
#define WEIGHTS_LONGEST_NS (2 * NS_PER_S) /* for reading the headers of model files */
#define LOOK_NS (100 * NS_PER_MS)
#define QUIET_CPUS 0.2 /* CPUs' worth of time that others may use beside a measurement that is kept */
#define SPREAD_KEPT 0.3 /* rounds that differ by more are of a machine between two states, and no peak to keep */

struct peak_identity judging_identity(const struct machine *m)
{
	return (struct peak_identity){
		.machine_id = m->machine_id,
		.cpu_model = m->cpu_model,
		.hypervisor = m->hypervisor,
		.cpus = m->cpus,
		.cpus_allowed = m->cpus_allowed,
		.memory_bytes = (double)m->memory,
	};
}

/* 0 where it is missing or cannot be. */
static int count_of(const json_t *machine, const char *key)
{
	double count = json_get_number(machine, key, 0);

	return count >= 1 && count <= CPUS_MOST ? (int)count : 0;
}

static void read_machine(struct run *run, const json_t *begin)
{
	const json_t *machine = json_object_get(begin, "machine");

	run->cpus = count_of(machine, "cpus");
	run->cpus_allowed = count_of(machine, "cpus_allowed");
	run->memory_bytes = json_get_number(machine, "memory_mib", 0) * 1048576;
	run->cache_bytes = json_get_number(machine, "cache_mib", 0) * 1048576;
	run->cache_one = json_get_number(machine, "cache_one_mib", 0) * 1048576;
	if (bandwidth_from_json(json_object_get(machine, "memory_bandwidth"), &run->bandwidth[0]) < 0)
		run->bandwidth[0] = (struct bandwidth){.touched = NAN};
}

/* The path in "file PATH" or "opened PATH"; NULL: none. */
static const char *path_of(const char *scope)
{
	return strncmp(scope, "file ", 5) == 0 ? scope + 5 : strncmp(scope, "opened ", 7) == 0 ? scope + 7 : NULL;
}

static bool asked_to_hurry(const struct judging_options *o)
{
	return o->hurry && *o->hurry;
}

/* The model: all GGUF files among the inputs, if they are the parts of one. */
static void read_weights(struct run *run, const struct judging_options *options)
{
	int64_t deadline = clock_mono_ns() + WEIGHTS_LONGEST_NS;
	struct gguf model = {0};
	unsigned files = 0, models = 0;
	struct error err;

	for (size_t i = 0; i < run->series_count; i++) {
		const struct run_series *s = &run->series[i];
		size_t length = strlen(s->name);
		const char *path = path_of(s->scope);
		struct gguf part;

		if (strncmp(s->name, "input.", 6) != 0 || length < 5 || strcmp(s->name + length - 5, ".size") != 0 ||
		    !path || gguf_is(path) != 1)
			continue;
		if (asked_to_hurry(options) || clock_mono_ns() > deadline) {
			warnings_add(&run->warnings, "What a token reads of the model is not known: reading the "
						     "headers of its files took too long.");
			return;
		}
		if (gguf_read(path, &part, &err) < 0) {
			warnings_add(&run->warnings, "What a token reads of the model is not known: %s.", err.text);
			return;
		}
		if (strcmp(part.architecture, "clip") == 0)
			continue;
		/* Replaced meanwhile: it is not the file that was run. */
		if ((double)part.file_bytes != s->last) {
			warnings_add(&run->warnings,
				     "%s has changed since the run: what a token reads of it is not known.", path);
			return;
		}
		models += part.split_number == 0;
		if (files++ == 0)
			model = part;
		else
			gguf_add(&model, &part);
	}
	if (files == 0)
		return;
	if (models > 1) {
		warnings_add(&run->warnings,
			     "%u model files were read: what a token reads of which is not known, so that no verdict "
			     "on memory bandwidth is given by tokens.",
			     models);
		return;
	}
	if (model.split_count > files) {
		warnings_add(&run->warnings,
			     "The model is in %llu files and %u were seen: what a token reads of it is not known.",
			     (unsigned long long)model.split_count, files);
		return;
	}
	run->weights.file_bytes = (double)model.file_bytes;
	run->weights.bytes_per_token = model.tensor_bytes > 0 ? gguf_bytes_per_token(&model) : (double)NAN;
	run->weights.kv_bytes_per_position = gguf_kv_bytes_per_position(&model);
	snprintf(run->weights.how, sizeof run->weights.how,
		 "the tensors of %u GGUF file%s%s%s", files, files == 1 ? "" : "s",
		 model.has_output ? " less the token embedding" : "",
		 model.experts > 0 ? ", of the experts those in use" : "");
}

/* A peak that later runs can be held against. */
static bool is_good(const struct bandwidth *b)
{
	return b->one > 0 && b->quiet && b->one_spread <= SPREAD_KEPT && b->all_spread <= SPREAD_KEPT;
}

/* Keeps the first good measurement of this machine, and a faster one. */
static void keep_peak(struct run *run, const struct bandwidth *known, const struct bandwidth *now)
{
	struct machine m;
	struct peak_identity id;
	struct error err;

	if (!is_good(now) || (is_good(known) && now->all <= known->all))
		return;
	machine_read(&m);
	id = judging_identity(&m);
	if (peakfile_save(&id, now, &err) < 0)
		warnings_add(&run->warnings, "The memory bandwidth of this machine was measured and not kept: %s.",
			     err.text);
}

static void probe(struct run *run, const struct judging_options *o)
{
	struct machine_state state;
	double before;
	struct bandwidth now;
	struct error err;

	if (o->progress)
		o->progress(o->progress_context,
			    "measuring how fast memory can be read here, since a verdict hangs on it (under a second; "
			    "--no-probe skips it)");
	machine_look(&state, LOOK_NS);
	if (bandwidth_measure(o->hurry, &now, &err) < 0) {
		if (!asked_to_hurry(o))
			warnings_add(&run->warnings, "Memory bandwidth was not measured: %s.", err.text);
		return;
	}
	before = state.busy_cpus;
	machine_look(&state, LOOK_NS);
	now.quiet = before < QUIET_CPUS && state.busy_cpus < QUIET_CPUS;
	run->bandwidth[1] = now;
	keep_peak(run, &run->bandwidth[0], &now);
}

int judging_run(struct run *run, const json_t *begin, const struct judging_options *options, struct error *err)
{
	read_machine(run, begin);
	read_weights(run, options);
	if (options->probe && !asked_to_hurry(options) && limits_want_bandwidth(run))
		probe(run, options);
	return limits_judge(run, err) < 0 || movement_judge(run, err) < 0 ? -1 : 0;
}
