/* Exports a profile that a test describes in JSON on standard input, so that the test knows the truth about it:
 *
 *   target_export FORMAT [GROUP] <<END
 *   {"hz": 100, "start": 0, "end": 9000, "by_line": false, "phases": [[NAME, START, END], ...],
 *    "images": [[PID, EXE], ...], "threads": [[IMAGE, TID, NAME], ...], "modules": [PATH, ...],
 *    "functions": [[MODULE, NAME, FILE or null, LINE], ...],
 *    "stacks": [[[MODULE, ADDRESS, [[FUNCTION, LINE], ...innermost inlined first]], ...outermost first], ...],
 *    "samples": [[T, THREAD, WEIGHT, STACK or -1], ...]}
 *   END */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/exporter.h"

static json_int_t number(const json_t *row, size_t at)
{
	return json_integer_value(json_array_get(row, at));
}

static const char *text(const json_t *row, size_t at)
{
	return json_string_value(json_array_get(row, at));
}

static int add_names(struct profile *p, const json_t *root, struct error *err)
{
	const json_t *row;
	uint32_t ignored;
	size_t i;
	int got = 0;

	json_array_foreach(json_object_get(root, "images"), i, row)
		got |= profile_add_image(p, (int)number(row, 0), 1, 0, text(row, 1), "", err);
	json_array_foreach(json_object_get(root, "threads"), i, row)
		got |= profile_add_thread(p, (uint32_t)number(row, 0), (int)number(row, 1), text(row, 2), err);
	json_array_foreach(json_object_get(root, "modules"), i, row) {
		struct profile_module m = {
			.path = (char *)json_string_value(row), .build_id = {0xab}, .build_id_length = 20};

		got |= profile_add_module(p, &m, err);
	}
	json_array_foreach(json_object_get(root, "functions"), i, row)
		got |= profile_add_function(p, (uint32_t)number(row, 0), true, text(row, 1), text(row, 2),
					    (uint32_t)number(row, 3), &ignored, err);
	return got < 0 ? -1 : 0;
}

/* The node of a stack's innermost frame, or -1. */
static int add_stack(struct profile *p, const json_t *stack, struct error *err)
{
	const json_t *place, *line;
	size_t i, j;
	int node = 0;

	json_array_foreach(stack, i, place) {
		struct profile_frame frames[16];
		const json_t *lines = json_array_get(place, 2);
		uint32_t location;

		node = profile_add_node(p, (uint32_t)node, (uint32_t)number(place, 0), (uint64_t)number(place, 1), err);
		if (node < 0)
			return -1;
		location = p->nodes[node].location;
		json_array_foreach(lines, j, line)
			frames[j] = (struct profile_frame){(uint32_t)number(line, 0), (uint32_t)number(line, 1)};
		if (json_array_size(lines) && !p->locations[location].count &&
		    profile_set_frames(p, location, frames, json_array_size(lines), err) < 0)
			return -1;
	}
	return node;
}

static int add_samples(struct profile *p, const json_t *root, struct error *err)
{
	const json_t *stacks = json_object_get(root, "stacks"), *row;
	CLEANUP(free_cleanup) int *nodes = calloc(json_array_size(stacks) + 1, sizeof *nodes);
	size_t i;

	json_array_foreach(stacks, i, row) {
		nodes[i] = add_stack(p, row, err);
		if (nodes[i] < 0)
			return -1;
	}
	json_array_foreach(json_object_get(root, "samples"), i, row) {
		json_int_t stack = number(row, 3);
		struct profile_sample s = {.t = number(row, 0),
					   .thread = (uint32_t)number(row, 1),
					   .node = stack < 0 ? 0 : (uint32_t)nodes[stack],
					   .weight = (uint32_t)number(row, 2)};

		if (profile_add_sample(p, &s, err) < 0)
			return -1;
	}
	return profile_sort(p, err);
}

static void add_phases(struct phases *phases, const json_t *root)
{
	const json_t *list = json_object_get(root, "phases"), *row;
	size_t i;

	phases->items = calloc(json_array_size(list) + 1, sizeof *phases->items);
	json_array_foreach(list, i, row) {
		struct phase *p = &phases->items[phases->count++];

		snprintf(p->name, sizeof p->name, "%s", text(row, 0));
		p->group = phase_group_of(p->name);
		p->start = number(row, 1);
		p->end = number(row, 2);
	}
}

int main(int argc, char **argv)
{
	const struct exporter *e = argc > 1 ? exporter_find(argv[1]) : NULL;
	CLEANUP(json_cleanup) json_t *root = json_loadf(stdin, 0, NULL);
	CLEANUP(profile_release) struct profile p;
	CLEANUP(phases_release) struct phases phases;
	struct export_input in = {.profile = &p, .phases = &phases, .group = argc > 2 ? argv[2] : NULL};
	struct error err = {"no such format"};

	profile_init(&p);
	phases_init(&phases);
	p.hz = (unsigned)json_get_number(root, "hz", 0);
	p.period_s = 1.0 / p.hz;
	add_phases(&phases, root);
	in.by_line = json_is_true(json_object_get(root, "by_line"));
	in.start = (int64_t)json_get_number(root, "start", 0);
	in.end = (int64_t)json_get_number(root, "end", 0);
	in.label = json_get_text(root, "label", NULL);
	in.command = json_get_text(root, "command", NULL);
	if (!e || add_names(&p, root, &err) < 0 || add_samples(&p, root, &err) < 0 ||
	    e->write(&in, stdout, &err) != EXPORT_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return 0;
}
