#include "record/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/window.h"
#include "record/series.h"

enum figure_kind {
	FIGURE_GROWTH, /* of a counter */
	FIGURE_SHARE,  /* of a counter of seconds: growth per second of the phase */
	FIGURE_MAX,    /* of a gauge */
	FIGURE_MIN,
	FIGURE_MEAN,
	FIGURE_LOOKS, /* mean of a gauge's points in the phase: each speaks of its own moment only, not of what follows
		       */
};

/* Which series becomes which figure. */
static const struct figure {
	const char *series;
	enum figure_kind kind;
	size_t offset; /* in struct phase_figures */
} figures[] = {
	{"cpu.total", FIGURE_GROWTH, offsetof(struct phase_figures, cpu_s)},
	{"cpu.user", FIGURE_GROWTH, offsetof(struct phase_figures, cpu_user_s)},
	{"cpu.system", FIGURE_GROWTH, offsetof(struct phase_figures, cpu_system_s)},
	{"cpu.runqueue_wait", FIGURE_GROWTH, offsetof(struct phase_figures, runqueue_wait_s)},
	{"cpu.threads", FIGURE_MAX, offsetof(struct phase_figures, threads_max)},
	{"cpu.processes", FIGURE_MAX, offsetof(struct phase_figures, processes_max)},
	{"memory.rss", FIGURE_MAX, offsetof(struct phase_figures, rss_peak)},
	{"memory.anon", FIGURE_MAX, offsetof(struct phase_figures, anon_peak)},
	{"memory.file", FIGURE_MAX, offsetof(struct phase_figures, file_peak)},
	{"memory.shared", FIGURE_MAX, offsetof(struct phase_figures, shared_peak)},
	{"memory.swap", FIGURE_MAX, offsetof(struct phase_figures, swap_peak)},
	{"memory.pss", FIGURE_MAX, offsetof(struct phase_figures, pss_peak)},
	{"memory.faults.minor", FIGURE_GROWTH, offsetof(struct phase_figures, minor_faults)},
	{"memory.faults.major", FIGURE_GROWTH, offsetof(struct phase_figures, major_faults)},
	{"io.read_bytes", FIGURE_GROWTH, offsetof(struct phase_figures, read_bytes)},
	{"io.write_bytes", FIGURE_GROWTH, offsetof(struct phase_figures, write_bytes)},
	{"io.read_chars", FIGURE_GROWTH, offsetof(struct phase_figures, read_chars)},
	{"io.write_chars", FIGURE_GROWTH, offsetof(struct phase_figures, write_chars)},
	{"pressure.cpu.some", FIGURE_SHARE, offsetof(struct phase_figures, psi_cpu_some)},
	{"pressure.memory.some", FIGURE_SHARE, offsetof(struct phase_figures, psi_memory_some)},
	{"pressure.memory.full", FIGURE_SHARE, offsetof(struct phase_figures, psi_memory_full)},
	{"pressure.io.some", FIGURE_SHARE, offsetof(struct phase_figures, psi_io_some)},
	{"pressure.io.full", FIGURE_SHARE, offsetof(struct phase_figures, psi_io_full)},
	{"cpu.allowed", FIGURE_MEAN, offsetof(struct phase_figures, cpus_allowed)},
	{"cpu.busiest_thread", FIGURE_GROWTH, offsetof(struct phase_figures, busiest_thread_s)},
	{"memory.touched", FIGURE_LOOKS, offsetof(struct phase_figures, touched_rate)},
	{"machine.refaults.file", FIGURE_GROWTH, offsetof(struct phase_figures, machine_refault_bytes)},
	{"machine.cpu.busy", FIGURE_GROWTH, offsetof(struct phase_figures, machine_busy_s)},
	{"machine.cpu.steal", FIGURE_GROWTH, offsetof(struct phase_figures, machine_steal_s)},
	{"machine.faults.major", FIGURE_GROWTH, offsetof(struct phase_figures, machine_major_faults)},
	{"machine.swap.in", FIGURE_GROWTH, offsetof(struct phase_figures, swap_in)},
	{"machine.swap.out", FIGURE_GROWTH, offsetof(struct phase_figures, swap_out)},
	{"machine.memory.available", FIGURE_MIN, offsetof(struct phase_figures, memory_available)},
	{"cgroup.memory.current", FIGURE_MAX, offsetof(struct phase_figures, group_memory_peak)},
	{"cgroup.oom_kills", FIGURE_GROWTH, offsetof(struct phase_figures, oom_kills)},
	{"cgroup.memory.limit", FIGURE_MIN, offsetof(struct phase_figures, memory_limit)},
	{"cgroup.cpu.quota", FIGURE_MEAN, offsetof(struct phase_figures, quota)},
	{"cgroup.cpu.periods", FIGURE_GROWTH, offsetof(struct phase_figures, quota_periods)},
	{"cgroup.cpu.throttled_periods", FIGURE_GROWTH, offsetof(struct phase_figures, throttled_periods)},
	{"cgroup.cpu.throttled", FIGURE_GROWTH, offsetof(struct phase_figures, throttled_s)},
	{"cgroup.refaults.file", FIGURE_GROWTH, offsetof(struct phase_figures, group_refault_bytes)},
	{"cgroup.pressure.cpu.some", FIGURE_SHARE, offsetof(struct phase_figures, group_psi_cpu_some)},
	{"cgroup.pressure.memory.some", FIGURE_SHARE, offsetof(struct phase_figures, group_psi_memory_some)},
	{"cgroup.pressure.io.some", FIGURE_SHARE, offsetof(struct phase_figures, group_psi_io_some)},
};

