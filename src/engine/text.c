#include "engine/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"

const char *line_after(const struct log_line *line, const char *phrase)
{
	size_t length = strlen(phrase);
	const char *at = memmem(line->text, line->length, phrase, length);

	return at ? at + length : NULL;
}

bool line_has(const struct log_line *line, const char *phrase)
{
	return line_after(line, phrase) != NULL;
}

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

bool text_skip(const char **at, const char *word)
{
	const char *from = skip_blanks(*at);
	size_t length = strlen(word);

	if (strncmp(from, word, length) != 0)
		return false;
	*at = from + length;
	return true;
}

static bool number_word(const char **at, double *ret)
{
	static const char *const words[] = {"inf", "-inf", "nan", "-nan"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (text_skip(at, words[i])) {
			*ret = NAN;
			return true;
		}
	}
	return false;
}

bool text_number(const char **at, double *ret)
{
	char number[64];
	size_t length = 0;
	bool mark = false;
	const char *from = skip_blanks(*at), *end;
	double value;

	if (number_word(at, ret))
		return true;
	for (; length < sizeof number - 1; length++) {
		char c = from[length];

		if ((c == '.' || c == ',') && !mark && isdigit((unsigned char)from[length + 1])) {
			mark = true;
			c = '.';
		} else if (!isdigit((unsigned char)c) && !(length == 0 && (c == '-' || c == '+'))) {
			break;
		}
		number[length] = c;
	}
	number[length] = '\0';
	value = parse_double_prefix(number, &end);
	if (end == number)
		return false;
	*ret = value;
	*at = from + (end - number);
	return true;
}

bool text_integer(const char **at, int64_t *ret)
{
	const char *from = skip_blanks(*at);
	char *end;
	long long value;

	if (!isdigit((unsigned char)from[*from == '-']))
		return false;
	errno = 0;
	value = strtoll(from, &end, 10);
	if (errno)
		return false;
	*ret = value;
	*at = end;
	return true;
}

int64_t line_field(const struct log_line *line, const char *key)
{
	const char *at = line->text, *end = line->text + line->length;
	size_t length = strlen(key);

	while ((at = memmem(at, (size_t)(end - at), key, length)) != NULL) {
		const char *value = at + length;
		int64_t number;

		text_skip(&value, "\"");
		if ((text_skip(&value, "=") || text_skip(&value, ":")) && text_integer(&value, &number))
			return number;
		at += length;
	}
	return -1;
}

void text_copy(char *ret, size_t size, const char *at, const char *const *ends)
{
	const char *from = skip_blanks(at);
	size_t length = strlen(from);

	for (; *ends; ends++) {
		const char *end = strstr(from, *ends);

		if (end && (size_t)(end - from) < length)
			length = (size_t)(end - from);
	}
	while (length > 0 && (from[length - 1] == ' ' || from[length - 1] == '\t'))
		length--;
	length = utf8_cut(from, length, size - 1);
	memcpy(ret, from, length);
	ret[length] = '\0';
}
