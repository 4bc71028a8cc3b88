#include "report/hotspots.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/shares.h"

#define CONFIDENCE_ALPHA 0.05

/* As the reference rounds: to so many digits behind the point. */
static double rounded(double value, int digits)
{
	double scale = pow(10, digits);

	return round(value * scale) / scale;
}

/* To so many digits, and never a bare -0. */
static void put_rounded(json_t *object, const char *key, double value, int digits)
{
	json_put_number(object, key, rounded(value, digits) + 0.0);
}

static json_t *row_json(const struct hotspot_row *row)
{
	json_t *o = json_object();

	json_put_text(o, "name", row->name);
	put_rounded(o, "share", row->share, 4);
	return o;
}

static void put_interval(json_t *o, const struct hotspot_group *g, const struct hotspot_row *row)
{
	struct share_interval i = shares_interval(row->share, g->effective, shares_z(CONFIDENCE_ALPHA));

	if (g->effective < SHARES_LEAST)
		return;
	put_rounded(o, "share_low", i.low, 4);
	put_rounded(o, "share_high", i.high, 4);
}

static json_t *code_rows(const struct hotspot_group *g, const struct hotspot_rows *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++) {
		const struct hotspot_row *row = &rows->items[i];
		json_t *o = row_json(row);

		put_rounded(o, "cpu_s", row->cpu_s, 3);
		json_put_integer(o, "threads", (json_int_t)row->threads);
		put_rounded(o, "busiest_thread_s", row->busiest_thread_s, 3);
		put_rounded(o, "pct_of_wall_on_busiest_thread", row->pct_of_wall_on_busiest_thread, 1);
		json_put_integer(o, "busiest_tid", row->busiest_tid);
		json_put_text(o, "module", row->module);
		if (!row->known)
			json_put_bool(o, "known", 0);
		json_put_integer(o, "samples", (json_int_t)row->weight);
		json_put_integer(o, "deliveries", (json_int_t)row->deliveries);
		put_interval(o, g, row);
		json_array_append_new(list, o);
	}
	return list;
}

/* {name, share} and nothing else. */
static json_t *share_rows(const struct hotspot_rows *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(list, row_json(&rows->items[i]));
	return list;
}

static json_t *busiest_rows(const struct hotspot_rows *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++) {
		json_t *o = json_object();

		json_put_integer(o, "tid", rows->items[i].busiest_tid);
		json_put_text(o, "name", rows->items[i].name);
		put_rounded(o, "cpu_s", rows->items[i].cpu_s, 3);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *group_json(const struct hotspot_group *g, bool focus)
{
	json_t *o = json_object();
	double stacked = g->stacked ? (double)g->stacked : NAN;

	json_put_integer(o, "samples", (json_int_t)g->weight);
	put_rounded(o, "cpu_s", g->cpu_s, 3);
	json_put_integer(o, "deliveries", (json_int_t)g->deliveries);
	put_rounded(o, "effective", g->effective, 1);
	put_rounded(o, "wall_s", g->wall_s, 3);
	json_put_integer(o, "thread_count", (json_int_t)g->thread_count);
	put_rounded(o, "complete", (double)g->complete / stacked, 4);
	put_rounded(o, "cut", (double)g->cut / stacked, 4);
	put_rounded(o, "guessed", (double)g->guessed / stacked, 4);
	put_rounded(o, "no_stack", g->weight ? 1 - (double)g->stacked / (double)g->weight : NAN, 4);
	json_object_set_new(o, "modules", share_rows(&g->modules));
	json_object_set_new(o, "self", code_rows(g, &g->self));
	json_object_set_new(o, "inclusive", code_rows(g, &g->inclusive));
	json_object_set_new(o, "threads", share_rows(&g->threads));
	json_object_set_new(o, "busiest_threads", busiest_rows(&g->busiest_threads));
	if (focus) {
		json_object_set_new(o, "callers", code_rows(g, &g->callers));
		json_object_set_new(o, "callees", code_rows(g, &g->callees));
	}
	json_put_integer(o, "functions", (json_int_t)g->self.all);
	return o;
}

static json_t *unsampled_json(const struct profile *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->unsampled_count; i++) {
		const struct profile_unsampled *u = &p->unsampled[i];
		json_t *o = json_object();

		json_put_integer(o, "pid", u->pid);
		json_put_text(o, "name", u->name);
		if (u->cpu_ns >= 0)
			put_rounded(o, "cpu_s", (double)u->cpu_ns / 1e9, 3);
		json_put_text(o, "reason", u->reason);
		json_array_append_new(list, o);
	}
	return list;
}

