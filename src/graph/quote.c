#include "graph/quote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/utf8.h"

#define WHOLE_DIGITS 19 /* of 64 bits, and a sign */
#define PLACES       5
#define PLACES_SCALE 1e5
#define PLACES_SURE  1e9 /* up to which a product with PLACES_SCALE is wrong by far less than 1e-4 */

/* What stands in JSON as it is: nearly all names do. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

void graph_quote_json(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	if (!text) {
		buf_puts(out, "null");
		return;
	}
	if (is_plain(text)) {
		buf_putc(out, '"');
		buf_puts(out, text);
		buf_putc(out, '"');
		return;
	}
	utf8_append_clean(&clean, text, strlen(text));
	out->failed |= clean.failed;
	buf_putc(out, '"');
	for (const char *c = clean.text; *c; c++) {
		if (*c == '"' || *c == '\\')
			buf_putc(out, '\\');
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			buf_printf(out, "\\u%04x", (unsigned char)*c);
		else
			buf_putc(out, *c);
	}
	buf_putc(out, '"');
}

void graph_quote_line(struct buf *out, const char *text)
{
	size_t plain = 0;

	while (text[plain] >= ' ' && text[plain] <= '~')
		plain++;
	buf_append(out, text, plain);
	utf8_append_line(out, text + plain, SIZE_MAX);
}

void graph_quote_csv(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf clean;
	bool quoted;

	buf_init(&clean);
	if (!text)
		return;
	utf8_append_clean(&clean, text, strlen(text));
	out->failed |= clean.failed;
	quoted = strpbrk(clean.text, ",\"\r\n") != NULL;
	if (quoted)
		buf_putc(out, '"');
	for (const char *c = clean.text; *c; c++) {
		if (*c == '"')
			buf_putc(out, '"');
		buf_putc(out, *c);
	}
	if (quoted)
		buf_putc(out, '"');
}

void graph_quote_dot(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, strlen(text));
	out->failed |= clean.failed;
	buf_putc(out, '"');
	for (const char *c = clean.text; *c; c++) {
		if (*c == '\n')
			buf_puts(out, "\\n");
		else if ((unsigned char)*c < ' ' || *c == 0x7f)
			buf_putc(out, '?');
		else
			buf_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	buf_putc(out, '"');
}

void graph_quote_number(struct buf *out, double value, const char *missing)
{
	buf_puts(out, isfinite(value) ? decimal_shortest(value).text : missing);
}

void graph_quote_whole(struct buf *out, int64_t value, unsigned width)
{
	char text[WHOLE_DIGITS + 1];
	size_t at = sizeof text;
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do
		text[--at] = (char)('0' + left % 10);
	while (left /= 10);
	if (value < 0)
		text[--at] = '-';
	for (size_t length = sizeof text - at; length < width; length++)
		buf_putc(out, ' ');
	buf_append(out, text + at, sizeof text - at);
}

void graph_places(double value, char ret[static GRAPH_PLACES_ROOM])
{
	const double scaled = value * PLACES_SCALE, beyond = scaled - floor(scaled);
	uint64_t whole;
	int at = 0, digits = PLACES + 1;

	/* The product is rounded: near a tie the exact value tells. */
	if (!(scaled >= 0 && scaled < PLACES_SURE) || signbit(value) || fabs(beyond - 0.5) < 1e-4) {
		snprintf(ret, GRAPH_PLACES_ROOM, "%.*f", PLACES, value);
		return;
	}
	whole = (uint64_t)nearbyint(scaled);
	for (uint64_t left = whole / (uint64_t)PLACES_SCALE; left >= 10; left /= 10)
		digits++;
	at = digits + 1;
	ret[at] = '\0';
	for (; at > 0; whole /= 10) {
		if (at == digits + 1 - PLACES)
			ret[--at] = '.';
		ret[--at] = (char)('0' + whole % 10);
	}
}

void graph_quote_places(struct buf *out, double value)
{
	char text[GRAPH_PLACES_ROOM];

	graph_places(value, text);
	buf_puts(out, text);
}
