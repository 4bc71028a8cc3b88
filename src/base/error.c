#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* Names of files, labels and options go into errors as they are: what would steer a terminal becomes '?'. */
static void make_plain(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
		else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?';
}

int error_set(struct error *err, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		make_plain(err->text);
	}
	return -1;
}

int error_prefix(struct error *err, const char *format, ...)
{
	if (err) {
		struct error inner = *err;
		va_list args;
		int used;

		va_start(args, format);
		used = vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		if (used >= 0 && (size_t)used < sizeof err->text)
			snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", inner.text);
		make_plain(err->text);
	}
	return -1;
}
