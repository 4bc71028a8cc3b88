#include "ingest/foreign_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "ingest/foreign_text.h"

#define BENCHMARKS_MAX 100000
#define SERIES_MAX (4 * BENCHMARKS_MAX)
#define CELLS_MAX ((size_t)1 << 24) /* values of all arms, missing ones too: an arm has room for each metric */
#define ARM_CELLS 16		    /* what an arm itself takes, in cells */
#define SHOWN_COLUMNS 100

const struct foreign_quantity foreign_seconds = {NULL, "s", 1, -1, 0.01, 0, true};

void foreign_rows_init(struct foreign_rows *r, const char *source)
{
	*r = (struct foreign_rows){.source = source};
}

void foreign_rows_release(struct foreign_rows *r)
{
	for (size_t i = 0; i < r->benchmark_count; i++)
		free(r->benchmarks[i].name);
	for (size_t i = 0; i < r->series_count; i++)
		free(r->series[i].name);
	free(r->benchmarks);
	free(r->series);
	free(r->values);
	free(r->failures);
	json_decref(r->benchmark_index);
	json_decref(r->series_index);
	foreign_rows_init(r, NULL);
}

static int no_memory(const struct foreign_rows *r, struct error *err)
{
	return error_set(err, "%s: out of memory", r->source);
}

/* Room for one more item; the items as they are then, NULL when out of memory. */
static void *grow(void *items, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (count < *room)
		return items;
	grown = reallocarray(items, more, size);
	if (grown)
		*room = more;
	return grown;
}

/* The number of a name in an index; -1 where it has none. */
static json_int_t find(const json_t *index, const char *name)
{
	const json_t *number = json_object_get(index, name);

	return number ? json_integer_value(number) : -1;
}

static int remember(json_t **index, const char *name, size_t number)
{
	if (!*index)
		*index = json_object();
	return json_object_set_new(*index, name, json_integer((json_int_t)number));
}

int foreign_rows_benchmark(struct foreign_rows *r, const char *name, uint32_t *ret, struct error *err)
{
	json_int_t known = find(r->benchmark_index, name);
	struct foreign_benchmark *grown;
	char *copy;

	if (known >= 0) {
		*ret = (uint32_t)known;
		return 0;
	}
	if (r->benchmark_count == BENCHMARKS_MAX)
		return error_set(err, "%s: holds more than %d benchmarks", r->source, BENCHMARKS_MAX);
	grown = grow(r->benchmarks, r->benchmark_count, &r->benchmark_room, sizeof *grown);
	if (!grown)
		return no_memory(r, err);
	r->benchmarks = grown;
	copy = strdup(name);
	if (!copy || remember(&r->benchmark_index, name, r->benchmark_count) < 0) {
		free(copy);
		return no_memory(r, err);
	}
	*ret = (uint32_t)r->benchmark_count;
	r->benchmarks[r->benchmark_count++] = (struct foreign_benchmark){copy, 0};
	return 0;
}

uint32_t foreign_rows_repeat(struct foreign_rows *r, uint32_t benchmark)
{
	return r->benchmarks[benchmark].repetitions++;
}

static int series_of(struct foreign_rows *r, uint32_t benchmark, const struct foreign_quantity *q, uint32_t *ret,
		     struct error *err)
{
	CLEANUP(buf_release) struct buf name;
	struct foreign_series *grown;
	json_int_t known;

	buf_init(&name);
	buf_puts(&name, r->benchmarks[benchmark].name);
	if (q->suffix)
		buf_printf(&name, ": %s", q->suffix);
	known = name.failed ? -1 : find(r->series_index, name.text);
	if (known >= 0) {
		*ret = (uint32_t)known;
		return 0;
	}
	if (r->series_count == SERIES_MAX)
		return error_set(err, "%s: holds more than %d kinds of values", r->source, SERIES_MAX);
	grown = grow(r->series, r->series_count, &r->series_room, sizeof *grown);
	if (!grown)
		return no_memory(r, err);
	r->series = grown;
	if (name.failed || remember(&r->series_index, name.text, r->series_count) < 0)
		return no_memory(r, err);
	*ret = (uint32_t)r->series_count;
	r->series[r->series_count++] = (struct foreign_series){buf_detach(&name), *q};
	return 0;
}

int foreign_rows_put(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition, const struct foreign_quantity *q,
		     const char *key, const json_t *value, struct error *err)
{
	struct foreign_value *grown, item = {.repetition = repetition};

	if (foreign_number(r->source, r->benchmarks[benchmark].name, key, value, &item.value, err) < 0 ||
	    series_of(r, benchmark, q, &item.series, err) < 0)
		return -1;
	item.value *= q->scale;
	if (!isfinite(item.value))
		return foreign_wrong(r->source, r->benchmarks[benchmark].name, key, "is too large", err);
	grown = grow(r->values, r->value_count, &r->value_room, sizeof *grown);
	if (!grown)
		return no_memory(r, err);
	r->values = grown;
	r->values[r->value_count++] = item;
	return 0;
}

int foreign_rows_fail(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition, struct error *err)
{
	struct foreign_failure *grown = grow(r->failures, r->failure_count, &r->failure_room, sizeof *grown);

	if (!grown)
		return no_memory(r, err);
	r->failures = grown;
	r->failures[r->failure_count++] = (struct foreign_failure){benchmark, repetition};
	return 0;
}

