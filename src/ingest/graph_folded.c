/* Folded stacks, "outermost;...;innermost 12": what flame graphs are made of. The count may be a fraction, or be
 * absent, and then is 1. A name may hold blanks; the format has no escapes. */
#include "ingest/graph_reader.h"

#include <math.h>
#include <string.h>

#include "base/parse.h"

#define UNIT "samples"
#define UNNAMED "(unnamed)"
#define COUNT_DIGITS 400 /* what is longer is no number */
#define LOOKED_AT 50	 /* lines by which a file is known */
#define LOOKED_AT_BYTES ((size_t)64 << 10)

struct folded_line {
	const char *at, *end; /* the stack */
	double count;
	bool counted; /* false: it has no count */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The text as a finite number; false where it is none. */
static bool read_count(const char *at, size_t length, double *ret)
{
	char text[COUNT_DIGITS + 1];

	if (!length || length > COUNT_DIGITS)
		return false;
	memcpy(text, at, length);
	text[length] = '\0';
	return strlen(text) == length && parse_double(text, ret);
}

/* The next line without blanks around it, an empty one as well; false at the end. */
static bool next_line(const char **text, const char *end, struct folded_line *ret)
{
	const char *feed, *last;

	if (*text == end)
		return false;
	feed = memchr(*text, '\n', (size_t)(end - *text));
	feed = feed ? feed : end;
	*ret = (struct folded_line){*text, feed, 1, false};
	*text = feed < end ? feed + 1 : end;
	while (ret->at < ret->end && is_blank(*ret->at))
		ret->at++;
	while (ret->end > ret->at && (is_blank(ret->end[-1]) || ret->end[-1] == '\r'))
		ret->end--;
	for (last = ret->end; last > ret->at && !is_blank(last[-1]);)
		last--;
	if (last == ret->at || !read_count(last, (size_t)(ret->end - last), &ret->count))
		return true;
	ret->counted = true;
	for (ret->end = last; ret->end > ret->at && is_blank(ret->end[-1]);)
		ret->end--;
	return true;
}

/* Adds the functions of a stack, from the outermost. */
static int add_stack(struct graph *g, const struct folded_line *line, struct error *err)
{
	uint32_t way = 0, node;

	for (const char *at = line->at;; at++) {
		const char *stop = memchr(at, ';', (size_t)(line->end - at));
		size_t length = (size_t)((stop ? stop : line->end) - at);

		if (graph_node(g, "", 0, 0, length ? at : UNNAMED, length ? length : strlen(UNNAMED), NULL, &node,
			       err) < 0 ||
		    graph_way(g, way, node, &way, err) < 0)
			return -1;
		g->ways[way].calls = -1;
		if (!stop)
			break;
		at = stop;
	}
	g->ways[way].self += line->count;
	return 0;
}

static int finish(struct graph *g, const char *source, size_t uncounted, struct error *err)
{
	double sum = 0;

	if (!g->way_count)
		return error_set(err, "%s: it holds no stacks", source);
	for (size_t i = 0; i < g->way_count; i++)
		sum += g->ways[i].self;
	if (!isfinite(sum))
		return error_set(err, "%s: its counts add up to more than a number can hold", source);
	if (uncounted && graph_note(g, "%s: %zu stack%s no count, and count%s once%s.", source, uncounted,
				    uncounted == 1 ? " has" : "s have", uncounted == 1 ? "s" : "",
				    uncounted == 1 ? "" : " each") < 0)
		return error_set(err, "%s: out of memory", source);
	if (graph_set_unit(g, UNIT, 0, err) < 0 || graph_finish(g, err) < 0)
		return error_prefix(err, "%s", source);
	return 0;
}

static int read_folded(const char *text, size_t length, const struct graph_reading *how, struct graph *ret,
		       struct error *err)
{
	const char *end = text + length;
	size_t number = 0, uncounted = 0;
	struct folded_line line;

	if (how->event)
		return error_set(err, "%s: folded stacks have no events to choose from", how->source);
	ret->source = graph_reader_folded.name;
	while (next_line(&text, end, &line)) {
		number++;
		if (line.at == line.end)
			continue;
		if (line.count < 0)
			return error_set(err, "%s: line %zu: a count is below 0", how->source, number);
		uncounted += !line.counted;
		if (add_stack(ret, &line, err) < 0)
			return error_prefix(err, "%s: line %zu", how->source, number);
	}
	return finish(ret, how->source, uncounted, err);
}

/* Its first lines end with counts, or hold several functions; what has bytes that no text has is none. */
static bool is_folded(const char *text, size_t length)
{
	bool cut = length > LOOKED_AT_BYTES;
	const char *end = text + (cut ? LOOKED_AT_BYTES : length);
	size_t counted = 0, stacks = 0, lines = 0;
	struct folded_line line;

	if (memchr(text, '\0', (size_t)(end - text)))
		return false;
	while (lines < LOOKED_AT && next_line(&text, end, &line)) {
		bool several;

		if (line.at == line.end || (cut && text == end && lines))
			continue;
		several = memchr(line.at, ';', (size_t)(line.end - line.at)) != NULL;
		if (!line.counted && !several)
			return false;
		lines++;
		counted += line.counted;
		stacks += several;
	}
	return lines && (counted == lines || stacks == lines);
}

const struct graph_reader graph_reader_folded = {
	.name = "folded",
	.summary = "folded stacks, of which flame graphs are made: \"main;work;step 12\"",
	.is = is_folded,
	.read = read_folded,
};
