/* Profiles for the viewer speedscope: JSON with frames that all profiles of the file share, and profiles of samples
 * (stacks with weights) or of events (a function opens, a function closes). All profiles of one unit are added up. */
#include "ingest/graph_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "ingest/foreign_text.h"

#define SHOWN_COLUMNS 60
#define MEMORY_MAX ((size_t)1 << 30) /* of the file's values; what would take more is refused before */
#define VALUE_BYTES 100		     /* about what jansson takes for a number with its key */
#define CONTAINER_BYTES 220	     /* and for an object or a list */

static const struct {
	const char *name, *unit;
	double per_second;
} units[] = {
	{"nanoseconds", "ns", 1e-9}, {"microseconds", "us", 1e-6}, {"milliseconds", "ms", 1e-3},
	{"seconds", "s", 1},	     {"bytes", "bytes", 0},	   {"none", "samples", 0},
};

#define UNIT_COUNT (sizeof units / sizeof *units)

struct speedscope {
	const char *source;
	struct graph *graph;
	uint32_t *nodes; /* by frame */
	size_t frame_count;
	size_t unit;	/* in units; UNIT_COUNT: not known yet */
	double scale;	/* of this profile's values, to the graph's unit */
	size_t profile; /* its number, from 1, for errors */
	size_t left_out, unclosed;
	bool sampled; /* some profile has samples: calls are not known */
};

static int wrong(const struct speedscope *s, const char *what, size_t at, struct error *err)
{
	return error_set(err, "%s: profile %zu: %s %zu", s->source, s->profile, what, at);
}

/* What is not told is no text: NULL. */
static const char *text_of(const json_t *object, const char *key, size_t *ret_length)
{
	const json_t *value = json_object_get(object, key);

	*ret_length = json_string_length(value);
	return json_string_value(value);
}

static int read_frames(struct speedscope *s, const json_t *root, struct error *err)
{
	const json_t *frames = json_object_get(json_object_get(root, "shared"), "frames");
	size_t count = json_array_size(frames), i;
	const json_t *frame;

	if (!json_is_array(frames))
		return error_set(err, "%s: it has no list \"shared\".\"frames\"", s->source);
	s->nodes = calloc(count + 1, sizeof *s->nodes);
	if (!s->nodes)
		return error_set(err, "%s: out of memory for %zu functions", s->source, count);
	json_array_foreach(frames, i, frame)
	{
		double line = json_get_number(frame, "line", 0);
		size_t name_length, file_length;
		const char *name = text_of(frame, "name", &name_length), *file = text_of(frame, "file", &file_length);

		if (!name)
			return error_set(err, "%s: frame %zu has no name", s->source, i);
		if (graph_node(s->graph, file ? file : "", file_length,
			       line > 0 && line <= INT32_MAX ? (int64_t)line : 0, name, name_length, NULL, &s->nodes[i],
			       err) < 0)
			return error_prefix(err, "%s: frame %zu", s->source, i);
	}
	s->frame_count = count;
	return 0;
}

static bool frame_at(const struct speedscope *s, const json_t *value, uint32_t *ret)
{
	json_int_t frame = json_is_integer(value) ? json_integer_value(value) : -1;

	if (frame < 0 || (uint64_t)frame >= s->frame_count)
		return false;
	*ret = s->nodes[frame];
	return true;
}

static int go_down(struct speedscope *s, uint32_t *way, uint32_t node, struct error *err)
{
	if (graph_way(s->graph, *way, node, way, err) < 0)
		return error_prefix(err, "%s", s->source);
	return 0;
}

