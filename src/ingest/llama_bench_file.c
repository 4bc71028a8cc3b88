/* llama-bench's -o json and -o jsonl: the rate of each repetition of each test. Builds differ in the settings that
 * they print with a row, so settings are compared, never interpreted. */
#include "ingest/foreign.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "ingest/foreign_names.h"
#include "ingest/foreign_rows.h"
#include "ingest/foreign_text.h"

static const struct foreign_quantity tokens_per_second = {NULL, "tokens/s", 1, +1, 0.003, 0, true};

/* What is no setting: results, and what is part of the name as it is. */
static const char *const no_settings[] = {
	"build_number", "model_type", "model_size", "model_n_params", "n_prompt",  "n_gen", "n_depth",
	"test_time",	"avg_ns",     "stddev_ns",  "avg_ts",	      "stddev_ts", NULL,
};

/* A run that was stopped at once leaves a lone bracket, or nothing between two. */
static bool is_empty_list(const char *text, size_t length)
{
	size_t brackets = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == (brackets == 0 ? '[' : ']') && brackets < 2)
			brackets++;
		else if (text[i] != ' ' && text[i] != '\t' && text[i] != '\n' && text[i] != '\r')
			return false;
	}
	return brackets > 0;
}

static bool is_llama_bench(const char *text, size_t length)
{
	static const char *const keys[] = {"n_prompt", "n_gen", "samples_ts", "build_commit", "model_filename"};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (foreign_text_has_key(text, length, keys[i]))
			return true;
	return is_empty_list(text, length);
}

static int count_of(const json_t *row, const char *key, const char *source, size_t number, int64_t *ret,
		    struct error *err)
{
	const json_t *value = json_object_get(row, key);

	*ret = json_integer_value(value);
	if (value && (!json_is_integer(value) || *ret < 0))
		return error_set(err, "%s: row %zu: \"%s\" is no count", source, number + 1, key);
	return 0;
}

/* "MODEL pp64", "MODEL tg16 @ d32", as the tool's own table calls them; owned by the caller. */
static char *test_name(const json_t *row, const char *source, size_t number, struct error *err)
{
	CLEANUP(buf_release) struct buf name;
	const char *model = json_get_text(row, "model_type", "");
	int64_t prompt, generated, depth;
	char *text;

	buf_init(&name);
	if (!json_is_object(row)) {
		error_set(err, "%s: row %zu is no object", source, number + 1);
		return NULL;
	}
	if (count_of(row, "n_prompt", source, number, &prompt, err) < 0 ||
	    count_of(row, "n_gen", source, number, &generated, err) < 0 ||
	    count_of(row, "n_depth", source, number, &depth, err) < 0)
		return NULL;
	if (prompt == 0 && generated == 0) {
		error_set(err, "%s: row %zu: neither \"n_prompt\" nor \"n_gen\" says what was tested", source,
			  number + 1);
		return NULL;
	}
	buf_printf(&name, "%s%s", model, *model ? " " : "");
	if (prompt > 0)
		buf_printf(&name, "pp%" PRId64, prompt);
	if (generated > 0)
		buf_printf(&name, "%stg%" PRId64, prompt > 0 ? "+" : "", generated);
	if (depth > 0)
		buf_printf(&name, " @ d%" PRId64, depth);
	text = buf_detach(&name);
	if (!text)
		error_set(err, "%s: out of memory", source);
	return text;
}

static int note_names(const json_t *tests, json_t *groups, const char *source, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(tests, i, row) {
		CLEANUP(free_cleanup) char *name = test_name(row, source, i, err);

		if (!name || foreign_names_note(groups, name, row, no_settings, source, err) < 0)
			return -1;
	}
	return 0;
}

static int take_samples(struct foreign_rows *r, uint32_t benchmark, const json_t *row, struct error *err)
{
	const json_t *samples = json_object_get(row, "samples_ts");

	if (!json_is_array(samples) || json_array_size(samples) == 0)
		return foreign_wrong(r->source, r->benchmarks[benchmark].name, "samples_ts",
				     "is missing or has no value", err);
	for (size_t i = 0; i < json_array_size(samples); i++) {
		uint32_t repetition = foreign_rows_repeat(r, benchmark);
		char key[64];

		snprintf(key, sizeof key, "samples_ts[%zu]", i);
		if (foreign_rows_put(r, benchmark, repetition, &tokens_per_second, key, json_array_get(samples, i),
				     err) < 0)
			return -1;
	}
	return 0;
}

static int take_tests(struct foreign_rows *r, const json_t *tests, const json_t *groups, struct error *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(tests, i, row) {
		CLEANUP(free_cleanup) char *test = test_name(row, r->source, i, err);
		CLEANUP(buf_release) struct buf name;
		uint32_t benchmark;

		buf_init(&name);
		if (!test)
			return -1;
		foreign_names_append(&name, groups, test, row);
		if (name.failed)
			return error_set(err, "%s: out of memory", r->source);
		if (foreign_rows_benchmark(r, name.text, &benchmark, err) < 0 ||
		    take_samples(r, benchmark, row, err) < 0)
			return -1;
	}
	return 0;
}

/* All rows of the text as one list: objects after each other, lists of objects, or both. */
static int collect(struct foreign_text *t, json_t *tests, struct error *err)
{
	json_t *value = NULL;
	int got;

	while ((got = foreign_text_next(t, &value, err)) > 0) {
		int failed = json_is_array(value) ? json_array_extend(tests, value) : json_array_append(tests, value);

		json_decref(value);
		if (failed)
			return error_set(err, "%s: out of memory", t->source);
	}
	return got;
}

static int read_llama_bench(const char *text, size_t length, const char *source, struct metric_set *metrics,
			    struct arms *arms, struct error *err)
{
	CLEANUP(foreign_text_release) struct foreign_text t = {0};
	CLEANUP(json_cleanup) json_t *tests = json_array();
	CLEANUP(json_cleanup) json_t *groups = json_object();
	CLEANUP(foreign_rows_release) struct foreign_rows rows;

	foreign_rows_init(&rows, source);
	if (foreign_text_init(&t, text, length, source, err) < 0 || collect(&t, tests, err) < 0)
		return -1;
	if (json_array_size(tests) == 0)
		return error_set(err, "%s: holds no test: llama-bench did not finish any", source);
	if (note_names(tests, groups, source, err) < 0 || take_tests(&rows, tests, groups, err) < 0)
		return -1;
	return foreign_rows_finish(&rows, metrics, arms, err);
}

const struct foreign foreign_llama_bench = {
	.name = "llama_bench",
	.summary = "llama-bench -o json or jsonl: the repetitions of each test",
	.is = is_llama_bench,
	.read = read_llama_bench,
};
