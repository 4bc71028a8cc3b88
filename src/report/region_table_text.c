/* The table of regions for a terminal: a line on the whole, the table, and then in sentences what is not right. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/region_columns.h"
#include "report/region_reports.h"

#define NAME_COLUMNS 60 /* of a region's name */
#define NOTE_COLUMNS 2000
#define PLAIN_WIDTH 100 /* of sentences where it is no terminal */

/* One unit to a column, so that figures can be compared down it: that of its largest. None where nothing is known. */
struct unit {
	const char *name;
	double ns;
};

static struct unit unit_of(const struct region_table *t, const struct region_column_desc *column)
{
	static const struct unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	double largest = NAN;
	size_t i = 0;

	for (size_t k = 0; k < t->count; k++) {
		double value = fabs(column->value(&t->rows[k]));

		largest = fmax(largest, value);
	}
	if (isnan(largest))
		return (struct unit){NULL, 1};
	while (i + 1 < sizeof units / sizeof *units && largest < units[i].ns)
		i++;
	return units[i];
}

/* Three digits after the point in a column's unit, but no more than a ns has: what is smaller still is shown in its
 * own unit, so that a short call beside a long one is not 0.000. */
static void time_cell(struct table *out, double ns, struct unit unit, bool about)
{
	const char *sign = about ? "~" : "";

	if (isnan(ns))
		table_cell(out, "-");
	else if (ns != 0 && fabs(ns) < unit.ns / 100)
		table_cell(out, "%s%s", sign, units_seconds(ns / 1e9).text);
	else
		table_cell(out, "%s%.*f", sign, unit.ns > 1 ? 3 : 0, ns / unit.ns);
}

static void value_cell(struct table *out, const struct region_row *row, const struct region_column_desc *column,
		       struct unit unit)
{
	double value = column->value(row);

	if (strcmp(column->name, "ranks") == 0 && row->rank < 0)
		table_cell(out, "%" PRIu64 "/%" PRIu64, row->ranks_with, row->ranks_selected);
	else if (column->kind == REGION_COLUMN_TIME)
		time_cell(out, value, unit, row->approximate && column->bucketed);
	else if (isnan(value))
		table_cell(out, "-");
	else if (column->kind == REGION_COLUMN_COUNT)
		table_cell(out, "%s", units_count(value).text);
	else
		table_cell(out, "%s", units_percent(column->kind == REGION_COLUMN_SHARE ? value : value / 100).text);
}

static void name_cell(struct table *out, const char *name)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	utf8_append_line(&shown, name, NAME_COLUMNS);
	table_cell(out, "%s", shown.text);
}

static bool has_threads(const struct region_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].thread >= 0)
			return true;
	return false;
}

/* "0 'worker'": the index in the rank's table, and the name where it has one. */
static void thread_cell(struct table *out, const struct regions *r, const struct region_row *row)
{
	CLEANUP(buf_release) struct buf name;

	buf_init(&name);
	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].rank == row->rank && r->threads[i].index == row->thread)
			utf8_append_line(&name, r->threads[i].name, NAME_COLUMNS);
	if (row->thread < 0)
		table_cell(out, "-");
	else
		table_cell(out, "%" PRId64 "%s%s", row->thread, name.length ? " " : "", name.text);
}

static void fill_table(const struct region_table *t, const struct regions *r,
		       const struct region_column_desc *const *columns, size_t count, struct table *out)
{
	bool ranks = t->count > 0 && t->rows[0].rank >= 0, threads = has_threads(t);
	struct unit units[TABLE_COLUMNS_MAX];

	table_cell(out, "region");
	if (ranks)
		table_cell(out, "rank");
	if (threads)
		table_cell(out, "thread");
	for (size_t k = 0; k < count; k++) {
		units[k] = unit_of(t, columns[k]);
		if (columns[k]->kind == REGION_COLUMN_TIME && units[k].name)
			table_cell(out, "%s [%s]", columns[k]->name, units[k].name);
		else
			table_cell(out, "%s", columns[k]->name);
	}
	for (size_t i = 0; i < t->count; i++) {
		name_cell(out, t->rows[i].name);
		if (ranks)
			table_cell(out, "%" PRId64, t->rows[i].rank);
		if (threads)
			thread_cell(out, r, &t->rows[i]);
		for (size_t k = 0; k < count; k++)
			value_cell(out, &t->rows[i], columns[k], units[k]);
	}
}

static void put_sentence(struct buf *out, const char *text, const struct region_report_options *o)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	utf8_append_line(&shown, text, NOTE_COLUMNS);
	wrap_append(out, shown.text, 0, 2, o->width ? o->width : PLAIN_WIDTH);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Rows of ranks and threads repeat the names. 0 when out of memory. */
