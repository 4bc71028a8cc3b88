#include "report/timing_report.h"

#include <math.h>

#include "base/json.h"
#include "report/bench_report.h"

#define OUR_SCHEMA 1

static json_t *warnings(const struct timing *t)
{
	json_t *list = json_array();

	for (unsigned bit = 1; bit < TIMING_WARNINGS; bit <<= 1)
		if (t->warnings & bit)
			json_array_append_new(list, json_string(timing_warning_text((enum timing_warning)bit)));
	return list;
}

/* The first eight as the reference names them. */
static json_t *result(const struct timing_item *item)
{
	const struct timing *t = item->timing;
	json_t *o = json_object();

	json_put_text(o, "statement", item->statement);
	json_put_integer(o, "batches", (json_int_t)t->batches);
	if (t->batches == 0)
		return o;
	json_put_number(o, "average", t->average);
	json_put_number(o, "deviation", t->deviation);
	json_put_number(o, "min_exec", t->min_exec);
	json_put_number(o, "max_exec", t->max_exec);
	json_put_integer(o, "repeat", (json_int_t)t->repeat);
	json_put_integer(o, "number", (json_int_t)t->number);
	json_put_number(o, "ttime", t->ttime);
	json_put_number(o, "warmup_time", item->warmup_s);
	json_put_integer(o, "context_size", 0);
	json_put_number(o, "median", t->median);
	json_put_number(o, "low", t->low);
	json_put_number(o, "high", t->high);
	json_put_number(o, "confidence", t->confidence);
	json_put_number(o, "p05", t->p05);
	json_put_number(o, "p25", t->p25);
	json_put_number(o, "p75", t->p75);
	json_put_number(o, "p95", t->p95);
	json_put_number(o, "overhead", t->overhead);
	json_put_number(o, "resolution", t->resolution);
	json_put_number(o, "cycles", t->cycles);
	json_put_number(o, "instructions", t->instructions);
	json_object_set_new(o, "warnings", warnings(t));
	return o;
}

static json_t *settings(const struct timing_report *r)
{
	static const char *const states[] = {"ok", "failed", "interrupted"};
	json_t *o = json_object();

	json_put_integer(o, "schema", OUR_SCHEMA);
	json_put_text(o, "status", states[r->bench->state]);
	json_put_text(o, "setup", r->setup);
	json_put_text(o, "each", r->each);
	json_put_number(o, "confidence", r->bench->confidence);
	json_put_number(o, "margin", r->bench->margin);
	json_put_integer(o, "seed", (json_int_t)r->bench->seed);
	return o;
}

json_t *timing_json(const struct timing_report *r)
{
	json_t *root = json_object(), *results = json_array();

	for (size_t i = 0; i < r->count; i++) {
		const struct bench_figures *f = &r->comparisons->items[i];
		json_t *o = result(&r->items[i]);

		if (f->compared)
			bench_comparison_json(f, o);
		json_array_append_new(results, o);
	}
	json_object_set_new(root, "results", results);
	json_object_set_new(root, "assay", settings(r));
	return root;
}