static int read_samples(struct speedscope *s, const json_t *profile, struct error *err)
{
	const json_t *samples = json_object_get(profile, "samples"), *weights = json_object_get(profile, "weights");
	const json_t *sample, *frame;
	size_t i, depth;

	s->sampled = true;
	if (!json_is_array(samples) || (weights && json_array_size(weights) != json_array_size(samples)))
		return error_set(err, "%s: profile %zu does not have one weight for each of its samples", s->source,
				 s->profile);
	json_array_foreach(samples, i, sample)
	{
		const json_t *given = weights ? json_array_get(weights, i) : NULL;
		double weight = given ? json_number_value(given) : 1;
		uint32_t way = 0, node;

		if (!json_is_array(sample) || (given && !json_is_number(given)) || weight < 0)
			return wrong(s, "no stack and weight in sample", i, err);
		json_array_foreach(sample, depth, frame)
		{
			if (!frame_at(s, frame, &node))
				return wrong(s, "a frame that is not in the file, in sample", i, err);
			if (go_down(s, &way, node, err) < 0)
				return -1;
		}
		if (way)
			s->graph->ways[way].self += weight * s->scale;
		else
			s->left_out += weight > 0;
	}
	return 0;
}

/* What has passed since the last event goes to the innermost function that is open. */
static int read_event(struct speedscope *s, const json_t *event, double *last, uint32_t *way, const char **ret_what,
		      struct error *err)
{
	const json_t *at = json_object_get(event, "at");
	const char *type = json_get_text(event, "type", "");
	uint32_t node;

	*ret_what = NULL;
	if (!json_is_number(at) || !frame_at(s, json_object_get(event, "frame"), &node))
		*ret_what = "no time or no known frame in event";
	else if (*last > json_number_value(at))
		*ret_what = "time goes back in event";
	else if (strcmp(type, "O") != 0 && strcmp(type, "C") != 0)
		*ret_what = "neither \"O\" nor \"C\" in event";
	else if (*type == 'C' && (!*way || s->graph->ways[*way].node != node))
		*ret_what = "a function closes that is not the innermost one, in event";
	if (*ret_what)
		return 0;
	if (*way && isfinite(*last))
		s->graph->ways[*way].self += (json_number_value(at) - *last) * s->scale;
	*last = json_number_value(at);
	if (*type == 'C') {
		*way = s->graph->ways[*way].parent;
		return 0;
	}
	if (go_down(s, way, node, err) < 0)
		return -1;
	s->graph->ways[*way].calls++;
	return 0;
}

static int read_events(struct speedscope *s, const json_t *profile, struct error *err)
{
	const json_t *events = json_object_get(profile, "events"), *event;
	double last = -INFINITY, end = json_get_number(profile, "endValue", -INFINITY);
	uint32_t way = 0;
	size_t i;

	if (!json_is_array(events))
		return error_set(err, "%s: profile %zu has no list of events", s->source, s->profile);
	json_array_foreach(events, i, event)
	{
		const char *what;

		if (read_event(s, event, &last, &way, &what, err) < 0)
			return -1;
		if (what)
			return wrong(s, what, i, err);
	}
	s->unclosed += way != 0;
	if (way && end > last && isfinite(last))
		s->graph->ways[way].self += (end - last) * s->scale;
	return 0;
}

static size_t unit_of(const char *name)
{
	size_t i = 0;

	while (i < UNIT_COUNT && strcmp(units[i].name, name) != 0 && strcmp(units[i].unit, name) != 0)
		i++;
	return i;
}

static int wrong_unit(const struct speedscope *s, const char *name, struct error *err)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	utf8_append_line(&shown, name, SHOWN_COLUMNS);
	return error_set(err, "%s: profile %zu has no known unit: '%s'", s->source, s->profile, shown.text);
}

static int read_profile(struct speedscope *s, const json_t *profile, struct error *err)
{
	const char *type = json_get_text(profile, "type", ""), *name = json_get_text(profile, "unit", "none");
	size_t unit = unit_of(name);
	const double *is, *wanted;

	if (unit == UNIT_COUNT)
		return wrong_unit(s, name, err);
	s->unit = s->unit == UNIT_COUNT ? unit : s->unit;
	is = &units[unit].per_second;
	wanted = &units[s->unit].per_second;
	if (unit != s->unit && (*is <= 0 || *wanted <= 0)) {
		if (graph_note(s->graph, "%s: profile %zu is left out: its unit is %s, and that of the others %s.",
			       s->source, s->profile, units[unit].name, units[s->unit].name) < 0)
			return error_set(err, "%s: out of memory", s->source);
		return 0;
	}
	s->scale = unit == s->unit ? 1 : *is / *wanted;
	if (strcmp(type, "sampled") == 0)
		return read_samples(s, profile, err);
	if (strcmp(type, "evented") == 0)
		return read_events(s, profile, err);
	return error_set(err, "%s: profile %zu is neither \"sampled\" nor \"evented\"", s->source, s->profile);
}

