#include "report/hotspot_words.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/wrap.h"
#include "judge/shares.h"
#include "model/phase.h"
#include "report/hotspot_notes.h"

#define CONFIDENCE_ALPHA 0.05
#define MODULE_COLUMNS 24
#define NAME_LEAST 22       /* columns for a name, however narrow the terminal is */
#define SERIAL_PART 0.8     /* of a function's CPU time in one thread: what the others did hardly matters */
#define SERIAL_WALL_PCT 5.0 /* of the wall time: less does not hold up anything */
#define SERIAL_ROWS 3
#define SENTENCE_NAME 70
#define LEAST_SHARE 0.02    /* of a thread's time: what is less leads nowhere */
#define LONE_WALL 0.6       /* of the wall time: a thread that was busy for so much of it, and alone, holds it up */

const char *hotspot_words_title(const struct hotspot_group *g)
{
	return g->phase_names == 1 && strcmp(g->name, phase_group_name(GROUP_OTHER)) == 0 ? g->phases : g->name;
}

/* Half the interval, in points of percent. */
static double points_of(const struct hotspot_group *g, double share)
{
	struct share_interval i = shares_interval(share, g->effective, shares_z(CONFIDENCE_ALPHA));

	return 100 * fmax(i.high - share, share - i.low);
}

static void name_cell(struct table *t, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	hotspot_words_name(&text, name, columns);
	table_cell(t, "%s", text.text);
}

static void head(struct table *t, const char *what, bool modules)
{
	table_cell(t, "share");
	table_cell(t, "±");
	table_cell(t, "CPU");
	table_cell(t, "threads");
	table_cell(t, "of wall");
	table_cell(t, "%s", what);
	if (modules)
		table_cell(t, "module");
}

static void figure_cells(struct table *t, const struct hotspot_group *g, const struct hotspot_row *row)
{
	table_cell(t, "%.1f%%", 100 * row->share);
	if (g->effective < SHARES_LEAST)
		table_cell(t, "rough");
	else
		table_cell(t, "%.1f", points_of(g, row->share));
	table_cell(t, "%s", units_seconds(row->cpu_s).text);
	table_cell(t, "%zu", row->threads);
	if (isnan(row->pct_of_wall_on_busiest_thread))
		table_cell(t, "n/a");
	else
		table_cell(t, "%.1f%%", row->pct_of_wall_on_busiest_thread);
}

/* How wide the names may be beside modules of that width. */
static size_t name_columns(const struct table *t, size_t module_width, size_t columns)
{
	size_t used = 2;

	for (size_t i = 0; i + (module_width ? 2 : 1) < t->columns; i++)
		used += t->widths[i] + 2;
	used += module_width ? module_width + 2 : 0;
	return columns > used + NAME_LEAST ? columns - used : NAME_LEAST;
}

/* The widths of the cells of figures, which are known before the names are cut: from a table of those alone. */
static size_t room_for_names(const struct hotspot_group *g, const struct hotspot_rows *rows, size_t shown, bool modules,
			     size_t *ret_module, size_t columns)
{
	CLEANUP(table_release) struct table t;
	size_t module = modules ? strlen("module") : 0, least = columns < 100 ? MODULE_COLUMNS - 8 : MODULE_COLUMNS;

	table_init(&t, modules ? 7 : 6);
	head(&t, "", modules);
	for (size_t i = 0; i < shown; i++) {
		size_t width = modules && rows->items[i].module ? wrap_width(rows->items[i].module) : 0;

		figure_cells(&t, g, &rows->items[i]);
		table_cell(&t, "%s", "");
		if (modules)
			table_cell(&t, "%s", "");
		width = width > least ? least : width;
		module = width > module ? width : module;
	}
	*ret_module = module;
	return name_columns(&t, module, columns);
}

size_t hotspot_words_table(const struct hotspot_group *g, const struct hotspot_rows *rows, const char *what,
			   size_t most, size_t columns, struct table *t, const char **ret_align)
{
	size_t shown = rows->count < most ? rows->count : most, module_width, name_width;
	bool modules = false;

	for (size_t i = 0; i < shown; i++)
		modules |= rows->items[i].module != NULL;
	name_width = columns ? room_for_names(g, rows, shown, modules, &module_width, columns) : SIZE_MAX;
	module_width = columns ? module_width : SIZE_MAX;
	table_init(t, modules ? 7 : 6);
	*ret_align = modules ? "rrrrrll" : "rrrrrl";
	head(t, what, modules);
	for (size_t i = 0; i < shown; i++) {
		figure_cells(t, g, &rows->items[i]);
		name_cell(t, rows->items[i].name, name_width);
		if (modules)
			name_cell(t, rows->items[i].module ? rows->items[i].module : "", module_width);
	}
	return rows->all > shown ? rows->all - shown : 0;
}

static bool is_serial(const struct hotspot_row *row)
{
	return hotspot_row_is_function(row) && row->busiest_thread_s >= SERIAL_PART * row->cpu_s &&
	       row->pct_of_wall_on_busiest_thread >= SERIAL_WALL_PCT;
}

