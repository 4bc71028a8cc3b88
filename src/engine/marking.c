#include "engine/marking.h"

#include <string.h>

int64_t marking_last(const struct engine_result *r, const struct engine_context *c)
{
	return r->marks.count ? r->marks.items[r->marks.count - 1].t : c->start;
}

int marking_add(struct engine_result *r, const struct engine_context *c, int64_t t, enum phase_group group,
		const char *name, struct error *err)
{
	struct marks *marks = &r->marks;
	const struct mark *last;

	if (t > c->end)
		t = c->end;
	if (t < marking_last(r, c))
		t = marking_last(r, c);
	if (marks->count && marks->items[marks->count - 1].t == t)
		marks->count--;
	last = marks->count ? &marks->items[marks->count - 1] : NULL;
	if (last && last->group == group && strcmp(last->name, name) == 0)
		return 0;
	if (marks->count >= MARKING_MAX) {
		warnings_add(&r->warnings, "The output names more than %d phases; the later ones are missing.",
			     MARKING_MAX);
		return 0;
	}
	return marks_add(marks, t, group, name, strlen(name), err);
}
