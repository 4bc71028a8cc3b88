#include "trial/json_line.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

struct cursor {
	const char *text;
	size_t length, at;
};

static char here(const struct cursor *c)
{
	return c->at < c->length ? c->text[c->at] : '\0';
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->length && memchr(" \t\r\n", c->text[c->at], 4))
		c->at++;
}

static void skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->length && here(c) != '"'; c->at++)
		if (here(c) == '\\')
			c->at++;
	c->at++;
}

/* A whole value; nesting is counted, so that no depth costs any stack. */
static void skip_value(struct cursor *c)
{
	size_t depth = 0;

	skip_blanks(c);
	do {
		char first = here(c);

		if (first == '"') {
			skip_string(c);
		} else if (first == '{' || first == '[') {
			depth++;
			c->at++;
		} else if (first == '}' || first == ']') {
			depth -= depth > 0;
			c->at++;
		} else if (first == ',' || first == ':') {
			c->at++;
		} else {
			while (c->at < c->length && !memchr(",:]} \t\r\n", here(c), 8))
				c->at++;
		}
		skip_blanks(c);
	} while (depth > 0 && c->at < c->length);
}

/* Whether the string at the cursor is `key`, however it is escaped. */
static bool is_key(const struct cursor *c, const char *key)
{
	CLEANUP(json_cleanup) json_t *value = NULL;
	struct cursor end = *c;

	if (here(c) != '"')
		return false;
	skip_string(&end);
	if (end.at > end.length)
		return false;
	value = json_loadb(c->text + c->at, end.at - c->at, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	return value && strcmp(json_string_value(value), key) == 0;
}

static bool find_member(struct cursor *c, const char *key)
{
	c->at++;
	for (skip_blanks(c); here(c) == '"'; skip_blanks(c)) {
		if (is_key(c, key))
			return true;
		skip_string(c);
		skip_blanks(c);
		c->at++; /* the colon */
		skip_value(c);
		c->at += here(c) == ',';
	}
	return false;
}

static bool find_element(struct cursor *c, size_t index)
{
	c->at++;
	skip_blanks(c);
	for (size_t i = 0; i < index && c->at < c->length && here(c) != ']'; i++) {
		skip_value(c);
		c->at += here(c) == ',';
		skip_blanks(c);
	}
	return c->at < c->length && here(c) != ']';
}

size_t json_line(const char *text, size_t length, const struct json_step *steps, size_t count)
{
	struct cursor c = {.text = text, .length = length};
	size_t found, line = 1;

	skip_blanks(&c);
	found = c.at;
	for (size_t i = 0; i < count; i++) {
		bool into_object = steps[i].key != NULL;

		if (here(&c) != (into_object ? '{' : '['))
			break;
		if (!(into_object ? find_member(&c, steps[i].key) : find_element(&c, steps[i].index)))
			break;
		found = c.at;
		if (into_object) { /* on to the value */
			skip_string(&c);
			skip_blanks(&c);
			c.at++;
			skip_blanks(&c);
		}
	}
	for (size_t i = 0; i < found && i < length; i++)
		line += text[i] == '\n';
	return line;
}
