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
