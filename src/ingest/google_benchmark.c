/* Google Benchmark's --benchmark_format=json: real and CPU time of each repetition, and rates. Aggregates (mean, median
 * and others of the repetitions) are passed over where the repetitions themselves are there. */
#include "ingest/foreign.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "ingest/foreign_rows.h"
#include "ingest/foreign_text.h"

static const struct {
	const char *name;
	double seconds;
} units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

static const struct foreign_quantity cpu_time = {"CPU time", "s", 1, -1, 0.01, 0, false};

/* Rates are made from the time, which decides already. Of other counters nobody says which direction is better. */
static const char rate_end[] = "_per_second";
static const struct foreign_quantity rate = {NULL, "1/s", 1, +1, 0.01, 0, false};

static bool is_google_benchmark(const char *text, size_t length)
{
	return foreign_text_has_key(text, length, "benchmarks") || foreign_text_has_key(text, length, "context");
}

/* The name without "_median" and the like; old versions have only that of the row. */
static const char *name_of(const json_t *row)
{
	return json_get_text(row, "run_name", json_get_text(row, "name", ""));
}

static bool is_aggregate(const json_t *row)
{
	return strcmp(json_get_text(row, "run_type", "iteration"), "aggregate") == 0;
}

static int take_rates(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition, json_t *row, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(row, key, value) {
		size_t length = strlen(key);
		struct foreign_quantity q = rate;

		if (length <= strlen(rate_end) || strcmp(key + length - strlen(rate_end), rate_end) != 0)
			continue;
		q.suffix = key;
		if (foreign_rows_put(r, benchmark, repetition, &q, key, value, err) < 0)
			return -1;
	}
	return 0;
}

static int take_row(struct foreign_rows *r, json_t *row, struct error *err)
{
	const char *name = name_of(row), *unit = json_get_text(row, "time_unit", "");
	struct foreign_quantity real = foreign_seconds, cpu = cpu_time;
	uint32_t benchmark, repetition;
	size_t i = 0;

	if (json_is_true(json_object_get(row, "skipped"))) /* on purpose, with a message */
		return 0;
	if (foreign_rows_benchmark(r, name, &benchmark, err) < 0)
		return -1;
	repetition = foreign_rows_repeat(r, benchmark);
	if (json_is_true(json_object_get(row, "error_occurred")))
		return foreign_rows_fail(r, benchmark, repetition, err);
	while (i < sizeof units / sizeof *units && strcmp(units[i].name, unit) != 0)
		i++;
	if (i == sizeof units / sizeof *units)
		return foreign_wrong(r->source, name, "time_unit", "is none of ns, us, ms and s", err);
	real.scale = cpu.scale = units[i].seconds;
	if (foreign_rows_put(r, benchmark, repetition, &real, "real_time", json_object_get(row, "real_time"), err) <
		    0 ||
	    foreign_rows_put(r, benchmark, repetition, &cpu, "cpu_time", json_object_get(row, "cpu_time"), err) < 0)
		return -1;
	return take_rates(r, benchmark, repetition, row, err);
}

/* Which row stands for each benchmark that has aggregates only: the median, else the mean. What has repetitions is
 * noted as `true`. */
static int choose(const json_t *benchmarks, json_t *chosen, const char *source, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(benchmarks, i, row) {
		const char *name = name_of(row), *aggregate = json_get_text(row, "aggregate_name", "");
		json_t *before = json_object_get(chosen, name), *now = NULL;

		if (*name == '\0')
			return error_set(err, "%s: benchmarks[%zu]: \"name\" is missing or no text", source, i);
		if (!is_aggregate(row))
			now = json_true();
		else if (!json_is_true(before) &&
			 (strcmp(aggregate, "median") == 0 || (!before && strcmp(aggregate, "mean") == 0)))
			now = json_incref(row);
		if (now && json_object_set_new(chosen, name, now) < 0)
			return error_set(err, "%s: out of memory", source);
	}
	return 0;
}

static int take_all(struct foreign_rows *r, const json_t *benchmarks, const json_t *chosen, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(benchmarks, i, row) {
		if (is_aggregate(row) && json_object_get(chosen, name_of(row)) != row)
			continue;
		if (take_row(r, row, err) < 0)
			return -1;
	}
	return 0;
}

static int read_google_benchmark(const char *text, size_t length, const char *source, struct metric_set *metrics,
				 struct arms *arms, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = foreign_text_object(text, length, source, err);
	CLEANUP(json_cleanup) json_t *chosen = json_object();
	CLEANUP(foreign_rows_release) struct foreign_rows rows;
	const json_t *benchmarks = json_object_get(root, "benchmarks");

	foreign_rows_init(&rows, source);
	if (!root)
		return -1;
	if (!json_is_array(benchmarks))
		return error_set(err, "%s: \"benchmarks\" is missing or no list", source);
	if (json_array_size(benchmarks) == 0)
		return error_set(err, "%s: \"benchmarks\" is empty: no benchmark was run", source);
	if (choose(benchmarks, chosen, source, err) < 0 || take_all(&rows, benchmarks, chosen, err) < 0)
		return -1;
	return foreign_rows_finish(&rows, metrics, arms, err);
}

const struct foreign foreign_google_benchmark = {
	.name = "google_benchmark",
	.summary = "Google Benchmark --benchmark_format=json: the repetitions of each benchmark",
	.is = is_google_benchmark,
	.read = read_google_benchmark,
};
