/* hyperfine's --export-json: each command's times in seconds, with exit codes and peak memory of each run where the
 * version has them, and user and system time, which it exports as means only. */
#include "ingest/foreign.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "ingest/foreign_names.h"
#include "ingest/foreign_rows.h"
#include "ingest/foreign_text.h"

static const char *const no_keys[] = {NULL};

/* Memory of short commands moves by some pages with the layout of their address space. */
static const struct foreign_quantity peak_memory = {"peak memory", "MiB", 1.0 / (1 << 20), -1, 0.02, 1, true};

/* A mean is one value, whose spread is not known: it is shown and does not decide. */
static const struct {
	const char *key;
	struct foreign_quantity quantity;
} means[] = {
	{"user", {"user", "s", 1, -1, 0.01, 0, false}},
	{"system", {"system", "s", 1, -1, 0.01, 0, false}},
};

static bool is_hyperfine(const char *text, size_t length)
{
	return foreign_text_has_key(text, length, "results");
}

/* results[i]'s list of that name, one value per time; NULL also where it is absent. */
static int list_of(const struct foreign_rows *r, const char *name, const json_t *row, const char *key, size_t count,
		   json_t **ret, struct error *err)
{
	json_t *list = json_object_get(row, key);

	if (list && (!json_is_array(list) || json_array_size(list) != count))
		return foreign_wrong(r->source, name, key, "does not have one value for each of \"times\"", err);
	*ret = list;
	return 0;
}

static int take_element(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition,
			const struct foreign_quantity *q, const char *key, const json_t *list, size_t i,
			struct error *err)
{
	char element[64];

	snprintf(element, sizeof element, "%s[%zu]", key, i);
	return foreign_rows_put(r, benchmark, repetition, q, element, json_array_get(list, i), err);
}

static bool succeeded(const json_t *exit_code) /* null where a signal ended it */
{
	return json_is_integer(exit_code) && json_integer_value(exit_code) == 0;
}

static int take_runs(struct foreign_rows *r, uint32_t benchmark, const json_t *row, struct error *err)
{
	const char *name = r->benchmarks[benchmark].name;
	const json_t *times = json_object_get(row, "times");
	uint32_t first = r->benchmarks[benchmark].repetitions;
	size_t count = json_array_size(times);
	json_t *codes = NULL, *memory = NULL;
	bool failed = false;

	if (count == 0)
		return foreign_wrong(r->source, name, "times", "is missing or has no value", err);
	if (list_of(r, name, row, "exit_codes", count, &codes, err) < 0 ||
	    list_of(r, name, row, "memory_usage_byte", count, &memory, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		uint32_t repetition = foreign_rows_repeat(r, benchmark);

		if (codes && !succeeded(json_array_get(codes, i))) {
			failed = true;
			if (foreign_rows_fail(r, benchmark, repetition, err) < 0)
				return -1;
			continue;
		}
		if (take_element(r, benchmark, repetition, &foreign_seconds, "times", times, i, err) < 0 ||
		    (memory &&
		     take_element(r, benchmark, repetition, &peak_memory, "memory_usage_byte", memory, i, err) < 0))
			return -1;
	}
	for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
		const json_t *mean = json_object_get(row, means[i].key);

		/* means include the runs that failed */
		if (mean && !failed &&
		    foreign_rows_put(r, benchmark, first, &means[i].quantity, means[i].key, mean, err) < 0)
			return -1;
	}
	return 0;
}

static int note_names(json_t *results, json_t *groups, const char *source, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(results, i, row) {
		const char *command = json_get_text(row, "command", "");

		if (*command == '\0')
			return error_set(err, "%s: results[%zu]: \"command\" is missing or no text", source, i);
		if (foreign_names_note(groups, command, json_object_get(row, "parameters"), no_keys, source, err) < 0)
			return -1;
	}
	return 0;
}

static int take_results(struct foreign_rows *r, const json_t *results, const json_t *groups, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(results, i, row) {
		CLEANUP(buf_release) struct buf name;
		uint32_t benchmark;

		buf_init(&name);
		foreign_names_append(&name, groups, json_get_text(row, "command", ""),
				     json_object_get(row, "parameters"));
		if (name.failed)
			return error_set(err, "%s: out of memory", r->source);
		if (foreign_rows_benchmark(r, name.text, &benchmark, err) < 0 || take_runs(r, benchmark, row, err) < 0)
			return -1;
	}
	return 0;
}

static int read_hyperfine(const char *text, size_t length, const char *source, struct metric_set *metrics,
			  struct arms *arms, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = foreign_text_object(text, length, source, err);
	CLEANUP(json_cleanup) json_t *groups = json_object();
	CLEANUP(foreign_rows_release) struct foreign_rows rows;
	json_t *results = json_object_get(root, "results");

	foreign_rows_init(&rows, source);
	if (!root)
		return -1;
	if (!json_is_array(results))
		return error_set(err, "%s: \"results\" is missing or no list", source);
	if (json_array_size(results) == 0)
		return error_set(err, "%s: \"results\" is empty: no benchmark was finished", source);
	if (note_names(results, groups, source, err) < 0 || take_results(&rows, results, groups, err) < 0)
		return -1;
	return foreign_rows_finish(&rows, metrics, arms, err);
}

const struct foreign foreign_hyperfine = {
	.name = "hyperfine",
	.summary = "hyperfine --export-json: the times of each command",
	.is = is_hyperfine,
	.read = read_hyperfine,
};