#define FIGURES (sizeof figures / sizeof *figures)

/* A figure being gathered: over the phases, and over the whole run. */
struct gather {
	struct windows phases, whole;
	struct window whole_item;
};

struct gathering {
	struct gather gathers[FIGURES];
	struct window *items; /* FIGURES times the phases */
	int *figure_of;       /* by series id; -1: none */
	size_t ids;
	size_t phase_count;
	struct series_gathering *series;
};

static bool is_counter(enum figure_kind kind)
{
	return kind == FIGURE_GROWTH || kind == FIGURE_SHARE;
}

static int begin_gathering(struct gathering *g, const struct run *run, struct error *err)
{
	g->phase_count = run->phases.count;
	g->items = calloc(FIGURES * g->phase_count + 1, sizeof *g->items);
	if (!g->items)
		return error_set(err, "out of memory for the figures of %zu phases", g->phase_count);
	for (size_t f = 0; f < FIGURES; f++) {
		struct window *items = g->items + f * g->phase_count;
		enum series_kind kind = is_counter(figures[f].kind) ? SERIES_COUNTER : SERIES_GAUGE;

		for (size_t i = 0; i < g->phase_count; i++) {
			items[i].start = run->phases.items[i].start;
			items[i].end = run->phases.items[i].end;
		}
		g->gathers[f].whole_item = (struct window){.start = run->start, .end = run->end};
		/* The first reading was a moment before the start, when nothing had been used yet, and the last one a
		 * moment after the end, when nothing more was. */
		if (figures[f].kind == FIGURE_GROWTH) {
			g->gathers[f].whole_item.start -= NS_PER_S;
			g->gathers[f].whole_item.end += NS_PER_S;
			items[0].start -= NS_PER_S;
			items[g->phase_count - 1].end += NS_PER_S;
		}
		windows_begin(&g->gathers[f].phases, kind, items, g->phase_count);
		windows_begin(&g->gathers[f].whole, kind, &g->gathers[f].whole_item, 1);
	}
	return 0;
}

static int note_series(struct gathering *g, const struct wire_series *series, uint32_t used, struct error *err)
{
	const char *name = (const char *)(series + 1);

	if (series->id != g->ids || used <= sizeof *series || !memchr(name, '\0', used - sizeof *series))
		return error_set(err, "a series is defined out of turn");
	if ((g->ids & (g->ids - 1)) == 0) {
		int *figure_of = reallocarray(g->figure_of, g->ids ? 2 * g->ids : 1, sizeof *figure_of);

		if (!figure_of)
			return error_set(err, "out of memory for %zu series", g->ids);
		g->figure_of = figure_of;
	}
	g->figure_of[g->ids] = -1;
	for (size_t f = 0; f < FIGURES; f++)
		if (strcmp(figures[f].series, name) == 0)
			g->figure_of[g->ids] = (int)f;
	g->ids++;
	return series_gather_define(g->series, series, used, err);
}