/* A benchmark may have the name of one of the program's own metrics, but is not that. */
static size_t add_metric(struct metric_set *metrics, const struct foreign_series *s)
{
	CLEANUP(buf_release) struct buf apart;
	struct metric_desc desc = {
		.name = s->name,
		.unit = s->quantity.unit,
		.title = s->name,
		.direction = s->quantity.direction,
		.relative_floor = s->quantity.relative_floor,
		.absolute_floor = s->quantity.absolute_floor,
		.gated = s->quantity.gated,
	};

	buf_init(&apart);
	if (metric_find(metrics, s->name) < metric_count) {
		buf_printf(&apart, "%s (benchmark)", s->name);
		if (apart.failed)
			return SIZE_MAX;
		desc.name = desc.title = apart.text;
	}
	return metric_add(metrics, &desc);
}

static int add_metrics(const struct foreign_rows *r, struct metric_set *metrics, size_t *ret_index, struct error *err)
{
	for (size_t i = 0; i < r->series_count; i++) {
		const struct foreign_quantity *q = &r->series[i].quantity;
		const struct metric_desc *there;
		CLEANUP(buf_release) struct buf shown;

		buf_init(&shown);
		ret_index[i] = add_metric(metrics, &r->series[i]);
		if (ret_index[i] == SIZE_MAX)
			return no_memory(r, err);
		there = &metrics->items[ret_index[i]];
		if (strcmp(there->unit, q->unit) == 0 && there->direction == q->direction)
			continue;
		utf8_append_line(&shown, r->series[i].name, SHOWN_COLUMNS);
		return error_set(err, "%s: benchmark \"%s\" is in %s here and in %s in another file", r->source,
				 shown.text, q->unit, there->unit);
	}
	return 0;
}

/* An arm called "SOURCE: repetition N", and of a failed one what failed. */
static struct arm *add_arm(const struct foreign_rows *r, struct arms *arms, uint32_t repetition, const char *failed)
{
	CLEANUP(buf_release) struct buf name;
	struct arm *arm = arms_add(arms);

	buf_init(&name);
	if (!arm)
		return NULL;
	buf_printf(&name, "%s: repetition %u", r->source, repetition + 1);
	if (failed) {
		buf_puts(&name, " of ");
		utf8_append_line(&name, failed, SHOWN_COLUMNS);
	}
	arm->state = failed ? ARM_FAILED : ARM_OK;
	arm->status = strdup(failed ? "failed" : "ok");
	arm->source = buf_detach(&name);
	return arm->status && arm->source ? arm : NULL;
}

/* Which arm a repetition goes to, by its number; SIZE_MAX where no benchmark has a value of it. */
static int add_arms(const struct foreign_rows *r, struct arms *arms, size_t *arm_of, size_t repetitions,
		    struct error *err)
{
	memset(arm_of, 0xff, repetitions * sizeof *arm_of); /* SIZE_MAX */
	for (size_t i = 0; i < r->value_count; i++)
		arm_of[r->values[i].repetition] = 0;
	for (size_t i = 0; i < repetitions; i++) {
		if (arm_of[i] == SIZE_MAX)
			continue;
		arm_of[i] = arms->count;
		if (!add_arm(r, arms, (uint32_t)i, NULL))
			return no_memory(r, err);
	}
	for (size_t i = 0; i < r->failure_count; i++) {
		const struct foreign_failure *f = &r->failures[i];

		if (!add_arm(r, arms, f->repetition, r->benchmarks[f->benchmark].name))
			return no_memory(r, err);
	}
	return 0;
}

static int too_much(const struct foreign_rows *r, struct error *err)
{
	return error_set(err, "%s: %zu kinds of values with so many repetitions are more than can be compared",
			 r->source, r->series_count);
}

static int fill(const struct foreign_rows *r, struct arms *arms, const size_t *arm_of, const size_t *metric_of,
		size_t cells, struct error *err)
{
	for (size_t i = 0; i < r->value_count; i++) {
		const struct foreign_value *v = &r->values[i];
		struct arm *arm = &arms->items[arm_of[v->repetition]];
		size_t before = arm->value_count;

		if (cells > CELLS_MAX)
			return too_much(r, err);
		if (arm_set(arm, metric_of[v->series], v->value) < 0)
			return no_memory(r, err);
		cells += arm->value_count - before;
	}
	return 0;
}

int foreign_rows_finish(struct foreign_rows *r, struct metric_set *metrics, struct arms *arms, struct error *err)
{
	CLEANUP(free_cleanup) size_t *metric_of = calloc(r->series_count + 1, sizeof *metric_of);
	CLEANUP(free_cleanup) size_t *arm_of = NULL;
	size_t repetitions = 0, cells;

	for (size_t i = 0; i < r->value_count; i++)
		if (r->values[i].repetition >= repetitions)
			repetitions = r->values[i].repetition + (size_t)1;
	if (repetitions == 0 && r->failure_count == 0)
		return error_set(err, "%s: holds no results", r->source);
	cells = ARM_CELLS * (repetitions + r->failure_count);
	if (cells > CELLS_MAX)
		return too_much(r, err);
	arm_of = calloc(repetitions + 1, sizeof *arm_of);
	if (!metric_of || !arm_of)
		return no_memory(r, err);
	if (add_metrics(r, metrics, metric_of, err) < 0 || add_arms(r, arms, arm_of, repetitions, err) < 0)
		return -1;
	return fill(r, arms, arm_of, metric_of, cells, err);
}
