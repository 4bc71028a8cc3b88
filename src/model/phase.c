#include "model/phase.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static const char *const group_names[GROUP_COUNT] = {
	[GROUP_LOAD] = "load",
	[GROUP_WARMUP] = "warmup",
	[GROUP_PREFILL] = "prefill",
	[GROUP_DECODE] = "decode",
	[GROUP_SERVING] = "serving",
	[GROUP_SHUTDOWN] = "shutdown",
	[GROUP_OTHER] = "other",
};

const char *phase_group_name(enum phase_group group)
{
	return group_names[group];
}

enum phase_group phase_group_of(const char *name)
{
	for (enum phase_group g = 0; g < GROUP_COUNT; g++)
		if (strcmp(group_names[g], name) == 0)
			return g;
	return GROUP_OTHER;
}

void marks_init(struct marks *m)
{
	*m = (struct marks){0};
}

void marks_release(struct marks *m)
{
	free(m->items);
	marks_init(m);
}

/* Room for one more of `size` bytes in an array that starts with NULL and 0. */
static int grow(void *items, size_t *room, size_t count, size_t size, struct error *err)
{
	void **array = items;
	size_t wanted = *room ? 2 * *room : 16;
	void *moved;

	if (count < *room)
		return 0;
	moved = reallocarray(*array, wanted, size);
	if (!moved)
		return error_set(err, "out of memory for %zu phases", wanted);
	*array = moved;
	*room = wanted;
	return 0;
}

static void set_name(char name[PHASE_NAME_MAX], const char *text, size_t length)
{
	struct buf clean;
	size_t cut;

	buf_init(&clean);
	utf8_append_clean(&clean, text, utf8_cut(text, length, (size_t)4 * PHASE_NAME_MAX));
	for (size_t i = 0; i < clean.length; i++)
		if (iscntrl((unsigned char)clean.text[i]))
			clean.text[i] = '?';
	cut = utf8_cut(clean.text, clean.length, PHASE_NAME_MAX - 1);
	memcpy(name, clean.text, cut);
	name[cut] = '\0';
	if (!cut)
		strcpy(name, "unnamed");
	buf_release(&clean);
}

int marks_add(struct marks *m, int64_t t, enum phase_group group, const char *name, size_t length, struct error *err)
{
	struct mark *mark;

	if (grow(&m->items, &m->room, m->count, sizeof *m->items, err) < 0)
		return -1;
	mark = &m->items[m->count++];
	mark->t = t;
	mark->group = group;
	set_name(mark->name, name, length);
	return 0;
}

void phases_init(struct phases *p)
{
	*p = (struct phases){0};
}

void phases_release(struct phases *p)
{
	free(p->items);
	phases_init(p);
}

static int add_phase(struct phases *p, const char *name, enum phase_group group, int64_t start, struct error *err)
{
	struct phase *phase;

	if (grow(&p->items, &p->room, p->count, sizeof *p->items, err) < 0)
		return -1;
	if (p->count)
		p->items[p->count - 1].end = start;
	phase = &p->items[p->count++];
	*phase = (struct phase){.group = group, .start = start, .end = start};
	snprintf(phase->name, sizeof phase->name, "%s", name);
	return 0;
}

int phases_from_marks(struct phases *ret, const struct marks *marks, int64_t start, int64_t end, const char *before,
		      bool keep_empty, struct warnings *warnings, struct error *err)
{
	int64_t now = start;
	size_t backwards = 0, outside = 0;

	if (end < start)
		end = start;
	if (marks->count == 0) {
		if (add_phase(ret, "run", GROUP_OTHER, start, err) < 0)
			return -1;
	} else if (marks->items[0].t > start && add_phase(ret, before, GROUP_OTHER, start, err) < 0) {
		return -1;
	}
	for (size_t i = 0; i < marks->count; i++) {
		const struct mark *mark = &marks->items[i];
		int64_t t = mark->t;

		if (t < start || t > end) {
			outside++;
			t = t < start ? start : end;
		}
		if (t < now) {
			backwards++;
			t = now;
		}
		now = t;
		if (!keep_empty && ret->count && ret->items[ret->count - 1].start == t)
			ret->count--;
		if (add_phase(ret, mark->name, mark->group, t, err) < 0)
			return -1;
	}
	ret->items[ret->count - 1].end = end;
	if (outside)
		warnings_add(warnings, "%zu phase mark%s lay outside the run and %s moved to its nearest end.", outside,
			     outside == 1 ? "" : "s", outside == 1 ? "was" : "were");
	if (backwards)
		warnings_add(warnings, "%zu phase mark%s went back in time and %s moved to the mark before.", backwards,
			     backwards == 1 ? "" : "s", backwards == 1 ? "was" : "were");
	return 0;
}

size_t phases_at(const struct phases *p, int64_t t)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->items[middle].start <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : SIZE_MAX;
}

bool phase_is(const struct phase *p, const char *name)
{
	return strcmp(p->name, name) == 0 || strcmp(phase_group_name(p->group), name) == 0;
}

double phases_group_seconds(const struct phases *p, enum phase_group group)
{
	double seconds = NAN;

	for (size_t i = 0; i < p->count; i++) {
		if (p->items[i].group != group)
			continue;
		if (isnan(seconds))
			seconds = 0;
		seconds += (double)(p->items[i].end - p->items[i].start) / 1e9;
	}
	return seconds;
}
