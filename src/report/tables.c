#include "report/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "judge/phase_facts.h"

static void head(struct table *t, const char *const *names, size_t count)
{
	table_init(t, count);
	for (size_t i = 0; i < count; i++)
		table_cell(t, "%s", names[i]);
}

#define HEAD(t, ...)                                                                                                   \
	head(t, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static double seconds_of(const struct phase *p)
{
	return (double)(p->end - p->start) / 1e9;
}

static void number_cell(struct table *t, double value, int digits)
{
	if (isnan(value))
		table_cell(t, "n/a");
	else
		table_cell(t, "%.*f", digits, value);
}

static void phase_cells(struct table *t, const struct phase *p, const struct phase_figures *f)
{
	double lasted = seconds_of(p);

	if (strcmp(p->name, phase_group_name(p->group)) == 0 || p->group == GROUP_OTHER)
		table_cell(t, "%s", p->name);
	else
		table_cell(t, "%s (%s)", p->name, phase_group_name(p->group));
	table_cell(t, "%s", units_seconds(lasted).text);
	table_cell(t, "%s", units_seconds(f->cpu_s).text);
	number_cell(t, lasted > 0 ? f->cpu_s / lasted : NAN, 2);
	table_cell(t, "%s", units_bytes(f->rss_peak).text);
	table_cell(t, "%s", units_bytes(f->read_bytes).text);
	table_cell(t, "%s", units_bytes(f->write_bytes).text);
	table_cell(t, "%s", units_count(round(f->major_faults)).text);
}

size_t tables_phases(const struct run *run, size_t most, struct table *t, const char **ret_align)
{
	size_t count = run->figures ? run->phases.count : 0, shown = count <= most ? count : most - 1;

	HEAD(t, "phase", "time", "CPU", "cores", "RSS peak", "read", "written", "major faults");
	*ret_align = "lrrrrrrr";
	for (size_t i = 0; i < shown; i++)
		phase_cells(t, &run->phases.items[i], &run->figures[i]);
	return count - shown;
}

/* Phases that share a row: same name, same limit; shown by the longest of them. */
struct row {
	const struct limit *limit;
	size_t count;
	double seconds, longest;
};

static bool same_row(const struct run *run, const struct limit *a, const struct limit *b)
{
	return a->kind == b->kind && a->detail == b->detail &&
	       strcmp(run->phases.items[a->phase].name, run->phases.items[b->phase].name) == 0;
}

#define SHORT_S 0.1 /* shorter phases are not judged, so they have no row */
#define ROWS_MAX 64

/* In the order of time of their first phase. Of more than ROWS_MAX kinds the later ones are left out. */
static size_t find_rows(const struct run *run, struct row *rows, size_t *ret_left_out)
{
	size_t count = 0;

	*ret_left_out = 0;
	for (size_t i = 0; i < run->limit_count; i++) {
		const struct limit *l = &run->limits[i];
		double lasted = seconds_of(&run->phases.items[l->phase]);
		size_t at = 0;

		if (lasted < SHORT_S)
			continue;
		while (at < count && !same_row(run, rows[at].limit, l))
			at++;
		if (at == ROWS_MAX) {
			++*ret_left_out;
			continue;
		}
		if (at == count)
			rows[count++] = (struct row){.limit = l};
		rows[at].count++;
		rows[at].seconds += lasted;
		if (lasted > rows[at].longest) {
			rows[at].longest = lasted;
			rows[at].limit = l;
		}
	}
	return count;
}

/* Whether a row is one of the `most` that took the longest. */
static bool among_longest(const struct row *rows, size_t count, size_t at, size_t most)
{
	size_t longer = 0;

	for (size_t i = 0; i < count; i++)
		longer += rows[i].seconds > rows[at].seconds || (rows[i].seconds == rows[at].seconds && i < at);
	return longer < most;
}

static void name_row(struct table *t, const struct run *run, const struct row *row)
{
	const char *name = run->phases.items[row->limit->phase].name;

	if (row->count > 1)
		table_cell(t, "%s x%zu, the longest", name, row->count);
	else
		table_cell(t, "%s", name);
}

size_t tables_limits(const struct run *run, size_t most, struct table *t, const char **ret_align)
{
	struct row rows[ROWS_MAX];
	size_t left_out, count = find_rows(run, rows, &left_out);

	HEAD(t, "phase", "limit", "confidence", "why");
	*ret_align = "llll";
	for (size_t i = 0; i < count; i++) {
		const struct limit *l = rows[i].limit;

		if (!among_longest(rows, count, i, most)) {
			left_out++;
			continue;
		}
		name_row(t, run, &rows[i]);
		if (l->detail)
			table_cell(t, "%s, %s", limit_kind_name(l->kind), l->detail);
		else
			table_cell(t, "%s", limit_kind_name(l->kind));
		table_cell(t, "%s", l->kind == LIMIT_UNKNOWN ? "-" : limit_confidence_name(l->confidence));
		table_cell(t, "%s", l->why);
	}
	return left_out;
}

static void thread_cells(struct table *t, const struct phase_facts *p)
{
	number_cell(t, p->cores, 2);
	table_cell(t, "%s", *p->busiest_name ? p->busiest_name : "-");
	table_cell(t, "%s", units_percent(fmin(1, p->busiest)).text);
	table_cell(t, "%s", units_count(p->f->threads_max).text);
	table_cell(t, "%s", units_percent(p->wait_share).text);
	number_cell(t, p->others, 2);
	table_cell(t, "%s", isnan(p->throttled) ? "-" : units_percent(p->throttled).text);
}

#define MOST_CPU 0.2 /* of the phase's */

/* The process with the most CPU time in the phase. Only those that lived for a second are known, from then on. */
static void process_cell(struct table *t, const struct phase_facts *p)
{
	const struct run_series *most = NULL;

	for (size_t i = 0; i < p->run->series_count; i++) {
		const struct run_series *s = &p->run->series[i];

		if (*run_series_process(p->run, s) && s->counter &&
		    s->phases[p->index].growth > (most ? most->phases[p->index].growth : 0))
			most = s;
	}
	if (most && most->phases[p->index].growth >= MOST_CPU * p->f->cpu_s)
		table_cell(t, "%s", run_series_process(p->run, most));
	else
		table_cell(t, "-");
}

size_t tables_threads(const struct run *run, size_t most, struct table *t, const char **ret_align)
{
	struct row rows[ROWS_MAX];
	size_t left_out, count = find_rows(run, rows, &left_out);
	bool several = run->whole.processes_max > 1;

	if (several)
		HEAD(t, "phase", "cores", "busiest thread", "its share", "threads", "waiting", "others", "throttled",
		     "most CPU by");
	else
		HEAD(t, "phase", "cores", "busiest thread", "its share", "threads", "waiting", "others",
		     "throttled");
	*ret_align = several ? "lrlrrrrrl" : "lrlrrrrr";
	for (size_t i = 0; i < count; i++) {
		struct phase_facts p;

		if (!among_longest(rows, count, i, most)) {
			left_out++;
			continue;
		}
		phase_facts_find(run, rows[i].limit->phase, &p);
		name_row(t, run, &rows[i]);
		thread_cells(t, &p);
		if (several)
			process_cell(t, &p);
	}
	return left_out;
}

#define REGION_COLUMNS 60

size_t tables_regions(const struct run *run, size_t most, struct table *t, const char **ret_align)
{
	const struct run_regions *r = run->regions;
	size_t shown = !r ? 0 : r->top_count < most ? r->top_count : most;

	HEAD(t, "region", "calls", "total", "exclusive", "per call", "share");
	*ret_align = "lrrrrr";
	for (size_t i = 0; i < shown; i++) {
		const struct run_region *row = &r->top[i];
		CLEANUP(buf_release) struct buf name;

		buf_init(&name);
		utf8_append_line(&name, row->name, REGION_COLUMNS);
		table_cell(t, "%s", name.text);
		table_cell(t, "%s", units_count((double)row->calls).text);
		table_cell(t, "%s", units_seconds(row->total_s).text);
		table_cell(t, "%s", units_seconds(row->exclusive_s).text);
		table_cell(t, "%s", units_seconds(row->mean_s).text);
		table_cell(t, "%s", units_percent(row->share).text);
	}
	return r ? (size_t)r->regions - shown : 0;
}
