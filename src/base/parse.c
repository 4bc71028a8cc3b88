#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale(void)
{
	static locale_t locale;

	if (!locale)
		locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return locale;
}

bool parse_i64(const char *text, int64_t *ret)
{
	char *end;
	long long value;

	if (!isdigit((unsigned char)text[*text == '-']))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

bool parse_u64(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

double parse_double_prefix(const char *text, const char **end)
{
	char *after;
	double value = strtod_l(text, &after, c_locale());

	*end = after;
	return value;
}

bool parse_double(const char *text, double *ret)
{
	const char *end;
	double value;

	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return false;
	value = parse_double_prefix(text, &end);
	if (end == text || *end || !isfinite(value))
		return false;
	*ret = value;
	return true;
}