static int finish(struct speedscope *s, size_t profiles, struct error *err)
{
	struct graph *g = s->graph;
	double sum = 0;
	int noted = 0;

	if (g->way_count < 2)
		return error_set(err, "%s: its profiles hold no stacks", s->source);
	for (size_t i = 0; i < g->way_count; i++) {
		sum += g->ways[i].self;
		g->ways[i].calls = s->sampled ? -1 : g->ways[i].calls;
	}
	if (!isfinite(sum))
		return error_set(err, "%s: its weights add up to more than a number can hold", s->source);
	if (profiles > 1)
		noted |= graph_note(g, "%s: its %zu profiles are added up.", s->source, profiles);
	if (s->left_out)
		noted |= graph_note(g, "%s: %zu samples have no stack and are left out.", s->source, s->left_out);
	if (s->unclosed)
		noted |= graph_note(g, "%s: functions that never close are taken to run to the end, in %zu profiles.",
				    s->source, s->unclosed);
	if (noted < 0)
		return error_set(err, "%s: out of memory", s->source);
	if (graph_set_unit(g, units[s->unit].unit, units[s->unit].per_second, err) < 0 || graph_finish(g, err) < 0)
		return error_prefix(err, "%s", s->source);
	return 0;
}

/* That the values of a text fit into memory: strings are not looked at, so that it counts too many rather than too
 * few. */
static int check_size(const char *text, size_t length, const char *source, struct error *err)
{
	size_t bytes = length;

	for (size_t i = 0; i < length; i++)
		bytes += text[i] == ',' ? VALUE_BYTES : text[i] == '{' || text[i] == '[' ? CONTAINER_BYTES : 0;
	if (bytes > MEMORY_MAX)
		return error_set(err,
				 "%s: it would take %zu MiB of memory, and %zu MiB are the most: export a part of it",
				 source, bytes >> 20, MEMORY_MAX >> 20);
	return 0;
}

static int read_speedscope(const char *text, size_t length, const struct graph_reading *how, struct graph *ret,
			   struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = NULL;
	CLEANUP(free_cleanup) uint32_t *nodes = NULL;
	struct speedscope s = {.source = how->source, .graph = ret, .unit = UNIT_COUNT};
	const json_t *profiles, *profile;
	size_t i;
	int got;

	ret->source = graph_reader_speedscope.name;
	if (how->event && (s.unit = unit_of(how->event)) == UNIT_COUNT)
		return error_set(err,
				 "%s: there is no unit '%s' to choose profiles by; these are: nanoseconds, "
				 "microseconds, milliseconds, seconds, bytes, none",
				 how->source, how->event);
	if (check_size(text, length, how->source, err) < 0)
		return -1;
	root = json_read_text(how->source, text, length, err);
	if (!root)
		return -1;
	profiles = json_object_get(root, "profiles");
	if (!json_is_array(profiles))
		return error_set(err, "%s: it has no list \"profiles\"", how->source);
	got = read_frames(&s, root, err);
	nodes = s.nodes;
	json_array_foreach(profiles, i, profile)
	{
		s.profile = i + 1;
		if (got == 0)
			got = read_profile(&s, profile, err);
	}
	return got < 0 ? -1 : finish(&s, i, err);
}

static bool is_speedscope(const char *text, size_t length)
{
	return foreign_text_has_key(text, length, "shared") || foreign_text_has_key(text, length, "profiles");
}

const struct graph_reader graph_reader_speedscope = {
	.name = "speedscope",
	.summary = "profiles for the viewer speedscope (JSON)",
	.is = is_speedscope,
	.read = read_speedscope,
};
