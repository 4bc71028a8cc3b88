#include "base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"

void table_init(struct table *t, size_t columns)
{
	assert(columns > 0 && columns <= TABLE_COLUMNS_MAX);
	*t = (struct table){.columns = columns};
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	table_init(t, t->columns);
}

/* Valid UTF-8 without control characters, the C1 ones included: a blank for each. NULL when out of memory. */
static char *cleaned(const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, strlen(text));
	for (size_t i = 0; i < clean.length; i++) {
		unsigned char *c = (unsigned char *)clean.text + i;

		if (c[0] < ' ' || c[0] == 0x7f)
			c[0] = ' ';
		else if (c[0] == 0xc2 && c[1] < 0xa0)
			c[0] = c[1] = ' ';
	}
	return buf_detach(&clean);
}

/* Takes ownership of the text. */
static void add_cell(struct table *t, char *text)
{
	size_t column = t->count % t->columns, width = wrap_width(text);

	if (width > t->widths[column])
		t->widths[column] = width;
	t->cells[t->count++] = text;
}

void table_cell(struct table *t, const char *format, ...)
{
	va_list args;
	char *text = NULL, *clean;

	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 32;
		char **cells = reallocarray(t->cells, room, sizeof *cells);

		if (!cells) {
			t->failed = true;
			return;
		}
		t->cells = cells;
		t->room = room;
	}
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	clean = text ? cleaned(text) : NULL;
	free(text);
	if (clean)
		add_cell(t, clean);
	else
		t->failed = true;
}

static void pad(struct buf *out, size_t count)
{
	while (count-- > 0)
		buf_putc(out, ' ');
}

/* Without the blanks that an empty last cell leaves. */
static void end_line(struct buf *out)
{
	while (out->length > 0 && out->text[out->length - 1] == ' ')
		out->length--;
	buf_putc(out, '\n');
}

#define FOLDED_LEAST 30 /* columns for the last cell, however wide the others are */

void table_print(const struct table *t, const char *align, const char *indent, struct buf *out)
{
	size_t before = strlen(indent), fold;

	for (size_t i = 0; i + 1 < t->columns; i++)
		before += t->widths[i] + 2;
	fold = t->fold > before + FOLDED_LEAST ? t->fold : before + FOLDED_LEAST;
	for (size_t i = 0; i < t->count; i++) {
		size_t column = i % t->columns, gap = t->widths[column] - wrap_width(t->cells[i]);
		bool last = column + 1 == t->columns;

		buf_puts(out, column ? "  " : indent);
		if (last && t->fold) {
			wrap_append(out, t->cells[i], before, before, fold);
			continue;
		}
		if (align[column] == 'r')
			pad(out, gap);
		buf_puts(out, t->cells[i]);
		if (last)
			end_line(out);
		else if (align[column] != 'r')
			pad(out, gap);
	}
}

void table_print_markdown(const struct table *t, const char *align, struct buf *out)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t column = i % t->columns;

		buf_puts(out, column ? " | " : "| ");
		for (const char *c = t->cells[i]; *c; c++) {
			if (strchr("\\`*_<>|[]", *c))
				buf_putc(out, '\\');
			buf_putc(out, *c);
		}
		if (column + 1 < t->columns)
			continue;
		buf_puts(out, " |\n");
		if (i + 1 == t->columns) {
			buf_putc(out, '|');
			for (size_t k = 0; k < t->columns; k++)
				buf_puts(out, align[k] == 'r' ? "---:|" : "---|");
			buf_putc(out, '\n');
		}
	}
}