static void say_serial(const struct hotspot_group *g, const struct hotspot_row *row, struct buf *out)
{
	hotspot_words_name(out, row->name, SENTENCE_NAME);
	if (row->module)
		buf_printf(out, " (%s)", row->module);
	buf_printf(out, " kept one thread busy for %s, %.1f%% of the %s of wall time",
		   units_seconds(row->busiest_thread_s).text, row->pct_of_wall_on_busiest_thread,
		   units_seconds(g->wall_s).text);
	if (row->threads == 1)
		buf_puts(out, g->thread_count > 1 ? "; no other thread ran it" : "");
	else
		buf_printf(out, "; %zu other thread%s ran %.0f%% of it", row->threads - 1, row->threads == 2 ? "" : "s",
			   100 * (1 - row->busiest_thread_s / row->cpu_s));
	buf_putc(out, '.');
}

/* One thread was busy most of the time, no other half as much, and not because of the functions that were named. */
static bool has_lone_thread(const struct hotspot_group *g)
{
	const struct hotspot_row *thread = g->busiest_threads.count ? &g->busiest_threads.items[0] : NULL;
	double named_s = 0;

	if (!thread || thread->cpu_s < LONE_WALL * g->wall_s || g->second_s >= thread->cpu_s / 2)
		return false;
	for (size_t i = 0, said = 0; i < g->self.count && said < SERIAL_ROWS; i++) {
		if (!is_serial(&g->self.items[i]))
			continue;
		named_s += g->self.items[i].busiest_tid == thread->busiest_tid ? g->self.items[i].busiest_thread_s : 0;
		said++;
	}
	return named_s < thread->cpu_s / 2;
}

static void say_lone_thread(const struct hotspot_group *g, struct buf *out)
{
	const struct hotspot_row *thread = &g->busiest_threads.items[0];

	buf_puts(out, "one thread (");
	hotspot_words_name(out, *thread->name ? thread->name : "no name", SENTENCE_NAME);
	buf_printf(out, ", %d) was busy %.1f%% of the %s of wall time; its hottest: ", thread->busiest_tid,
		   100 * thread->cpu_s / g->wall_s, units_seconds(g->wall_s).text);
	for (size_t i = 0; i < g->of_busiest.count && (!i || g->of_busiest.items[i].share >= LEAST_SHARE); i++) {
		buf_puts(out, i ? ", " : "");
		hotspot_words_name(out, g->of_busiest.items[i].name, SENTENCE_NAME);
		buf_printf(out, " %.0f%%", 100 * g->of_busiest.items[i].share);
	}
	buf_putc(out, '.');
}

/* Where nothing is serial: what the busiest thread was in, or that the CPU was hardly used. */
static void say_parallel(const struct hotspot_group *g, struct buf *out)
{
	const struct hotspot_row *first = g->self.count ? &g->self.items[0] : NULL;
	double used = 100 * g->cpu_s / g->wall_s;

	if (used < SERIAL_WALL_PCT)
		buf_printf(out, "the CPU was used for %.1f%% of the wall time: what holds it up is something else.",
			   used);
	else if (first && first->threads > 1 && hotspot_row_is_function(first) &&
		 first->pct_of_wall_on_busiest_thread >= SERIAL_WALL_PCT)
		buf_printf(out, "nothing: %zu threads shared the hottest function.", first->threads);
	else
		buf_puts(out, "nothing: no function kept one thread busy for 5% of the wall time, as far as names "
			      "tell.");
}

static void serial_of_group(const struct hotspot_group *g,
			    void (*each)(void *context, const char *group, const char *text), void *context)
{
	CLEANUP(buf_release) struct buf text;
	size_t said = 0;
	bool alone = false;

	buf_init(&text);
	if (g->effective < SHARES_LEAST || isnan(g->wall_s)) {
		if (g->effective < SHARES_LEAST)
			buf_printf(&text, "not to be told: too few samples (%.0f).", ceil(g->effective));
		else
			buf_puts(&text, "not to be told: its wall time is not known.");
		each(context, hotspot_words_title(g), text.text);
		return;
	}
	for (size_t i = 0; i < g->self.count && said < SERIAL_ROWS; i++) {
		if (!is_serial(&g->self.items[i]))
			continue;
		buf_clear(&text);
		say_serial(g, &g->self.items[i], &text);
		each(context, hotspot_words_title(g), text.text);
		said++;
	}
	buf_clear(&text);
	if (has_lone_thread(g)) {
		say_lone_thread(g, &text);
		each(context, hotspot_words_title(g), text.text);
		buf_clear(&text);
		alone = true;
	}
	if (!said && !alone)
		say_parallel(g, &text);
	else if (g->thread_count == 1)
		buf_puts(&text, "one thread ran all of it: whatever it does, nothing else does at the same time.");
	if (text.length)
		each(context, hotspot_words_title(g), text.text);
}

void hotspot_words_serial(const struct hotspots *h, void (*each)(void *context, const char *group, const char *text),
			  void *context)
{
	size_t count = hotspots_section_count(h);

	for (size_t i = 0; i < count; i++) {
		const struct hotspot_group *g = hotspots_section(h, i);

		if (count == 1 || g->effective >= SHARES_LEAST)
			serial_of_group(g, each, context);
	}
}
