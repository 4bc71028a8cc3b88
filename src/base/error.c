#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
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
	}
	return -1;
}
