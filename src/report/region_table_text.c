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

/* One unit to a column, so that figures can be compared down it: that of its largest, or a smaller one where some would
 * be 0.000 in it, unless the largest became too long to be read. `origin` is what moments count from. The name is NULL
 * where nothing is known. */
struct unit {
	const char *name;
	double ns, origin;
};

static bool is_time(const struct region_column_desc *column)
{
	return column->kind == REGION_COLUMN_TIME || column->kind == REGION_COLUMN_MOMENT;
}

#define LONGEST 1e7 /* units that a column's largest figure stays below, where its unit is for the sake of the least */

static struct unit unit_of(const struct region_table *t, const struct region_column_desc *column)
{
	static const struct unit units[] = {{"s", 1e9, 0}, {"ms", 1e6, 0}, {"us", 1e3, 0}, {"ns", 1, 0}};
	const size_t last = sizeof units / sizeof *units - 1;
	bool moments = column->kind == REGION_COLUMN_MOMENT;
	double origin = moments ? INFINITY : 0, largest = NAN, least = INFINITY;
	struct unit unit;
	size_t i = 0;

	for (size_t k = 0; moments && k < t->count; k++)
		if (t->rows[k].timed)
			origin = fmin(origin, (double)t->rows[k].first_start);
	for (size_t k = 0; k < t->count; k++) {
		double value = fabs(column->value(&t->rows[k]) - origin);

		largest = fmax(largest, value);
		if (value > 0)
			least = fmin(least, value);
	}
	if (isnan(largest))
		return (struct unit){NULL, 1, 0};
	while (i < last && largest < units[i].ns)
		i++;
	while (i < last && least < units[i].ns / 1000 && largest < units[i + 1].ns * LONGEST)
		i++;
	unit = units[i];
	unit.origin = origin;
	return unit;
}

/* Three digits after the point, but no more than a ns has. What is 0.000 in the column's unit all the same is shown in
 * its own. */
static void time_cell(struct table *out, double ns, struct unit unit, bool about)
{
	const char *sign = about ? "~" : "";
	double of = fabs(ns) / unit.ns, parts = unit.ns > 1 ? 1000 : 1;
	double rounded = round(of * parts), whole = floor(rounded / parts);

	if (isnan(ns))
		table_cell(out, "-");
	else if (ns == 0)
		table_cell(out, "%s0", sign);
	else if (of < 0.001)
		table_cell(out, "%s%s", sign, units_seconds(ns / 1e9).text);
	else if (unit.ns > 1)
		table_cell(out, "%s%s%s.%03.0f", sign, ns < 0 ? "-" : "", units_count(whole).text,
			   rounded - whole * parts);
	else
		table_cell(out, "%s%s%s", sign, ns < 0 ? "-" : "", units_count(whole).text);
}

static void value_cell(struct table *out, const struct region_row *row, const struct region_column_desc *column,
		       struct unit unit)
{
	double value = column->value(row);

	if (strcmp(column->name, "ranks") == 0 && row->rank < 0)
		table_cell(out, "%" PRIu64 "/%" PRIu64, row->ranks_with, row->ranks_selected);
	else if (is_time(column))
		time_cell(out, value - unit.origin, unit, column->approximate && column->approximate(row));
	else if (isnan(value))
		table_cell(out, "-");
	else if (column->kind == REGION_COLUMN_COUNT)
		table_cell(out, "%s", units_count(value).text);
	else if (value == 0)
		table_cell(out, "0%%");
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

static int by_thread(const void *a, const void *b)
{
	const struct region_thread_row *x = *(const struct region_thread_row *const *)a;
	const struct region_thread_row *y = *(const struct region_thread_row *const *)b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* For thread_cell: there may be as many threads as rows. NULL when out of memory: they then have no names. */
static const struct region_thread_row **sort_threads(const struct regions *r)
{
	const struct region_thread_row **threads = calloc(r->thread_count + 1, sizeof *threads);

	for (size_t i = 0; threads && i < r->thread_count; i++)
		threads[i] = &r->threads[i];
	if (threads)
		qsort(threads, r->thread_count, sizeof *threads, by_thread);
	return threads;
}

/* "0 'worker'": the index in the rank's table, and the name where it has one. */
static void thread_cell(struct table *out, const struct region_thread_row *const *threads, size_t count,
			const struct region_row *row)
{
	const struct region_thread_row key = {.rank = (uint32_t)row->rank, .index = row->thread}, *wanted = &key;
	const struct region_thread_row *const *found = NULL;
	CLEANUP(buf_release) struct buf name;

	buf_init(&name);
	if (threads && row->thread >= 0)
		found = bsearch(&wanted, threads, count, sizeof *threads, by_thread);
	if (found)
		utf8_append_line(&name, (*found)->name, NAME_COLUMNS);
	if (row->thread < 0)
		table_cell(out, "-");
	else
		table_cell(out, "%" PRId64 "%s%s", row->thread, name.length ? " " : "", name.text);
}

static void fill_table(const struct region_table *t, const struct regions *r,
		       const struct region_column_desc *const *columns, size_t count, struct table *out)
{
	bool ranks = t->count > 0 && t->rows[0].rank >= 0, threads = has_threads(t);
	CLEANUP(free_cleanup) const struct region_thread_row **by_index = threads ? sort_threads(r) : NULL;
	struct unit units[TABLE_COLUMNS_MAX];

	table_cell(out, "region");
	if (ranks)
		table_cell(out, "rank");
	if (threads)
		table_cell(out, "thread");
	for (size_t k = 0; k < count; k++) {
		units[k] = unit_of(t, columns[k]);
		if (units[k].name && is_time(columns[k]))
			table_cell(out, "%s [%s]", columns[k]->name, units[k].name);
		else
			table_cell(out, "%s", columns[k]->name);
	}
	for (size_t i = 0; i < t->count; i++) {
		name_cell(out, t->rows[i].name);
		if (ranks)
			table_cell(out, "%" PRId64, t->rows[i].rank);
		if (threads)
			thread_cell(out, by_index, r->thread_count, &t->rows[i]);
		for (size_t k = 0; k < count; k++)
			value_cell(out, &t->rows[i], columns[k], units[k]);
	}
}

/* Whether it has anything to say of these rows. How one rank compares with others is nothing to say. */
static bool says_something(const struct region_table *t, const struct region_column_desc *column)
{
	bool of_ranks = strcmp(column->name, "ranks") == 0 || strcmp(column->name, "imbalance") == 0;

	if (of_ranks && (t->ranks_selected < 2 || (t->count > 0 && t->rows[0].rank >= 0)))
		return false;
	for (size_t i = 0; i < t->count; i++)
		if (!isnan(column->value(&t->rows[i])))
			return true;
	return false;
}

static size_t leave_out_silent(const struct region_table *t, const struct region_column_desc **columns, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (says_something(t, columns[i]))
			columns[kept++] = columns[i];
	return kept;
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
		approximate |= t->rows[i].approximate || t->rows[i].std_approximate;
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
	size_t shown = o->columns ? count : leave_out_silent(t, columns, count);
	char align[TABLE_COLUMNS_MAX + 1] = "lrl";
	CLEANUP(table_release) struct table table;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	table_init(&table, before + shown);
	memset(align + before, 'r', shown);
	fill_table(t, r, columns, shown, &table);
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
