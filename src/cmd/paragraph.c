#include "cmd/paragraph.h"

#include <stdbool.h>
#include <string.h>

static size_t width_of(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

size_t paragraph_width(const char *text)
{
	return width_of(text, strlen(text));
}

void paragraph_print(FILE *out, const char *text, size_t at, size_t indent)
{
	bool first = true;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t length = strcspn(text, " \n"), width = width_of(text, length);

		if (!first && at + 1 + width > PARAGRAPH_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, length, out);
		at += width;
		text += length;
		first = false;
	}
	fputc('\n', out);
}
