#include "ingest/foreign_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* groups[NAME] = {"same": {KEY: VALUE} that all rows so far have, "varying": {KEY: true}}. Each row costs as much as it
 * has keys, however many those before had: a key that is not the same leaves "same" for good. */

static bool counts(const char *key, const json_t *value, const char *const *ignored)
{
	if (json_is_object(value) || json_is_array(value))
		return false;
	for (; *ignored; ignored++)
		if (strcmp(*ignored, key) == 0)
			return false;
	return true;
}

static json_t *add_group(json_t *groups, const char *name)
{
	if (json_object_set_new(groups, name, json_pack("{s:{}, s:{}}", "same", "varying")) < 0)
		return NULL;
	return json_object_get(groups, name);
}

static int note(json_t *groups, const char *name, json_t *settings, const char *const *ignored)
{
	json_t *group = json_object_get(groups, name), *same, *varying, *value;
	bool is_first = group == NULL;
	const char *key;
	void *next;

	if (is_first && !(group = add_group(groups, name)))
		return -1;
	same = json_object_get(group, "same");
	varying = json_object_get(group, "varying");
	json_object_foreach_safe(same, next, key, value) {
		if (json_equal(value, json_object_get(settings, key)))
			continue;
		if (json_object_set_new(varying, key, json_true()) < 0)
			return -1;
		json_object_del(same, key);
	}
	json_object_foreach(settings, key, value) {
		if (!counts(key, value, ignored) || json_object_get(same, key))
			continue;
		if (is_first ? json_object_set(same, key, value) : json_object_set_new(varying, key, json_true()))
			return -1;
	}
	return 0;
}

int foreign_names_note(json_t *groups, const char *name, json_t *settings, const char *const *ignored,
		       const char *source, struct error *err)
{
	return note(groups, name, settings, ignored) < 0 ? error_set(err, "%s: out of memory", source) : 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void append_value(struct buf *to, const json_t *value)
{
	CLEANUP(free_cleanup) char *text = NULL;

	if (json_is_string(value)) {
		buf_puts(to, json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	if (text)
		buf_puts(to, text);
	else
		to->failed = true;
}

void foreign_names_append(struct buf *to, const json_t *groups, const char *name, json_t *settings)
{
	json_t *varying = json_object_get(json_object_get(groups, name), "varying"), *value;
	CLEANUP(free_cleanup) const char **keys = NULL;
	size_t count = 0;
	const char *key;

	buf_puts(to, name);
	if (json_object_size(varying) == 0)
		return;
	keys = calloc(json_object_size(settings) + 1, sizeof *keys);
	if (!keys) {
		to->failed = true;
		return;
	}
	json_object_foreach(settings, key, value) {
		if (json_object_get(varying, key))
			keys[count++] = key;
	}
	qsort(keys, count, sizeof *keys, by_text);
	for (size_t i = 0; i < count; i++) {
		buf_printf(to, "%s%s=", i == 0 ? " (" : ", ", keys[i]);
		append_value(to, json_object_get(settings, keys[i]));
	}
	if (count > 0)
		buf_putc(to, ')');
}
