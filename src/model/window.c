#include "model/window.h"

#include <math.h>

void windows_begin(struct windows *w, enum series_kind kind, struct window *items, size_t count)
{
	*w = (struct windows){.items = items, .count = count, .kind = kind};
	for (size_t i = 0; i < count; i++)
		items[i] = (struct window){.start = items[i].start,
					   .end = items[i].end,
					   .mean = NAN,
					   .max = NAN,
					   .min = NAN,
					   .growth = NAN};
}

/* The level `value` held over [from, to): its share of a window's mean and extremes. */
static void add_level(struct window *w, int64_t from, int64_t to, double value)
{
	int64_t begin = from > w->start ? from : w->start, end = to < w->end ? to : w->end;

	if (begin > end || (begin == end && w->start != w->end))
		return;
	w->area += value * (double)(end - begin);
	w->width += (double)(end - begin);
	w->max = isnan(w->max) || value > w->max ? value : w->max;
	w->min = isnan(w->min) || value < w->min ? value : w->min;
}

/* The total went from v0 at t0 to v1 at t1 in a straight line: the part inside a window. */
static void add_growth(struct window *w, int64_t t0, double v0, int64_t t1, double v1)
{
	int64_t begin = t0 > w->start ? t0 : w->start, end = t1 < w->end ? t1 : w->end;

	if (begin > end || (begin == end && t0 != t1))
		return;
	if (isnan(w->growth))
		w->growth = 0;
	if (t1 > t0)
		w->growth += (v1 - v0) * (double)(end - begin) / (double)(t1 - t0);
	else
		w->growth += v1 - v0;
}

void windows_point(struct windows *w, int64_t t, double value)
{
	if (w->started && t < w->last_t)
		return;
	while (w->started && w->first < w->count && w->items[w->first].end < w->last_t)
		w->first++;
	for (size_t i = w->first; w->started && i < w->count && w->items[i].start <= t; i++) {
		if (w->kind == SERIES_COUNTER)
			add_growth(&w->items[i], w->last_t, w->last_value, t, value);
		else
			add_level(&w->items[i], w->last_t, t, w->last_value);
	}
	w->last_t = t;
	w->last_value = value;
	w->started = 1;
}

void windows_end(struct windows *w, int64_t t)
{
	for (size_t i = 0; i < w->count; i++) {
		struct window *item = &w->items[i];

		if (w->started && w->kind == SERIES_GAUGE && t >= w->last_t)
			add_level(item, w->last_t, t > item->end ? t : item->end, w->last_value);
		if (w->kind == SERIES_GAUGE)
			item->mean = item->width > 0 ? item->area / item->width : item->max;
	}
}
