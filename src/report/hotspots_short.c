#include "report/hotspots_short.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "model/hotspots.h"
#include "report/hotspot_words.h"

#define ROWS_OF_GROUP 5
#define ROWS_MARKDOWN 20
#define LEAST_SHARE 0.02 /* a row below it says nothing in so short a table */
#define NAME_OUTSIDE 58  /* columns that the figures and the module take beside the name */
#define NAME_LEAST 22
#define MODULE_COLUMNS 20

static const char align[] = "lrrrrll";

static void name_cell(struct table *t, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	hotspot_words_name(&text, name, columns);
	table_cell(t, "%s", text.text);
}

static void put_row(struct table *t, const char *group, const struct hotspot_row *row, size_t columns)
{
	size_t name = columns > NAME_OUTSIDE + NAME_LEAST ? columns - NAME_OUTSIDE : NAME_LEAST;

	table_cell(t, "%s", group);
	table_cell(t, "%.1f%%", 100 * row->share);
	table_cell(t, "%s", units_seconds(row->cpu_s).text);
	table_cell(t, "%zu", row->threads);
	if (isnan(row->pct_of_wall_on_busiest_thread))
		table_cell(t, "n/a");
	else
		table_cell(t, "%.1f%%", row->pct_of_wall_on_busiest_thread);
	name_cell(t, row->name, columns ? name : SIZE_MAX);
	name_cell(t, row->module ? row->module : "", columns ? MODULE_COLUMNS : SIZE_MAX);
}

static void fill(struct table *t, const struct hotspots *h, size_t columns)
{
	static const char *const names[] = {"phase", "share", "CPU", "threads", "of wall", "function", "module"};

	table_init(t, sizeof names / sizeof *names);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		table_cell(t, "%s", names[i]);
	for (size_t i = 0; i < hotspots_section_count(h); i++) {
		const struct hotspot_group *g = hotspots_section(h, i);

		for (size_t k = 0; k < g->self.count && (!k || g->self.items[k].share >= LEAST_SHARE); k++)
			put_row(t, k ? "" : hotspot_words_title(g), &g->self.items[k], columns);
	}
}

void hotspots_short(const struct run *run, bool markdown, size_t columns, struct buf *out)
{
	CLEANUP(hotspots_release) struct hotspots h;
	CLEANUP(table_release) struct table t;
	const struct hotspot_query query = {.top = markdown ? ROWS_MARKDOWN : ROWS_OF_GROUP};
	struct error err;

	hotspots_init(&h);
	table_init(&t, 1);
	if (!run->profile)
		return;
	buf_puts(out, markdown ? "\n## Hot spots\n\n" : "\n  hot spots (assay profile shows all of it):\n");
	if (hotspots_sum(&h, run->profile, &run->phases, &query, &err) < 0) {
		buf_printf(out, "  not summed up: %s\n", err.text);
		return;
	}
	if (!h.group_count) {
		buf_puts(out, markdown ? "No samples.\n" : "  no samples\n");
		return;
	}
	fill(&t, &h, columns);
	if (markdown)
		table_print_markdown(&t, align, out);
	else
		table_print(&t, align, "  ", out);
}
