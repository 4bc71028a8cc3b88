#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/utf8.h"

#define JSON_FILE_MAX ((size_t)64 << 20)

void json_cleanup(json_t **root)
{
	json_decref(*root);
}

void json_put_number(json_t *object, const char *key, double value)
{
	if (isfinite(value))
		json_object_set_new(object, key, json_real(value));
}

void json_put_integer(json_t *object, const char *key, json_int_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

void json_put_bool(json_t *object, const char *key, int value)
{
	json_object_set_new(object, key, json_boolean(value));
}

json_t *json_text(const char *text, size_t length)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, length);
	return clean.failed ? NULL : json_stringn(clean.text, clean.length);
}

void json_put_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_text(text, strlen(text)));
}

json_t *json_read_text(const char *path, const char *text, size_t length, struct error *err)
{
	json_error_t problem;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);

	if (!root)
		error_set(err, "%s: line %d, column %d: %s", path, problem.line, problem.column, problem.text);
	return root;
}

json_t *json_read_file(const char *path, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (fs_read_file(path, JSON_FILE_MAX, &text, err) < 0)
		return NULL;
	return json_read_text(path, text.text, text.length, err);
}

char *json_print(const json_t *root)
{
	return json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
}

int json_write_file(const char *path, const json_t *root, struct error *err)
{
	CLEANUP(free_cleanup) char *text = json_print(root);
	size_t length;

	if (!text)
		return error_set(err, "%s: out of memory", path);
	length = strlen(text);
	text[length] = '\n'; /* in place of the ending 0 */
	return fs_write_file(path, text, length + 1, err);
}

double json_get_number(const json_t *object, const char *key, double fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : fallback;
}

const char *json_get_text(const json_t *object, const char *key, const char *fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ? json_string_value(value) : fallback;
}