/* Of processes that were sampled, what was missing. */
static json_t *lacking_json(const struct profile *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->image_count; i++) {
		const struct profile_image *image = &p->images[i];
		json_t *o;

		if (!image->note && !image->unarmed && image->unsampled_ns <= 0 && !image->dropped)
			continue;
		o = json_object();
		json_put_integer(o, "pid", image->pid);
		json_put_text(o, "exe", image->exe);
		json_put_integer(o, "dropped", (json_int_t)image->dropped);
		json_put_integer(o, "threads_without_timer", image->unarmed);
		if (image->unsampled_ns > 0)
			put_rounded(o, "unsampled_s", (double)image->unsampled_ns / 1e9, 3);
		json_put_text(o, "note", image->note);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *module_notes(const struct profile *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->module_count; i++) {
		json_t *o;

		if (!p->modules[i].note)
			continue;
		o = json_object();
		json_put_text(o, "name", p->modules[i].name);
		json_put_text(o, "path", p->modules[i].path);
		json_put_text(o, "note", p->modules[i].note);
		json_array_append_new(list, o);
	}
	return list;
}

static const char *by_name(enum hotspot_by by)
{
	static const char *const names[] = {
		[BY_FUNCTION] = "function", [BY_LINE] = "line",	      [BY_MODULE] = "module",
		[BY_THREAD] = "thread",	    [BY_PROCESS] = "process",
	};

	return names[by];
}

static void put_groups(json_t *object, const struct hotspot_group *groups, size_t count, bool focus)
{
	for (size_t i = 0; i < count; i++)
		json_object_set_new(object, groups[i].name, group_json(&groups[i], focus));
}

json_t *hotspots_json(const struct hotspots_shown *shown)
{
	json_t *root = json_object(), *groups = json_object();
	const struct profile *p = shown->profile;
	const struct profile_account *a = &shown->account;

	if (!root || !groups) {
		json_decref(root);
		json_decref(groups);
		return NULL;
	}
	json_put_integer(root, "samples", (json_int_t)shown->hotspots->weight);
	json_put_integer(root, "dropped", (json_int_t)a->dropped);
	json_put_number(root, "period_s", p->period_s);
	json_put_integer(root, "deliveries", (json_int_t)shown->hotspots->deliveries);
	json_put_text(root, "recorder", p->recorder == 2 ? "perf" : "preload");
	json_put_integer(root, "hz", p->hz);
	json_put_text(root, "by", by_name(shown->query->by));
	json_put_text(root, "focus", shown->query->focus);
	put_rounded(root, "cpu_consumed_s", a->cpu_s, 3);
	put_rounded(root, "cpu_sampled_s", a->sampled_s, 3);
	put_rounded(root, "cpu_dropped_s", a->dropped_s, 3);
	put_rounded(root, "sampler_cpu_s", a->sampler_s, 6);
	if (p->damaged)
		json_put_text(root, "damaged", p->trouble);
	put_groups(groups, shown->hotspots->groups, shown->hotspots->group_count, shown->query->focus != NULL);
	json_object_set_new(root, "groups", groups);
	if (shown->hotspots->phase_count) {
		json_t *phases = json_object();

		put_groups(phases, shown->hotspots->phases, shown->hotspots->phase_count, shown->query->focus != NULL);
		json_object_set_new(root, "phases", phases);
	}
	json_object_set_new(root, "unsampled", unsampled_json(p));
	json_object_set_new(root, "lacking", lacking_json(p));
	json_object_set_new(root, "module_notes", module_notes(p));
	return root;
}
