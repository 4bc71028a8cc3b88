#include "ingest/graph_callgrind_line.h"

#include <string.h>

#include "base/parse.h"

#define COST_DIGITS 400 /* what is longer is no number */

void callgrind_skip_blanks(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
}

bool callgrind_starts(const char *at, const char *end, const char *key)
{
	size_t length = strlen(key);

	return (size_t)(end - at) >= length && memcmp(at, key, length) == 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

bool callgrind_read_whole(const char **at, const char *end, uint64_t *ret)
{
	bool hex = callgrind_starts(*at, end, "0x");
	const char *digit = *at + (hex ? 2 : 0), *first = digit;
	unsigned base = hex ? 16 : 10;
	uint64_t value = 0;

	for (; digit < end && (unsigned)digit_of(*digit) < base; digit++)
		value = value * base + (unsigned)digit_of(*digit);
	if (digit == first || (digit < end && *digit != ' ' && *digit != '\t'))
		return false;
	*ret = value;
	*at = digit;
	return true;
}

bool callgrind_read_position(const char **at, const char *end, uint64_t *position)
{
	char sign = *at < end ? **at : '\0';
	uint64_t value;

	if (sign == '*') {
		++*at;
		return *at == end || **at == ' ' || **at == '\t';
	}
	*at += sign == '+' || sign == '-';
	if (!callgrind_read_whole(at, end, &value))
		return false;
	*position = sign == '+' ? *position + value : sign == '-' ? *position - value : value;
	return true;
}

bool callgrind_read_cost(const char **at, const char *end, double *ret)
{
	const char *stop = *at;
	uint64_t value = 0;
	char text[COST_DIGITS + 1];
	size_t length;

	for (; stop < end && *stop >= '0' && *stop <= '9' && stop - *at < 19; stop++)
		value = value * 10 + (unsigned)(*stop - '0');
	*ret = (double)value;
	if (stop == end || *stop == ' ' || *stop == '\t') {
		*at = stop;
		return true;
	}
	while (stop < end && *stop != ' ' && *stop != '\t')
		stop++;
	length = (size_t)(stop - *at);
	if (length > COST_DIGITS)
		return false;
	memcpy(text, *at, length);
	text[length] = '\0';
	*at = stop;
	return strlen(text) == length && parse_double(text, ret);
}
