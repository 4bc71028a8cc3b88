#include "ingest/graph_callgrind_header.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "ingest/graph_callgrind_line.h"

#define SHOWN_COLUMNS 60
#define COST_MAX 1e290		      /* of which as many as a file can hold are still finite */
#define EXACT 9007199254740992.0      /* 2^53: larger sums of doubles are rounded */

/* Events that are times, as some writers of this format name them. */
static const struct {
	const char *event, *unit;
	double per_second;
} times[] = {
	{"ns", "ns", 1e-9}, {"CPU_ns", "ns", 1e-9},	  {"Nanoseconds", "ns", 1e-9},
	{"us", "us", 1e-6}, {"Microseconds", "us", 1e-6}, {"ms", "ms", 1e-3},
	{"s", "s", 1},	    {"Time_(ns)", "ns", 1e-9},	  {"Time_(10ns)", "10ns", 1e-8},
};

int callgrind_wrong_line(const struct callgrind *c, const char *what, struct error *err)
{
	return error_set(err, "%s: line %zu: %s", c->how->source, c->line, what);
}

int callgrind_no_memory(const struct callgrind *c, struct error *err)
{
	return error_set(err, "%s: out of memory for %zu functions", c->how->source, c->graph->node_count);
}

int callgrind_read_costs(struct callgrind *c, const char *at, const char *end, double *ret, struct error *err)
{
	*ret = 0;
	for (size_t i = 0; at < end; i++) {
		double cost;

		if (!callgrind_read_cost(&at, end, &cost))
			return callgrind_wrong_line(c, "a cost is no number", err);
		if (i == c->event_at)
			*ret = cost;
		callgrind_skip_blanks(&at, end);
	}
	if (*ret < 0)
		return callgrind_wrong_line(c, "a cost is below 0", err);
	if (*ret > COST_MAX)
		return callgrind_wrong_line(c, "a cost is too large", err);
	c->rounded |= *ret > EXACT;
	return 0;
}

/* The word at *at: up to a blank or the end. */
static size_t word_length(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && at[length] != ' ' && at[length] != '\t')
		length++;
	return length;
}

static int no_event(const struct callgrind *c, const char *at, const char *end, struct error *err)
{
	CLEANUP(buf_release) struct buf typed, names, shown;

	buf_init(&typed);
	buf_init(&names);
	buf_init(&shown);
	utf8_append_line(&typed, c->event.text, SHOWN_COLUMNS);
	while (at < end) {
		size_t length = word_length(at, end);

		buf_append(&names, at, length);
		at += length;
		callgrind_skip_blanks(&at, end);
		buf_puts(&names, at < end ? ", " : "");
	}
	utf8_append_line(&shown, names.text, 4 * SHOWN_COLUMNS);
	return error_set(err, "%s: line %zu: there is no event '%s'; it has: %s", c->how->source, c->line, typed.text,
			 shown.text);
}

static int set_unit(struct callgrind *c, struct error *err)
{
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (strcmp(times[i].event, c->event.text) == 0)
			return graph_set_unit(c->graph, times[i].unit, times[i].per_second, err);
	return graph_set_unit(c->graph, c->event.text, 0, err);
}

int callgrind_check_part(struct callgrind *c, struct error *err)
{
	double slack = c->told > EXACT ? c->told * 1e-9 : 0;

	if (isnan(c->told) || fabs(c->told - c->sum) <= slack)
		return 0;
	if (graph_note(
		    c->graph,
		    "%s: line %zu: the file says that %s is %.0f in all, and what its functions cost adds up to %.0f: "
		    "it may have been cut.",
		    c->how->source, c->told_line, c->event.text, c->told, c->sum) < 0)
		return callgrind_no_memory(c, err);
	return 0;
}

/* "events: Ir Dr Dw": begins the costs of a part. */
static int read_events(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	const char *first;
	size_t found = SIZE_MAX, length;

	callgrind_skip_blanks(&at, end);
	first = at;
	if (callgrind_check_part(c, err) < 0)
		return -1;
	c->sum = 0;
	c->told = NAN;
	if (!c->event.length)
		buf_append(&c->event, at, word_length(at, end));
	for (c->event_count = 0; at < end; c->event_count++) {
		length = word_length(at, end);
		if (length == c->event.length && memcmp(at, c->event.text, length) == 0 && found == SIZE_MAX)
			found = c->event_count;
		at += length;
		callgrind_skip_blanks(&at, end);
	}
	if (!c->event_count)
		return callgrind_wrong_line(c, "\"events:\" names none", err);
	if (found == SIZE_MAX)
		return no_event(c, first, end, err);
	c->event_at = found;
	return c->event.failed ? callgrind_no_memory(c, err) : set_unit(c, err);
}

static int read_positions_told(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	c->instructions = c->lines = false;
	for (callgrind_skip_blanks(&at, end); at < end; callgrind_skip_blanks(&at, end)) {
		size_t length = word_length(at, end);

		if (length == 5 && memcmp(at, "instr", 5) == 0 && !c->lines)
			c->instructions = true;
		else if (length == 4 && memcmp(at, "line", 4) == 0)
			c->lines = true;
		else
			return callgrind_wrong_line(
				c, "\"positions:\" is neither \"line\", \"instr\" nor \"instr line\"", err);
		at += length;
	}
	return 0;
}

static int read_total(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	double told;

	if (!c->event_count)
		return 0;
	callgrind_skip_blanks(&at, end);
	if (callgrind_read_costs(c, at, end, &told, err) < 0)
		return -1;
	c->told = told;
	c->told_line = c->line;
	return 0;
}

int callgrind_read_header(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	const char *colon = at;

	if (callgrind_starts(at, end, "events:"))
		return read_events(c, at + 7, end, err);
	if (callgrind_starts(at, end, "positions:"))
		return read_positions_told(c, at + 10, end, err);
	if (callgrind_starts(at, end, "summary:"))
		return read_total(c, at + 8, end, err);
	if (callgrind_starts(at, end, "totals:"))
		return read_total(c, at + 7, end, err);
	while (colon < end && ((*colon >= 'a' && *colon <= 'z') || (*colon >= 'A' && *colon <= 'Z')))
		colon++;
	if (colon > at && colon < end && *colon == ':')
		return 0;
	return callgrind_wrong_line(c, "this is no line of a callgrind file", err);
}
