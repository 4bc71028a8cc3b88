/* Sources under test: what they put into the timeline, by name. */
#ifndef ASSAY_TESTS_SOURCES_H
#define ASSAY_TESTS_SOURCES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_proc.h"
#include "source/source.h"

#define SERIES_ROOM 512

struct shown {
	char name[64], scope[64], unit[16];
	enum series_kind kind;
	double value, lowest, highest; /* NaN: no point yet */
	size_t points;
};

static struct shown shown[SERIES_ROOM];
static size_t shown_count;

static inline void sources_define(void *context, uint32_t id, const struct series_desc *desc)
{
	struct shown *s = &shown[id];

	(void)context;
	assert_true(id < SERIES_ROOM);
	shown_count = id + 1;
	*s = (struct shown){.kind = desc->kind, .value = NAN, .lowest = NAN, .highest = NAN};
	snprintf(s->name, sizeof s->name, "%s", desc->name);
	snprintf(s->scope, sizeof s->scope, "%s", desc->scope);
	snprintf(s->unit, sizeof s->unit, "%s", desc->unit);
	for (size_t i = 0; i < id; i++)
		assert_string_not_equal(shown[i].name, s->name);
}

static inline void sources_points(void *context, int64_t t, const struct timeline_point *points, size_t count)
{
	(void)context, (void)t;
	for (size_t i = 0; i < count; i++) {
		struct shown *s = &shown[points[i].id];

		if (s->kind == SERIES_COUNTER && s->points)
			assert_true(points[i].value >= s->value);
		s->value = points[i].value;
		s->lowest = fmin(s->lowest, s->value);
		s->highest = fmax(s->highest, s->value);
		s->points++;
	}
}

static inline const struct shown *series_of(const char *name)
{
	for (size_t i = 0; i < shown_count; i++)
		if (strcmp(shown[i].name, name) == 0)
			return &shown[i];
	return NULL;
}

/* Its last value; NaN where it has none. */
static inline double last_of(const char *name)
{
	const struct shown *s = series_of(name);

	return s ? s->value : NAN;
}

static inline void assert_last(const char *name, double expected)
{
	double value = last_of(name);

	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%s is %.17g, not %.17g", name, value, expected);
}

/* The context of a run with one process, the command. */
struct stage {
	struct timeline timeline;
	struct process_table table;
	struct warnings warnings;
	struct source_context context;
	const struct source *source[8];
	void *states[8];
	size_t count;
};

static inline void stage_init(struct stage *s, pid_t command)
{
	*s = (struct stage){0};
	shown_count = 0;
	timeline_init(&s->timeline, (struct timeline_sink){NULL, sources_define, sources_points});
	process_table_init(&s->table);
	warnings_init(&s->warnings);
	s->context = (struct source_context){
		.timeline = &s->timeline,
		.processes = &s->table,
		.warnings = &s->warnings,
		.command = command,
		.interval_ns = 10000000,
	};
}

static inline void stage_open(struct stage *s, const struct source *source)
{
	struct error why;

	s->source[s->count] = source;
	if (source->open(&s->context, &s->states[s->count], &why) < 0)
		fail_msg("%s: %s", source->name, why.text);
	s->count++;
}

static inline void stage_tick(struct stage *s, int64_t now)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->source[i]->tick)
			s->source[i]->tick(s->states[i], &s->context, now);
	timeline_flush(&s->timeline, now);
}

static inline void stage_slow(struct stage *s, int64_t now)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->source[i]->slow)
			s->source[i]->slow(s->states[i], &s->context, now);
	timeline_flush(&s->timeline, now);
}

static inline void stage_release(struct stage *s)
{
	for (size_t i = 0; i < s->count; i++)
		s->source[i]->close(s->states[i]);
	process_table_release(&s->table);
	warnings_release(&s->warnings);
	timeline_release(&s->timeline);
}

#endif
