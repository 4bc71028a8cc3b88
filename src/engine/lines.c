/* The splitter: one pass over the bytes, runs of plain text copied whole, everything else byte by byte.
 *
 * A newline ends a line and also any escape sequence that was never finished, so that a torn sequence costs one line at
 * most. Needs no memory beyond its own fixed buffer. */
#include "engine/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum escape {
	ESCAPE_NONE,
	ESCAPE_BEGUN,        /* after ESC */
	ESCAPE_INTERMEDIATE, /* after ESC and 0x20..0x2f: the final byte is to come */
	ESCAPE_CSI,          /* after ESC [ */
	ESCAPE_STRING,       /* after ESC ] P X ^ or _: up to BEL or ESC \ */
	ESCAPE_STRING_END,   /* ESC inside such a string */
};

struct line_splitter {
	void (*each)(void *context, const struct log_line *line);
	void *context;
	int stream;
	enum escape escape;
	bool cut;
	bool returned; /* a carriage return has ended the last line, so that a newline right behind it is no line */
	bool high;     /* the line has bytes from 0x80 on */
	bool control;
	int64_t t;
	struct line_counts counts;
	size_t length;
	char text[LOG_LINE_MAX + 1];
};

struct line_splitter *line_splitter_new(int stream, void (*each)(void *context, const struct log_line *line),
					void *context)
{
	struct line_splitter *s = malloc(sizeof *s);

	if (!s)
		return NULL;
	memset(s, 0, offsetof(struct line_splitter, text));
	s->each = each;
	s->context = context;
	s->stream = stream;
	return s;
}

void line_splitter_free(struct line_splitter *s)
{
	free(s);
}

void line_splitter_counts(const struct line_splitter *s, struct line_counts *ret)
{
	*ret = s->counts;
}

/* The first control byte, or `end`. Sets *high if it passed a byte from 0x80 on. */
static const char *plain_until(const char *at, const char *end, bool *high)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t seen = 0;

	for (; end - at >= 8; at += 8) {
		uint64_t eight;

		memcpy(&eight, at, sizeof eight);
		if ((eight - 0x20 * ones) & ~eight & 0x80 * ones)
			break;
		seen |= eight;
	}
	for (; at < end && (unsigned char)*at >= 0x20; at++)
		seen |= (unsigned char)*at;
	if (seen & 0x80 * ones)
		*high = true;
	return at;
}

static void append(struct line_splitter *s, const char *bytes, size_t length)
{
	size_t room = LOG_LINE_MAX - s->length;

	if (length > room) {
		s->cut = true;
		length = room;
	}
	memcpy(s->text + s->length, bytes, length);
	s->length += length;
	s->returned = false;
}

/* A cut line must not end inside a character. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t start = length;

	while (start > 0 && length - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0 || (unsigned char)text[start - 1] < 0xc0)
		return length;
	start--;
	return utf8_character(text + start, length - start) == length - start ? length : start;
}

static void replace_invalid(struct line_splitter *s)
{
	size_t bad = utf8_valid_until(s->text, 0, s->length);

	if (bad == s->length)
		return;
	s->counts.invalid_utf8++;
	while (bad < s->length) {
		s->text[bad] = '?';
		bad = utf8_valid_until(s->text, bad + 1, s->length);
	}
}

static void emit(struct line_splitter *s)
{
	struct log_line line = {.t = s->t, .stream = s->stream, .text = s->text, .cut = s->cut};

	if (s->high) {
		if (s->cut)
			s->length = whole_characters(s->text, s->length);
		replace_invalid(s);
	}
	s->text[s->length] = '\0';
	line.length = s->length;
	s->counts.lines++;
	s->counts.cut += s->cut;
	s->counts.binary += s->control;
	s->each(s->context, &line);
	s->length = 0;
	s->cut = s->high = s->control = false;
}

static void erase_character(struct line_splitter *s)
{
	if (s->cut)
		return;
	while (s->length > 0 && ((unsigned char)s->text[s->length - 1] & 0xc0) == 0x80)
		s->length--;
	if (s->length > 0)
		s->length--;
}

static void take_control(struct line_splitter *s, char c)
{
	switch (c) {
	case '\n':
		if (!s->returned || s->length > 0)
			emit(s);
		s->returned = false;
		break;
	case '\r':
		if (s->length > 0) {
			emit(s);
			s->returned = true;
		}
		break;
	case '\b': /* a spinner draws over itself */
		erase_character(s);
		break;
	case '\033':
		s->escape = ESCAPE_BEGUN;
		break;
	case '\a':
		break;
	case '\t':
	case '\f':
	case '\v':
		append(s, &c, 1);
		break;
	default:
		s->control = true;
		append(s, &c, 1);
	}
}

/* Returns whether the byte belonged to the sequence; if not, the sequence is over and the byte is ordinary. */
static bool take_escaped(struct line_splitter *s, char byte)
{
	unsigned char c = (unsigned char)byte;
	enum escape was = s->escape;

	s->escape = ESCAPE_NONE;
	if (c == '\n' || c == '\r')
		return false;
	switch (was) {
	case ESCAPE_BEGUN:
		if (c == '[')
			s->escape = ESCAPE_CSI;
		else if (c && strchr("]PX^_", c))
			s->escape = ESCAPE_STRING;
		else if (c >= 0x20 && c <= 0x2f)
			s->escape = ESCAPE_INTERMEDIATE;
		return c >= 0x20 && c < 0x7f;
	case ESCAPE_INTERMEDIATE:
		if (c >= 0x20 && c <= 0x2f)
			s->escape = was;
		return c >= 0x20 && c < 0x7f;
	case ESCAPE_CSI:
		if (c >= 0x20 && c <= 0x3f)
			s->escape = was;
		return c >= 0x20 && c < 0x7f;
	case ESCAPE_STRING:
		if (c != '\a')
			s->escape = c == '\033' ? ESCAPE_STRING_END : was;
		return true;
	case ESCAPE_STRING_END:
		if (c != '\\')
			s->escape = ESCAPE_BEGUN; /* not the string's end but a new sequence */
		return c == '\\';
	default:
		return false;
	}
}

void line_splitter_feed(struct line_splitter *s, int64_t t, const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length;

	s->t = t;
	while (at < end) {
		const char *stop;

		if (s->escape != ESCAPE_NONE) {
			at += take_escaped(s, *at);
			continue;
		}
		stop = plain_until(at, end, &s->high);
		if (stop > at)
			append(s, at, (size_t)(stop - at));
		if (stop < end)
			take_control(s, *stop++);
		at = stop;
	}
}

void line_splitter_end(struct line_splitter *s)
{
	if (s->length > 0)
		emit(s);
	s->escape = ESCAPE_NONE;
	s->returned = false;
}
