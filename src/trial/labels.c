#include "trial/labels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/rundir.h"

/* Files that a matrix has beside its folders. */
static const char *const reserved[] = {"matrix.json", "table.md", "plan.json"};

int labels_init(struct labels *l)
{
	l->labels = json_object();
	l->tags = json_object();
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		json_put_integer(l->tags, reserved[i], 2);
	return l->labels && l->tags ? 0 : -1;
}

void labels_release(struct labels *l)
{
	json_decref(l->labels);
	json_decref(l->tags);
	*l = (struct labels){0};
}

/* A tag that names a folder of its own: neither "." nor hidden nor an option. */
static char *safe_tag(const char *label)
{
	CLEANUP(free_cleanup) char *tag = rundir_tag(label);
	char *safe;

	if (!tag)
		return NULL;
	return asprintf(&safe, "%s%s", *tag == '.' || *tag == '-' || !*tag ? "_" : "", tag) < 0 ? NULL : safe;
}

size_t labels_add(struct labels *l, const char *label, char **ret_tag)
{
	const json_t *same = json_object_get(l->labels, label);
	char *tag = same ? NULL : safe_tag(label), *numbered;
	json_int_t number;

	if (same)
		return (size_t)json_integer_value(same);
	if (!tag)
		return SIZE_MAX;
	json_put_integer(l->labels, label, (json_int_t)json_object_size(l->labels));
	/* From where the last one of that tag stopped: 10,000 equal ones take 10,000 tries, not their square. */
	number = json_integer_value(json_object_get(l->tags, tag));
	if (number) {
		for (;; number++) {
			if (asprintf(&numbered, "%s-%d", tag, (int)number) < 0)
				numbered = NULL;
			if (!numbered || !json_object_get(l->tags, numbered))
				break;
			free(numbered);
		}
		json_put_integer(l->tags, tag, number + 1);
		free(tag);
		tag = numbered;
	}
	if (tag)
		json_put_integer(l->tags, tag, 2);
	*ret_tag = tag;
	return SIZE_MAX;
}