static size_t count_names(const struct region_table *t)
{
	CLEANUP(free_cleanup) const char **names = calloc(t->count + 1, sizeof *names);
	size_t count = 0;

	for (size_t i = 0; names && i < t->count; i++)
		names[i] = t->rows[i].name;
	if (names)
		qsort(names, t->count, sizeof *names, by_text);
	for (size_t i = 0; names && i < t->count; i++)
		count += i == 0 || strcmp(names[i - 1], names[i]) != 0;
	return count;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void put_summary(const struct region_table *t, struct buf *out)
{
	size_t names = count_names(t);
	uint64_t calls = 0;

	for (size_t i = 0; i < t->count; i++)
		calls += t->rows[i].calls;
	utf8_append_line(out, t->path, NOTE_COLUMNS);
	buf_printf(out, ": %s region%s, ", units_count((double)names).text, plural(names));
	buf_printf(out, "%s call%s on %s rank%s", units_count((double)calls).text, plural(calls),
		   units_count((double)t->ranks_selected).text, plural(t->ranks_selected));
	if (t->wall > 0)
		buf_printf(out, " in %s", units_seconds((double)t->wall / 1e9).text);
	buf_putc(out, '\n');
}

#define DROPPED_NAMED 5u /* regions that are named in the sentence on dropped calls */

/* Loud, and before the figures: these are not in them. */
static void put_dropped(const struct region_table *t, const struct region_report_options *o, struct buf *out)
{
	CLEANUP(buf_release) struct buf text, names;
	size_t named = 0;
	double dropped = 0;

	buf_init(&text);
	buf_init(&names);
	for (size_t i = 0; i < t->count; i++) {
		const struct region_row *row = &t->rows[i];

		dropped += (double)row->dropped;
		if (row->dropped == 0 || named++ >= DROPPED_NAMED)
			continue;
		buf_printf(&names, "%s'", names.length ? ", " : "");
		utf8_append_line(&names, row->name, NAME_COLUMNS);
		buf_printf(&names, "' %s", units_count((double)row->dropped).text);
	}
	if (named == 0)
		return;
	buf_printf(&text, "WARNING: %s call%s found no room (ASSAY_LIMIT, a full disk) and %s in none of these figures",
		   units_count(dropped).text, dropped == 1 ? "" : "s", dropped == 1 ? "is" : "are");
	buf_printf(&text, ": %s%s", names.text, named > DROPPED_NAMED ? ", ..." : "");
	buf_puts(out, o->colour ? "\033[1;31m" : "");
	put_sentence(out, text.text, o);
	buf_puts(out, o->colour ? "\033[0m" : "");
}

/* One sentence for a kind of wrong use, over all ranks. */
static void put_trouble(const struct regions *r, size_t first, const struct region_report_options *o, struct buf *out)
{
	const struct region_trouble_count *of = &r->troubles[first];
	CLEANUP(buf_release) struct buf text;
	uint64_t count = 0;

	buf_init(&text);
	for (size_t i = 0; i < r->trouble_count; i++) {
		if (r->troubles[i].kind != of->kind)
			continue;
		if (i < first)
			return;
		count += r->troubles[i].count;
		if (!*of->example)
			of = &r->troubles[i];
	}
	if (count == 0)
		return;
	buf_printf(&text, "calls %s: %s", region_trouble_text(of->kind), units_count((double)count).text);
	if (*of->example) {
		buf_puts(&text, ", such as of '");
		utf8_append_line(&text, of->example, NAME_COLUMNS);
		buf_printf(&text, "' on rank %" PRIu32, of->rank);
	}
	put_sentence(out, text.text, o);
}

static void put_notes(const struct region_table *t, const struct regions *r, const struct region_report_options *o,
		      struct buf *out)
{
	size_t before = out->length;
	uint64_t untimed = 0;
	bool approximate = false;

	buf_putc(out, '\n');
	for (size_t i = 0; i < t->count; i++) {
		untimed += t->rows[i].calls - t->rows[i].timed;
		approximate |= t->rows[i].approximate;
	}
	if (approximate)
		put_sentence(out,
			     "~ comes from a histogram, within 1/16: these calls were only added up (mode aggregate)",
			     o);
	if (untimed) {
		CLEANUP(buf_release) struct buf text;

		buf_init(&text);
		buf_printf(&text, "calls that were only counted, without their time: %s",
			   units_count((double)untimed).text);
		put_sentence(out, text.text, o);
	}
	for (size_t i = 0; i < r->trouble_count; i++)
		put_trouble(r, i, o, out);
	for (size_t i = 0; i < r->note_count; i++)
		put_sentence(out, r->notes[i], o);
	for (size_t i = 0; i < t->note_count; i++)
		put_sentence(out, t->notes[i], o);
	if (out->length == before + 1)
		out->length = before;
}

int region_table_text(const struct region_table *t, const struct regions *r, const struct region_report_options *o,
		      FILE *out, struct error *err)
{
	const struct region_column_desc *columns[TABLE_COLUMNS_MAX];
	size_t before = 1 + (size_t)(t->count > 0 && t->rows[0].rank >= 0) + (size_t)has_threads(t);
	size_t count = region_columns_choose(o->columns, t->has_gpu, columns, TABLE_COLUMNS_MAX - before);
	char align[TABLE_COLUMNS_MAX + 1] = "lrl";
	CLEANUP(table_release) struct table table;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	table_init(&table, before + count);
	memset(align + before, 'r', count);
	fill_table(t, r, columns, count, &table);
	put_summary(t, &text);
	put_dropped(t, o, &text);
	if (t->count) {
		buf_putc(&text, '\n');
		table_print(&table, align, "", &text);
	}
	put_notes(t, r, o, &text);
	if (table.failed || text.failed)
		return error_set(err, "out of memory for a table of %zu regions", t->count);
	if (fwrite(text.text, 1, text.length, out) != text.length)
		return error_set(err, "the table cannot be written");
	return 0;
}
