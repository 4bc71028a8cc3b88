#include "ingest/foreign_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

#define TEXT_MAX ((size_t)64 << 20)
#define KEY_SCAN_MAX ((size_t)64 << 10)
/* A number takes some 100 bytes with its key, an object or array some 200 even if it is empty. */
#define VALUES_MAX 3000000
#define CONTAINERS_MAX 1000000
#define NUMBER_MAX 1e18
#define SHOWN_COLUMNS 100 /* of a name or key in an error */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The position behind the string whose opening quote is at `at`; `length` where it does not end. */
static size_t string_end(const char *text, size_t length, size_t at)
{
	for (at++; at < length && text[at] != '"'; at++)
		if (text[at] == '\\')
			at++;
	return at < length ? at + 1 : length;
}

/* How many bytes at the start of the text are a bare NaN or infinity, 0: none. */
static size_t not_finite(const char *text, size_t length)
{
	static const char *const words[] = {"nan", "infinity", "inf"};
	size_t sign = length > 0 && text[0] == '-';

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t end = sign + strlen(words[i]);

		if (end <= length && strncasecmp(text + sign, words[i], end - sign) == 0 &&
		    (end == length || !isalnum((unsigned char)text[end])))
			return end;
	}
	return 0;
}

/* Makes text of what is not finite, in as many bytes as it has, and counts what a parser would have to build. */
static int prepare(struct foreign_text *t, struct error *err)
{
	size_t values = 0, containers = 0;

	for (size_t at = 0, word; at < t->length;) {
		char c = t->text[at];

		values += c == ',';
		containers += c == '{' || c == '[';
		if (c == '"') {
			at = string_end(t->text, t->length, at);
		} else if ((c == '-' || isalpha((unsigned char)c)) &&
			   (word = not_finite(t->text + at, t->length - at)) > 0) {
			memset(t->text + at, 'x', word);
			t->text[at] = t->text[at + word - 1] = '"';
			at += word;
		} else {
			at++;
		}
	}
	if (values > VALUES_MAX || containers > CONTAINERS_MAX)
		return error_set(err, "%s: holds more values than can be read (%d numbers, %d objects and lists)",
				 t->source, VALUES_MAX, CONTAINERS_MAX);
	return 0;
}

int foreign_text_init(struct foreign_text *t, const char *text, size_t length, const char *source, struct error *err)
{
	*t = (struct foreign_text){.source = source, .length = length};
	if (length > TEXT_MAX)
		return error_set(err, "%s: larger than 64 MiB", source);
	t->text = malloc(length + 1);
	if (!t->text)
		return error_set(err, "%s: out of memory", source);
	memcpy(t->text, text, length);
	t->text[length] = '\0';
	return prepare(t, err);
}

void foreign_text_release(struct foreign_text *t)
{
	free(t->text);
	*t = (struct foreign_text){0};
}

static void advance(struct foreign_text *t, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, t->at++) {
		if (t->text[t->at] == '\n') {
			t->line++;
			t->column = 0;
		} else if ((t->text[t->at] & 0xc0) != 0x80) { /* columns are characters */
			t->column++;
		}
	}
}

int foreign_text_next(struct foreign_text *t, json_t **ret, struct error *err)
{
	CLEANUP(buf_release) struct buf why;
	json_error_t problem;
	json_t *value;

	buf_init(&why);
	while (t->at < t->length && is_blank(t->text[t->at]))
		advance(t, 1);
	if (t->at == t->length)
		return 0;
	value = json_loadb(t->text + t->at, t->length - t->at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK,
			   &problem);
	if (value) {
		advance(t, (size_t)problem.position);
		*ret = value;
		return 1;
	}
	utf8_append_line(&why, problem.text, JSON_ERROR_TEXT_LENGTH);
	return error_set(err, "%s: line %d, column %d: %s", t->source, t->line + problem.line,
			 problem.line > 1 ? problem.column : t->column + problem.column, why.text);
}

json_t *foreign_text_object(const char *text, size_t length, const char *source, struct error *err)
{
	CLEANUP(foreign_text_release) struct foreign_text t = {0};
	CLEANUP(json_cleanup) json_t *root = NULL;
	int got;

	if (foreign_text_init(&t, text, length, source, err) < 0 || (got = foreign_text_next(&t, &root, err)) < 0)
		return NULL;
	if (got == 0 || !json_is_object(root)) {
		error_set(err, "%s: holds no JSON object", source);
		return NULL;
	}
	while (t.at < t.length && is_blank(t.text[t.at]))
		advance(&t, 1);
	if (t.at < t.length) {
		error_set(err, "%s: line %d, column %d: something stands behind the end of the object", source,
			  t.line + 1, t.column + 1);
		return NULL;
	}
	return json_incref(root);
}

bool foreign_text_has_key(const char *text, size_t length, const char *key)
{
	size_t wanted = strlen(key), at = 0, depth = 0, outer = 1;

	if (length > KEY_SCAN_MAX)
		length = KEY_SCAN_MAX;
	while (at < length && is_blank(text[at]))
		at++;
	if (at == length || (text[at] != '{' && text[at] != '['))
		return false;
	if (text[at] == '[')
		outer = 2;
	for (size_t end; at < length; at = end) {
		end = at + 1;
		if (text[at] == '{' || text[at] == '[')
			depth++;
		else if (text[at] == '}' || text[at] == ']')
			depth--;
		else if (text[at] == '"') {
			size_t colon = end = string_end(text, length, at);

			while (colon < length && is_blank(text[colon]))
				colon++;
			if (depth == outer && colon < length && text[colon] == ':' && end - at == wanted + 2 &&
			    memcmp(text + at + 1, key, wanted) == 0)
				return true;
		}
		if (depth == 0 || (depth < outer && text[at] == '}'))
			return false;
	}
	return false;
}

int foreign_wrong(const char *source, const char *name, const char *key, const char *what, struct error *err)
{
	CLEANUP(buf_release) struct buf shown_name, shown_key;

	buf_init(&shown_name);
	buf_init(&shown_key);
	utf8_append_line(&shown_name, name, SHOWN_COLUMNS);
	utf8_append_line(&shown_key, key, SHOWN_COLUMNS);
	return error_set(err, "%s: benchmark \"%s\": \"%s\" %s", source, shown_name.text, shown_key.text, what);
}

int foreign_number(const char *source, const char *name, const char *key, const json_t *value, double *ret,
		   struct error *err)
{
	double number = json_is_number(value) ? json_number_value(value) : NAN;

	if (!isfinite(number))
		return foreign_wrong(source, name, key, "is not a finite number", err);
	if (number < 0)
		return foreign_wrong(source, name, key, "is negative", err);
	if (number > NUMBER_MAX)
		return foreign_wrong(source, name, key, "is larger than any result can be", err);
	*ret = number;
	return 0;
}
