#include "report/check_format.h"

#include <string.h>

#define CHECK_FORMAT(name, summary) {#name, summary, check_format_##name},
const struct check_format check_formats[] = {
#include "report/check_formats.def"
};
#undef CHECK_FORMAT

const size_t check_format_count = sizeof check_formats / sizeof *check_formats;

const struct check_format *check_format_find(const char *name)
{
	for (size_t i = 0; i < check_format_count; i++)
		if (strcmp(check_formats[i].name, name) == 0)
			return &check_formats[i];
	return NULL;
}
