#include "graph/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"

#define GAP "  "
#define GAP_COLUMNS 2
#define DOTS "..."
#define DOTS_COLUMNS 3
#define NAME_LEAST 16 /* columns of a name that a file may not take */
#define DIM "\033[2m"
#define PLAIN "\033[0m"

struct units_text graph_words_cost(const struct graph *g, double cost)
{
	return g->per_second > 0 ? units_seconds(cost * g->per_second) : units_count(cost);
}

struct units_text graph_words_marked(struct units_text figure, bool estimated)
{
	struct units_text t;

	snprintf(t.text, sizeof t.text, "%s%.30s", estimated ? "~" : "", figure.text);
	return t;
}

struct units_text graph_words_share(double share, bool estimated)
{
	struct units_text t;

	snprintf(t.text, sizeof t.text, "%s%.1f%%", estimated ? "~" : "", 100 * share);
	return t;
}

const char *graph_words_colour(double share, bool colour)
{
	if (!colour)
		return "";
	return share >= 0.5 ? "\033[31m" : share >= 0.2 ? "\033[33m" : share >= 0.05 ? "\033[32m" : "";
}

/* How many bytes the first `columns` characters have. */
static size_t front_of(const char *text, size_t length, size_t columns)
{
	size_t at = 0;

	for (; columns && at < length; columns--)
		at += utf8_character(text + at, length - at);
	return at;
}

/* Valid UTF-8, shortened in the middle. */
static void put_shortened(struct buf *out, const char *text, size_t columns)
{
	size_t length = strlen(text), width = wrap_width(text), kept, front;

	if (width <= columns || columns <= DOTS_COLUMNS) {
		buf_append(out, text, front_of(text, length, columns));
		return;
	}
	kept = columns - DOTS_COLUMNS;
	front = (kept + 1) / 2;
	buf_append(out, text, front_of(text, length, front));
	buf_puts(out, DOTS);
	buf_puts(out, text + front_of(text, length, width - (kept - front)));
}

/* "folder/prog.py:9"; nothing where the file is not known (or is what Python calls built in). */
static void put_place(struct buf *out, const struct graph_node *n)
{
	if (*n->file && strcmp(n->file, "~") != 0 && strcmp(n->file, "???") != 0) {
		utf8_append_line(out, n->file, SIZE_MAX);
		if (n->line > 0)
			buf_printf(out, ":%" PRId64, n->line);
	} else if (n->module) {
		utf8_append_line(out, n->module, SIZE_MAX);
	}
}

void graph_words_function(struct buf *out, const struct graph_node *n, size_t columns, bool colour)
{
	CLEANUP(buf_release) struct buf name;
	CLEANUP(buf_release) struct buf place;
	const char *shown;
	size_t name_width, place_width;

	buf_init(&name);
	buf_init(&place);
	utf8_append_line(&name, *n->name ? n->name : "(no name)", SIZE_MAX);
	put_place(&place, n);
	out->failed |= name.failed || place.failed;
	shown = place.text;
	name_width = wrap_width(name.text);
	place_width = wrap_width(shown);
	if (place_width && columns != SIZE_MAX && name_width + GAP_COLUMNS + place_width > columns) {
		const char *slash = strrchr(shown, '/');

		shown = slash ? slash + 1 : shown;
		place_width = wrap_width(shown);
		if ((name_width < NAME_LEAST ? name_width : NAME_LEAST) + GAP_COLUMNS + place_width > columns)
			place_width = 0;
	}
	if (place_width && columns != SIZE_MAX)
		columns -= GAP_COLUMNS + place_width;
	put_shortened(out, name.text, columns);
	if (place_width)
		buf_printf(out, GAP "%s%s%s", colour ? DIM : "", shown, colour ? PLAIN : "");
}
