#include "model/bench.h"

#include <math.h>
#include <stdlib.h>

const char *const bench_extra_names[BENCH_EXTRAS] = {"setup", "prepare", "conclude", "cleanup", "output"};

struct bench_run *bench_runs_add(struct bench_runs *r)
{
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 32;
		struct bench_run *items = reallocarray(r->items, room, sizeof *items);

		if (!items)
			return NULL;
		r->items = items;
		r->room = room;
	}
	r->items[r->count] = (struct bench_run){.wall_s = NAN};
	return &r->items[r->count++];
}

const char *bench_label(const struct bench_command *c)
{
	return c->name ? c->name : c->line;
}

static void release_command(struct bench_command *c)
{
	free(c->line);
	free(c->name);
	for (size_t i = 0; i < BENCH_EXTRAS; i++)
		free(c->extras[i]);
	for (size_t i = 0; c->words && c->words[i]; i++)
		free(c->words[i]);
	free(c->words);
	for (size_t i = 0; i < c->parameter_count; i++) {
		free(c->parameters[i].name);
		free(c->parameters[i].value);
	}
	free(c->parameters);
	free(c->runs.items);
}

void bench_release(struct bench *b)
{
	for (size_t i = 0; i < b->count; i++)
		release_command(&b->commands[i]);
	free(b->commands);
	free(b->shell);
	free(b->startup.items);
	*b = (struct bench){0};
}
