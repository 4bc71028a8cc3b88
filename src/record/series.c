#include "record/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/window.h"

/* A window takes 72 bytes: of a run with ten thousand phases only some series are followed. */
#define WINDOWS_MAX 1000000

static const char *const prefixes[] = {"disk.", "net.", "gpu.", "process.", "thread.", "input."};

struct gathered {
	struct windows phases, whole;
	struct window *items; /* one per phase, and the whole run's behind them; owned */
};

struct series_gathering {
	struct run *run;
	struct gathered *gathered; /* beside run->series */
	int *index_of;             /* in run->series, by id; -1: not followed */
	size_t ids, windows;
};

int series_gather_begin(struct run *run, struct series_gathering **ret, struct error *err)
{
	struct series_gathering *g = calloc(1, sizeof *g);

	if (!g)
		return error_set(err, "out of memory for the series of the run");
	g->run = run;
	*ret = g;
	return 0;
}

static bool is_followed(const char *name)
{
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* The fourth of the texts behind the record: name, unit, source, scope. */
static char *scope_of(const struct wire_series *series, uint32_t used)
{
	const char *at = (const char *)(series + 1), *end = (const char *)series + used;

	for (int i = 0; i < 3 && at; i++) {
		at = memchr(at, '\0', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return at && at < end ? strndup(at, (size_t)(end - at)) : strdup("");
}

static void begin_windows(struct series_gathering *g, struct gathered *to, enum series_kind kind)
{
	const struct run *run = g->run;
	size_t phases = run->phases.count;

	for (size_t i = 0; i < phases; i++) {
		to->items[i].start = run->phases.items[i].start;
		to->items[i].end = run->phases.items[i].end;
	}
	to->items[phases].start = run->start;
	to->items[phases].end = run->end;
	/* As for the figures: what was read a moment before the start and after the end belongs to the run. */
	if (kind == SERIES_COUNTER) {
		to->items[phases].start -= NS_PER_S;
		to->items[phases].end += NS_PER_S;
		if (phases) {
			to->items[0].start -= NS_PER_S;
			to->items[phases - 1].end += NS_PER_S;
		}
	}
	windows_begin(&to->phases, kind, to->items, phases);
	windows_begin(&to->whole, kind, to->items + phases, 1);
}

static int follow(struct series_gathering *g, const struct wire_series *series, uint32_t used)
{
	struct run *run = g->run;
	size_t n = run->series_count;
	struct run_series *rows = reallocarray(run->series, n + 1, sizeof *rows);
	struct gathered *gathered;

	if (!rows)
		return -1;
	run->series = rows;
	gathered = reallocarray(g->gathered, n + 1, sizeof *gathered);
	if (!gathered)
		return -1;
	g->gathered = gathered;
	rows[n] = (struct run_series){
		.name = strdup((const char *)(series + 1)),
		.scope = scope_of(series, used),
		.counter = series->kind == SERIES_COUNTER,
		.phases = calloc(run->phases.count + 1, sizeof *rows[n].phases),
		.first = NAN,
		.last = NAN,
	};
	gathered[n].items = calloc(run->phases.count + 1, sizeof *gathered[n].items);
	if (!rows[n].name || !rows[n].scope || !rows[n].phases || !gathered[n].items) {
		free(rows[n].name);
		free(rows[n].scope);
		free(rows[n].phases);
		free(gathered[n].items);
		return -1;
	}
	run->series_count++;
	begin_windows(g, &gathered[n], rows[n].counter ? SERIES_COUNTER : SERIES_GAUGE);
	g->index_of[g->ids] = (int)n;
	g->windows += run->phases.count + 1;
	return 0;
}

int series_gather_define(struct series_gathering *g, const struct wire_series *series, uint32_t used, struct error *err)
{
	if ((g->ids & (g->ids - 1)) == 0) {
		int *index_of = reallocarray(g->index_of, g->ids ? 2 * g->ids : 1, sizeof *index_of);

		if (!index_of)
			return error_set(err, "out of memory for %zu series", g->ids);
		g->index_of = index_of;
	}
	g->index_of[g->ids] = -1;
	if (is_followed((const char *)(series + 1)) && g->windows + g->run->phases.count + 1 <= WINDOWS_MAX &&
	    follow(g, series, used) < 0)
		return error_set(err, "out of memory for %zu series", g->run->series_count);
	g->ids++;
	return 0;
}

void series_gather_point(struct series_gathering *g, uint32_t id, int64_t t, double value)
{
	int i = id < g->ids ? g->index_of[id] : -1;

	if (i < 0)
		return;
	windows_point(&g->gathered[i].phases, t, value);
	windows_point(&g->gathered[i].whole, t, value);
	if (isnan(g->run->series[i].first))
		g->run->series[i].first = value;
	g->run->series[i].last = value;
}

static struct series_span span_of(const struct window *w)
{
	return (struct series_span){.growth = w->growth, .mean = w->mean, .min = w->min, .max = w->max};
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct run_series *)a)->name, ((const struct run_series *)b)->name);
}

void series_gather_end(struct series_gathering *g)
{
	struct run *run = g->run;

	for (size_t i = 0; i < run->series_count; i++) {
		struct gathered *from = &g->gathered[i];

		windows_end(&from->phases, run->end);
		windows_end(&from->whole, run->end);
		for (size_t k = 0; k < run->phases.count; k++)
			run->series[i].phases[k] = span_of(&from->items[k]);
		run->series[i].whole = span_of(&from->items[run->phases.count]);
	}
	/* From here on they are not beside their windows any more. */
	if (run->series_count == 0)
		return;
	qsort(run->series, run->series_count, sizeof *run->series, by_name);
	run->series_sorted = true;
}

void series_gather_free(struct series_gathering *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->run->series_count && g->gathered; i++)
		free(g->gathered[i].items);
	free(g->gathered);
	free(g->index_of);
	free(g);
}
