#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_character(const char *text, size_t length)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t need;
	unsigned char low = 0x80, high = 0xbf;

	if (length == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (length < need)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (s[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f; /* beyond U+10FFFF */
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return need;
}

size_t utf8_valid_until(const char *text, size_t from, size_t length)
{
	while (from < length) {
		uint64_t eight;
		size_t step;

		if (length - from >= sizeof eight) {
			memcpy(&eight, text + from, sizeof eight);
			if (!(eight & UINT64_C(0x8080808080808080))) {
				from += sizeof eight;
				continue;
			}
		}
		step = utf8_character(text + from, length - from);
		if (step == 0)
			return from;
		from += step;
	}
	return length;
}

void utf8_append_clean(struct buf *out, const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t valid = utf8_valid_until(text, at, length);

		buf_append(out, text + at, valid - at);
		if (valid < length) {
			buf_puts(out, "\xef\xbf\xbd");
			valid++;
		}
		at = valid;
	}
}

/* C0, DEL, and the C1 ones, which some terminals obey too. */
static bool is_control(const char *at, size_t length)
{
	const unsigned char *s = (const unsigned char *)at;

	return length == 1 ? s[0] < 0x20 || s[0] == 0x7f : s[0] == 0xc2 && s[1] < 0xa0;
}

/* What would break the line, or reorder what else stands on it: U+2028, 2029, 202A to 202E, 2066 to 2069. */
static bool is_layout(const char *at, size_t length)
{
	const unsigned char *s = (const unsigned char *)at;

	return length == 3 && s[0] == 0xe2 &&
	       ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

void utf8_append_line(struct buf *out, const char *text, size_t columns)
{
	size_t length = strlen(text), used = 0, cut_at = out->length;

	for (size_t at = 0; at < length; used++) {
		size_t step = utf8_character(text + at, length - at);

		if (used + 3 == columns)
			cut_at = out->length;
		if (used == columns) {
			out->length = cut_at;
			buf_puts(out, "...");
			return;
		}
		if (step == 0)
			buf_puts(out, "\xef\xbf\xbd");
		else if (is_control(text + at, step) || is_layout(text + at, step))
			buf_putc(out, '?');
		else
			buf_append(out, text + at, step);
		at += step ? step : 1;
	}
}

size_t utf8_cut(const char *text, size_t length, size_t limit)
{
	size_t cut = limit;

	if (length <= limit)
		return length;
	while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return cut;
}
