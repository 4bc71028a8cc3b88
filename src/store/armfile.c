#include "store/armfile.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/parse.h"
#include "base/utf8.h"

#define PHASE_PREFIX "phase:"
#define PHASE_COLUMNS 80 /* characters of a phase's name that are kept: longer ones are no phase of ours */
#define KEY_MAX 64       /* bytes of one key of a metric's path, the ending 0 included */
#define NUMBER_MAX 1e18  /* beyond, no figure of a run can be */

/* The number at a path of keys. 0, NaN where it is missing; -1 where it is there and can be none. */
static int take_number(const json_t *run, const char *path, const char *source, double *ret, struct error *err)
{
	const json_t *node = run;
	char key[KEY_MAX];

	*ret = NAN;
	for (const char *rest = path; node && *rest; rest += strcspn(rest, "."), rest += *rest == '.') {
		snprintf(key, sizeof key, "%.*s", (int)strcspn(rest, "."), rest);
		node = json_object_get(node, key);
	}
	if (!node || json_is_null(node))
		return 0;
	if (!json_is_number(node))
		return error_set(err, "%s: \"%s\" is no number", source, path);
	*ret = json_number_value(node);
	if (!isfinite(*ret) || *ret < 0 || *ret > NUMBER_MAX)
		return error_set(err, "%s: \"%s\" is %g, which it cannot be", source, path, *ret);
	return 0;
}

static int take_figures(const json_t *run, const char *source, const struct metric_set *metrics, struct arm *arm,
			struct error *err)
{
	for (size_t i = 0; i < metrics->count; i++) {
		double value;

		if (!metrics->items[i].path)
			continue;
		if (take_number(run, metrics->items[i].path, source, &value, err) < 0)
			return -1;
		if (!isnan(value) && arm_set(arm, i, value) < 0)
			return error_set(err, "%s: out of memory", source);
	}
	return 0;
}

/* The metric of a phase's name, added where it is new. */
static size_t phase_metric(const char *name, struct metric_set *metrics)
{
	CLEANUP(buf_release) struct buf full;
	struct metric_desc desc = {.unit = "s", .direction = -1, .relative_floor = 0.01};

	buf_init(&full);
	buf_puts(&full, PHASE_PREFIX);
	utf8_append_line(&full, name, PHASE_COLUMNS);
	desc.name = full.text;
	desc.title = full.text;
	return full.failed ? SIZE_MAX : metric_add(metrics, &desc);
}

/* Seconds by phase name; phases of one name add up. */
static int take_phases(const json_t *run, const char *source, struct metric_set *metrics, struct arm *arm,
		       struct error *err)
{
	const json_t *phases = json_object_get(run, "phases"), *phase;
	size_t i;

	json_array_foreach(phases, i, phase) {
		const char *name = json_get_text(phase, "name", NULL);
		double start, end, before;
		size_t metric;

		if (take_number(phase, "start_s", source, &start, err) < 0 ||
		    take_number(phase, "end_s", source, &end, err) < 0)
			return -1;
		if (!name || isnan(start) || isnan(end))
			continue;
		if (end < start)
			return error_set(err, "%s: phase %zu ends at %g s, before it starts", source, i + 1, end);
		metric = phase_metric(name, metrics);
		if (metric == SIZE_MAX)
			return error_set(err, "%s: out of memory for its phases", source);
		before = arm_value(arm, metric);
		if (arm_set(arm, metric, (isnan(before) ? 0 : before) + end - start) < 0)
			return error_set(err, "%s: out of memory for its phases", source);
	}
	return 0;
}

/* As Python takes it: the reference tool asks so whether a run was traced, and whether its machine was clean. */
static bool is_true(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return json_object_size(value) > 0;
	case JSON_ARRAY:
		return json_array_size(value) > 0;
	case JSON_STRING:
		return json_string_length(value) > 0;
	case JSON_INTEGER:
	case JSON_REAL:
		return json_number_value(value) != 0;
	default:
		return json_is_true(value);
	}
}

/* The ns of "2026-11-29T17:15:41.123Z"; a zone "+01:00" is taken, none means UTC. INT64_MIN: it is no such time. */
static int64_t parse_time(const char *text)
{
	struct tm tm = {0};
	int length = 0, hours = 0, minutes = 0;
	int64_t fraction = 0, unit = NS_PER_S;
	char sign[2] = "+";

	if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		   &tm.tm_min, &tm.tm_sec, &length) < 6 || length == 0)
		return INT64_MIN;
	text += length;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++)
			fraction += (*text - '0') * (unit /= 10);
	if (*text && strcmp(text, "Z") != 0 && sscanf(text, "%1[+-]%2d:%2d", sign, &hours, &minutes) < 3)
		return INT64_MIN;
	if (tm.tm_year < 1970 || tm.tm_year > 2200 || tm.tm_mon < 1 || tm.tm_mon > 12)
		return INT64_MIN;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return (timegm(&tm) - (*sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60)) * NS_PER_S + fraction;
}

/* As text, or as seconds since 1970. */
static int64_t start_of(const json_t *run)
{
	const json_t *started = json_object_get(run, "started_at");
	double seconds;

	if (json_is_string(started))
		return parse_time(json_string_value(started));
	if (!json_is_number(started))
		return INT64_MIN;
	seconds = json_number_value(started);
	return seconds > 0 && seconds < 7e9 ? (int64_t)(seconds * 1e9) : INT64_MIN;
}

/* A place in a design; -1 where it has none. */
static int place(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

	return number >= 0 && number <= INT32_MAX ? (int)number : -1;
}

static void take_state(const json_t *run, struct arm *arm)
{
	const json_t *perturbed = json_object_get(run, "perturbed"), *machine = json_object_get(run, "machine_before");
	const json_t *clean = json_object_get(machine, "clean");

	arm->state = strcmp(arm->status, "ok") == 0 ? ARM_OK : ARM_FAILED;
	if (strcmp(arm->status, "refused") == 0)
		arm->state = ARM_REFUSED;
	if (perturbed && is_true(perturbed) && arm->state == ARM_OK)
		arm->state = ARM_PERTURBED;
	arm->dirty = clean && !is_true(clean);
	arm->started_ns = start_of(run);
	arm->block = place(run, "block");
	arm->position = place(run, "arm");
}

int armfile_take(const json_t *run, const char *source, struct metric_set *metrics, struct arms *arms,
		 struct error *err)
{
	struct arm *arm;

	if (!json_is_object(run))
		return error_set(err, "%s: it is no run.json: expected an object", source);
	arm = arms_add(arms);
	if (!arm)
		return error_set(err, "%s: out of memory", source);
	arm->source = strdup(source);
	arm->status = strdup(json_get_text(run, "status", "unknown"));
	if (!arm->source || !arm->status) {
		error_set(err, "%s: out of memory", source);
	} else {
		take_state(run, arm);
		if (take_figures(run, source, metrics, arm, err) == 0 &&
		    take_phases(run, source, metrics, arm, err) == 0)
			return 0;
	}
	arms_drop_last(arms);
	return -1;
}

int armfile_read(const char *path, struct metric_set *metrics, struct arms *arms, struct error *err)
{
	CLEANUP(free_cleanup) char *file = fs_is_dir(path) ? fs_join(path, "run.json") : strdup(path);
	CLEANUP(json_cleanup) json_t *run = NULL;

	if (!file)
		return error_set(err, "%s: out of memory", path);
	if (fs_is_dir(path) && !fs_exists(file))
		return error_set(err, "%s: it is no run directory: it has no run.json", path);
	run = json_read_file(file, err);
	return run ? armfile_take(run, path, metrics, arms, err) : -1;
}
