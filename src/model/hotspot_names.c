#include "model/hotspot_names.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hotspots.h"

void row_names_release(struct row_names *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].owned);
	free(l->items);
	free(l->slots);
	*l = (struct row_names){0};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

static size_t home_of(const struct row_names *l, const char *name, const char *module)
{
	uint64_t hash = hash_text(hash_text(UINT64_C(14695981039346656037), name) * 31, module);

	return (size_t)(hash ^ hash >> 29) & (l->slot_count - 1);
}

static int make_room(struct row_names *l, struct error *err)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct row_name *items = room < UINT32_MAX / 2 ? reallocarray(l->items, room, sizeof *items) : NULL;

		if (!items)
			return error_set(err, "out of memory for %zu names of hot spots", room);
		l->items = items;
		l->room = room;
	}
	if (2 * (l->count + 1) >= l->slot_count) {
		size_t slot_count = l->slot_count ? 2 * l->slot_count : 256;
		uint32_t *slots = calloc(slot_count, sizeof *slots);

		if (!slots)
			return error_set(err, "out of memory for %zu names of hot spots", slot_count);
		free(l->slots);
		l->slots = slots;
		l->slot_count = slot_count;
		for (size_t i = 0; i < l->count; i++) {
			size_t at = home_of(l, l->items[i].name, l->items[i].module);

			while (slots[at])
				at = (at + 1) & (slot_count - 1);
			slots[at] = (uint32_t)i + 1;
		}
	}
	return 0;
}

static bool is_label(const struct row_name *label, const char *name, const char *module)
{
	if (strcmp(label->name, name) != 0)
		return false;
	return module && label->module ? strcmp(label->module, module) == 0 : module == label->module;
}

uint32_t row_names_add(struct row_names *l, const char *name, const char *module, bool known, struct error *err)
{
	size_t at;

	if (make_room(l, err) < 0)
		return LABEL_NONE;
	for (at = home_of(l, name, module); l->slots[at]; at = (at + 1) & (l->slot_count - 1)) {
		struct row_name *label = &l->items[l->slots[at] - 1];

		if (is_label(label, name, module)) {
			label->known |= known;
			return l->slots[at] - 1;
		}
	}
	l->slots[at] = (uint32_t)l->count + 1;
	l->items[l->count] = (struct row_name){.name = name, .module = module, .known = known};
	return (uint32_t)l->count++;
}

uint32_t row_names_copy(struct row_names *l, const char *name, const char *module, bool known, struct error *err)
{
	char *copy = strdup(name);
	uint32_t label;

	if (!copy) {
		error_set(err, "out of memory for the names of hot spots");
		return LABEL_NONE;
	}
	label = row_names_add(l, copy, module, known, err);
	if (label != LABEL_NONE && l->items[label].name == copy)
		l->items[label].owned = copy;
	else
		free(copy);
	return label;
}

uint32_t row_names_add_line(struct row_names *l, const struct profile *p, const struct profile_frame *frame,
			 struct error *err)
{
	const struct profile_function *f = &p->functions[frame->function];
	const char *module = p->modules[f->module].name;
	uint32_t label;
	char *text;

	if (!f->file || !frame->line)
		return row_names_add(l, f->name, module, f->known, err);
	if (asprintf(&text, "%s:%u %s", f->file, frame->line, f->name) < 0) {
		error_set(err, "out of memory for the names of hot spots");
		return LABEL_NONE;
	}
	label = row_names_copy(l, text, module, f->known, err);
	free(text);
	return label;
}

uint32_t row_names_add_image(struct row_names *l, const struct profile_image *image, struct error *err)
{
	const char *last = strrchr(image->exe, '/');
	size_t length = strcspn(image->command, " ");
	char word[256];

	if (last && last[1])
		return row_names_copy(l, last + 1, NULL, true, err);
	if (*image->exe)
		return row_names_copy(l, image->exe, NULL, true, err);
	snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, image->command);
	last = strrchr(word, '/');
	if (last && last[1])
		return row_names_copy(l, last + 1, NULL, true, err);
	return row_names_copy(l, *word ? word : "[unknown]", NULL, *word != '\0', err);
}

/* Where the parameters of a C++ function's name begin; its length where it has none. */
static size_t without_parameters(const char *name)
{
	const char *end = strrchr(name, ')'), *at = end;
	size_t depth = 0;

	if (!end || strstr(end, "::"))
		return strlen(name);
	for (;; at--) {
		depth += *at == ')';
		if (*at == '(' && --depth == 0)
			break;
		if (at == name)
			return strlen(name);
	}
	if (at == name || (at - name >= 8 && memcmp(at - 8, "operator", 8) == 0))
		return strlen(name);
	return (size_t)(at - name);
}

bool label_matches(const char *pattern, const char *name)
{
	size_t length;
	char *cut;
	bool matches;

	if (strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0)
		return true;
	length = without_parameters(name);
	if (!name[length])
		return false;
	cut = strndup(name, length);
	matches = cut && (strcmp(pattern, cut) == 0 || fnmatch(pattern, cut, 0) == 0);
	free(cut);
	return matches;
}

bool label_matches_any(const char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++)
		if (label_matches(*patterns, name))
			return true;
	return false;
}

char *hotspot_fold_digits(const char *name)
{
	char *folded = strdup(name);

	for (char *c = folded; c && *c; c++)
		if (*c >= '0' && *c <= '9')
			*c = '#';
	return folded;
}
