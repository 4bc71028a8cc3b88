#include "model/hotspot_tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int tally_init(struct tally *t, size_t count, struct error *err)
{
	t->cells = calloc(count + 1, sizeof *t->cells);
	t->touched = calloc(count + 1, sizeof *t->touched);
	t->count = count;
	return t->cells && t->touched ? 0 : error_set(err, "out of memory for sums of %zu names", count);
}

void tally_release(struct tally *t)
{
	free(t->cells);
	free(t->touched);
	*t = (struct tally){0};
}

void tally_clear(struct tally *t)
{
	memset(t->cells, 0, t->count * sizeof *t->cells);
	t->touched_count = 0;
}

void tally_add(struct tally *t, uint32_t label, uint64_t weight, uint64_t deliveries)
{
	struct tally_cell *c = &t->cells[label];

	if (!weight)
		return;
	if (!c->now)
		t->touched[t->touched_count++] = label;
	c->now += weight;
	c->weight += weight;
	c->deliveries += deliveries;
}

void tally_end_thread(struct tally *t, int tid)
{
	for (size_t i = 0; i < t->touched_count; i++) {
		struct tally_cell *c = &t->cells[t->touched[i]];

		c->threads++;
		if (c->now > c->busiest) {
			c->busiest = c->now;
			c->busiest_tid = tid;
		}
		c->now = 0;
	}
	t->touched_count = 0;
}

void hotspot_rows_release(struct hotspot_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->items[i].name);
		free(rows->items[i].module);
	}
	free(rows->items);
	*rows = (struct hotspot_rows){0};
}

static int by_weight(const void *a, const void *b)
{
	const struct hotspot_row *x = a, *y = b;
	int order;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	order = strcmp(x->name, y->name);
	if (order == 0 && x->module && y->module)
		order = strcmp(x->module, y->module);
	return order ? order : (x->busiest_tid > y->busiest_tid) - (x->busiest_tid < y->busiest_tid);
}

void hotspot_rows_finish(struct hotspot_rows *rows, size_t top)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof *rows->items, by_weight);
	rows->all = rows->count;
	while (top && rows->count > top) {
		struct hotspot_row *last = &rows->items[--rows->count];

		free(last->name);
		free(last->module);
	}
}

static int fill_row(struct hotspot_row *row, const struct tally_cell *c, const struct row_name *label,
		    const struct tally_scale *scale)
{
	double busiest_s = (double)c->busiest * scale->period_s;

	*row = (struct hotspot_row){
		.known = label->known,
		.weight = c->weight,
		.deliveries = c->deliveries,
		.share = scale->weight ? (double)c->weight / (double)scale->weight : 0,
		.cpu_s = (double)c->weight * scale->period_s,
		.threads = c->threads,
		.busiest_tid = c->busiest_tid,
		.busiest_thread_s = busiest_s,
		.pct_of_wall_on_busiest_thread = scale->wall_s > 0 ? 100 * busiest_s / scale->wall_s : NAN,
	};
	row->name = strdup(label->name);
	row->module = label->module ? strdup(label->module) : NULL;
	return row->name && (row->module || !label->module) ? 0 : -1;
}

int tally_rows(const struct tally *t, const struct row_names *labels, const struct tally_scale *scale,
	       struct hotspot_rows *ret, struct error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += t->cells[i].weight > 0;
	ret->items = calloc(count + 1, sizeof *ret->items);
	if (!ret->items)
		return error_set(err, "out of memory for %zu rows of hot spots", count);
	for (size_t i = 0; i < t->count; i++) {
		if (!t->cells[i].weight)
			continue;
		if (fill_row(&ret->items[ret->count++], &t->cells[i], &labels->items[i], scale) < 0)
			return error_set(err, "out of memory for %zu rows of hot spots", count);
	}
	hotspot_rows_finish(ret, scale->top);
	return 0;
}

/* The heaviest label of the thread that is lighter than the one before (or as heavy, and has a larger number). */
static uint32_t next_of_thread(const struct tally *t, uint32_t before)
{
	uint32_t best = LABEL_NONE;

	for (size_t i = 0; i < t->touched_count; i++) {
		uint32_t label = t->touched[i];
		uint64_t now = t->cells[label].now;

		if (before != LABEL_NONE &&
		    (now > t->cells[before].now || (now == t->cells[before].now && label <= before)))
			continue;
		if (best == LABEL_NONE || now > t->cells[best].now || (now == t->cells[best].now && label < best))
			best = label;
	}
	return best;
}

int tally_thread_rows(const struct tally *t, const struct row_names *labels, const struct tally_scale *scale,
		      struct hotspot_rows *ret, struct error *err)
{
	uint32_t label = LABEL_NONE;

	ret->items = calloc(scale->top, sizeof *ret->items);
	if (!ret->items)
		return error_set(err, "out of memory for %zu rows of hot spots", scale->top);
	while (ret->count < scale->top && (label = next_of_thread(t, label)) != LABEL_NONE) {
		uint64_t now = t->cells[label].now;
		const struct tally_cell cell = {.weight = now, .busiest = now, .threads = 1};

		if (fill_row(&ret->items[ret->count++], &cell, &labels->items[label], scale) < 0)
			return error_set(err, "out of memory for %zu rows of hot spots", scale->top);
	}
	ret->all = t->touched_count;
	return 0;
}
