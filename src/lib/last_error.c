#include "lib/last_error.h"

#include <assay.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/export.h"

static __thread char last_error[512];

int last_error_set(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof last_error, format, args);
	va_end(args);
	return -1;
}

ASSAY_EXPORT const char *assay_last_error(void)
{
	return last_error;
}
