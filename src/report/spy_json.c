#include "report/spy_report.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define OUR_SCHEMA 1

static double seconds(int64_t from, int64_t to)
{
	return (double)(to - from) / (double)NS_PER_S;
}

static void put_bytes(json_t *o, const char *key, int64_t bytes)
{
	if (bytes >= 0)
		json_put_integer(o, key, bytes);
}

static void fill(json_t *o, const struct monitor *m, int64_t begin)
{
	json_put_integer(o, "begin", m->begin);
	json_put_integer(o, "end", m->end);
	json_put_integer(o, "peak", m->peak);
	json_put_number(o, "peak_at", seconds(begin, m->peak_at));
	json_put_number(o, "average", monitor_average(m));
	json_put_integer(o, "n", (json_int_t)m->n);
}

static json_t *gpus(const struct spy_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->gpu_count; i++) {
		json_t *o = json_object();

		json_put_text(o, "name", r->gpu_names[i]);
		if (r->gpus[i].n)
			fill(o, &r->gpus[i], r->begin);
		json_array_append_new(list, o);
	}
	return list;
}

/* Where the peak is known from, and how well. */
static json_t *peak(const struct spy_result *r)
{
	json_t *o = json_object();

	if (r->peak < 0)
		return o;
	json_put_integer(o, "bytes", r->peak);
	json_put_bool(o, "exact", r->peak_exact);
	json_put_text(o, "from", r->peak_from_mark ? "high-water mark" : "reading");
	put_bytes(o, "above", r->peak_above);
	return o;
}

static json_t *high_water(const struct spy_result *r)
{
	json_t *o = json_object();

	put_bytes(o, "begin", r->high_water_begin);
	put_bytes(o, "end", r->high_water_end);
	if (r->high_water_end >= 0)
		json_put_number(o, "read_at", seconds(r->begin, r->high_water_read_at));
	json_put_bool(o, "summed", r->tree_bound);
	return o;
}

json_t *spy_json(const struct spy_result *r, const struct spy_subject *s)
{
	json_t *root = json_object(), *warnings = json_array();

	json_put_integer(root, "schema", OUR_SCHEMA);
	json_put_text(root, "name", s->name);
	json_put_integer(root, "pid", s->pid);
	json_put_bool(root, "tree", s->tree);
	json_put_text(root, "ended", r->how == SPY_GONE ? "process" : "watch");
	if (s->status >= 0)
		json_put_integer(root, "status", s->status);
	json_put_number(root, "seconds", seconds(r->begin, r->end));
	json_put_number(root, "delay", (double)s->delay_ns / (double)NS_PER_S);
	for (size_t i = 0; i < SPY_RESOURCES; i++) {
		json_t *o;

		if (!r->resources[i].n)
			continue;
		o = json_object();
		fill(o, &r->resources[i], r->begin);
		json_object_set_new(root, spy_resource_names[i], o);
	}
	json_object_set_new(root, "gpus", gpus(r));
	json_object_set_new(root, "peak", peak(r));
	json_object_set_new(root, "high_water", high_water(r));
	json_put_integer(root, "readings", (json_int_t)r->ticks);
	json_put_integer(root, "late", (json_int_t)r->late_ticks);
	json_put_integer(root, "processes", (json_int_t)r->processes);
	json_put_integer(root, "unseen", (json_int_t)r->unseen);
	for (size_t i = 0; i < r->warnings.count; i++)
		json_array_append_new(warnings, json_text(r->warnings.texts[i], strlen(r->warnings.texts[i])));
	json_object_set_new(root, "warnings", warnings);
	return root;
}