/* In windows_point the level of the last point holds; a look's does not, so it is added as one of no length. */
static void note_look(struct gather *to, int64_t t, double value)
{
	struct windows *each[] = {&to->phases, &to->whole};

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < each[k]->count; i++) {
			struct window *w = &each[k]->items[i];

			if (t < w->start || t > w->end)
				continue;
			w->area += value;
			w->width += 1;
		}
}

static void note_points(struct gathering *g, const struct wire_points *points, uint32_t used)
{
	const struct wire_point *p = (const struct wire_point *)(points + 1);

	for (size_t n = (used - sizeof *points) / sizeof *p; n > 0; n--, p++) {
		int f = p->id < g->ids ? g->figure_of[p->id] : -1;

		if (!isfinite(p->value)) /* damage */
			continue;
		series_gather_point(g->series, p->id, points->t, p->value);
		if (f < 0)
			continue;
		if (figures[f].kind == FIGURE_LOOKS) {
			note_look(&g->gathers[f], points->t, p->value);
			continue;
		}
		windows_point(&g->gathers[f].phases, points->t, p->value);
		windows_point(&g->gathers[f].whole, points->t, p->value);
	}
}

static void put_figure(struct phase_figures *to, size_t f, const struct window *w)
{
	double *field = (double *)((char *)to + figures[f].offset);

	switch (figures[f].kind) {
	case FIGURE_GROWTH:
		*field = w->growth;
		break;
	case FIGURE_SHARE:
		*field = w->end > w->start ? w->growth / ((double)(w->end - w->start) / 1e9) : NAN;
		break;
	case FIGURE_MAX:
		*field = w->max;
		break;
	case FIGURE_MIN:
		*field = w->min;
		break;
	case FIGURE_MEAN:
		*field = w->mean;
		break;
	case FIGURE_LOOKS:
		*field = w->width > 0 ? w->area / w->width : NAN;
		break;
	}
}

static void end_gathering(struct gathering *g, struct run *run)
{
	for (size_t f = 0; f < FIGURES; f++) {
		windows_end(&g->gathers[f].phases, run->end);
		windows_end(&g->gathers[f].whole, run->end);
		for (size_t i = 0; i < g->phase_count; i++)
			put_figure(&run->figures[i], f, &g->items[f * g->phase_count + i]);
		put_figure(&run->whole, f, &g->gathers[f].whole_item);
	}
	series_gather_end(g->series);
}

static int read_points(struct gathering *g, struct segment_reader *reader, struct error *err)
{
	struct segment_record record;
	const void *payload;
	int got;

	while ((got = segment_reader_next(reader, &record, &payload, err)) > 0) {
		if (record.type == WIRE_SERIES && record.used > sizeof(struct wire_series)) {
			if (note_series(g, payload, record.used, err) < 0)
				return -1;
		} else if (record.type == WIRE_POINTS && record.used >= sizeof(struct wire_points)) {
			note_points(g, payload, record.used);
		}
	}
	return got;
}

int figures_read(struct segment_reader *reader, struct run *run, struct error *err)
{
	struct gathering g = {0};
	int failed;

	run->figures = calloc(run->phases.count + 1, sizeof *run->figures);
	if (!run->figures)
		return error_set(err, "out of memory for the figures of %zu phases", run->phases.count);
	for (size_t i = 0; i < run->phases.count; i++)
		run->figures[i] = phase_figures_none;
	failed = begin_gathering(&g, run, err) < 0 || series_gather_begin(run, &g.series, err) < 0 ? -1 : 0;
	if (!failed) {
		failed = read_points(&g, reader, err);
		/* What was read before the damage is good. */
		end_gathering(&g, run);
	}
	series_gather_free(g.series);
	free(g.items);
	free(g.figure_of);
	return failed;
}
