#include "model/hotspot_sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "model/hotspots.h"

#define BEFORE "before" /* what comes before the first phase */
#define WHOLE "run"     /* everything, where the target told of no phases */
#define NAMES_KEPT 8        /* of the phases of a section */
#define NAMES_COMPARED 1000 /* past so many phases nobody reads their names */
#define NAMES_LISTED 20

_Static_assert(HOTSPOT_PHASES_MAX <= SECTIONS_MAX, "phases need sections");

void sections_release(struct sections *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->items[i].phases);
	free(s->of_phase);
	*s = (struct sections){0};
}

static int sections_init(struct sections *s, const struct phases *phases, struct error *err)
{
	*s = (struct sections){.phases = phases, .outside = SECTION_NONE};
	s->of_phase = malloc(phases->count + 1);
	if (!s->of_phase)
		return error_set(err, "out of memory for %zu phases", phases->count);
	memset(s->of_phase, SECTION_NONE, phases->count + 1);
	return 0;
}

static uint8_t add(struct sections *s, const char *name)
{
	s->items[s->count] = (struct section){.name = name, .wall_s = NAN};
	return (uint8_t)s->count++;
}

/* Whether an earlier phase of the section has that name. */
static bool named_before(const struct sections *s, size_t i)
{
	for (size_t k = 0; k < i && k < NAMES_COMPARED; k++)
		if (s->of_phase[k] == s->of_phase[i] &&
		    strcmp(s->phases->items[k].name, s->phases->items[i].name) == 0)
			return true;
	return false;
}

/* Names and seconds of the phases that a section is made of: "parse, sort". */
static int describe(struct sections *s, unsigned section, struct error *err)
{
	CLEANUP(buf_release) struct buf names;
	struct section *of = &s->items[section];

	buf_init(&names);
	for (size_t i = 0; i < s->phases->count; i++) {
		const struct phase *phase = &s->phases->items[i];

		if (s->of_phase[i] != section)
			continue;
		of->first = isnan(of->wall_s) ? i : of->first;
		of->wall_s = (isnan(of->wall_s) ? 0 : of->wall_s) + (double)(phase->end - phase->start) / 1e9;
		if (i >= NAMES_COMPARED || named_before(s, i))
			continue;
		if (of->phase_names++ < NAMES_KEPT)
			buf_printf(&names, "%s%s", names.length ? ", " : "", phase->name);
	}
	if (of->phase_names && !(of->phases = buf_detach(&names)))
		return error_set(err, "out of memory for %zu phases", s->phases->count);
	return 0;
}

static int describe_all(struct sections *s, struct error *err)
{
	for (unsigned i = 0; i < s->count; i++)
		if (describe(s, i, err) < 0)
			return -1;
	return 0;
}

int sections_of_groups(struct sections *ret, const struct phases *phases, const char *wanted, struct error *err)
{
	const char *outside = phases->count ? BEFORE : WHOLE;
	uint8_t of_group[GROUP_COUNT];

	memset(of_group, SECTION_NONE, sizeof of_group);
	if (sections_init(ret, phases, err) < 0)
		return -1;
	if (!wanted || strcmp(wanted, outside) == 0)
		ret->outside = add(ret, outside);
	for (size_t i = 0; i < phases->count; i++) {
		const struct phase *phase = &phases->items[i];
		const char *name = phase_group_name(phase->group);

		if (wanted && !phase_is(phase, wanted))
			continue;
		/* Phases that were asked for by name stand under that name. */
		if (wanted && strcmp(wanted, phase_group_name(phase->group)) != 0)
			name = wanted;
		if (of_group[phase->group] == SECTION_NONE)
			of_group[phase->group] = add(ret, name);
		ret->of_phase[i] = of_group[phase->group];
	}
	return describe_all(ret, err);
}

int sections_of_phases(struct sections *ret, const struct phases *phases, struct error *err)
{
	if (sections_init(ret, phases, err) < 0)
		return -1;
	for (size_t i = 0; i < phases->count; i++) {
		const struct phase *phase = &phases->items[i];
		uint8_t at = 0;

		if (phase->group != GROUP_OTHER)
			continue;
		while (at < ret->count && strcmp(ret->items[at].name, phase->name) != 0)
			at++;
		if (at == ret->count && ret->count == HOTSPOT_PHASES_MAX) {
			sections_release(ret);
			return sections_init(ret, phases, err);
		}
		ret->of_phase[i] = at < ret->count ? at : add(ret, phase->name);
	}
	if (ret->count < 2) {
		sections_release(ret);
		return sections_init(ret, phases, err);
	}
	return describe_all(ret, err);
}

unsigned sections_at(const struct sections *s, int64_t t)
{
	size_t phase = phases_at(s->phases, t);

	return phase == SIZE_MAX ? s->outside : s->of_phase[phase];
}

void hotspots_list_groups(const struct phases *phases, bool before, struct buf *out)
{
	bool seen[GROUP_COUNT] = {false};
	size_t listed = 0;

	if (before && phases->count)
		buf_puts(out, BEFORE);
	if (!phases->count)
		buf_printf(out, "%s%s", before && phases->count ? ", " : "", WHOLE);
	for (size_t i = 0; i < phases->count; i++) {
		enum phase_group group = phases->items[i].group;

		if (!seen[group])
			buf_printf(out, "%s%s", i || before ? ", " : "", phase_group_name(group));
		seen[group] = true;
	}
	for (size_t i = 0; i < phases->count && i < NAMES_COMPARED; i++) {
		const struct phase *phase = &phases->items[i];
		bool known = strcmp(phase->name, phase_group_name(phase->group)) == 0;

		for (size_t k = 0; k < i && !known; k++)
			known = strcmp(phases->items[k].name, phase->name) == 0;
		if (known)
			continue;
		if (listed == NAMES_LISTED) {
			buf_puts(out, ", ...");
			break;
		}
		buf_printf(out, "%s%s", listed++ ? ", " : "; phases: ", phase->name);
	}
}
