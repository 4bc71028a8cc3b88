#include "base/wrap.h"

#include <stdbool.h>
#include <string.h>

static size_t width_of(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

size_t wrap_width(const char *text)
{
	return width_of(text, strlen(text));
}

void wrap_append(struct buf *out, const char *text, size_t at, size_t indent, size_t width)
{
	bool first = true;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t length = strcspn(text, " \n"), columns = width_of(text, length);

		if (!first && at + 1 + columns > width) {
			buf_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			buf_putc(out, ' ');
			at++;
		}
		buf_append(out, text, length);
		at += columns;
		text += length;
		first = false;
	}
	buf_putc(out, '\n');
}
