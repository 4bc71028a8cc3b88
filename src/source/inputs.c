/* The files that the target reads, and how much of each the page cache holds: before the command starts for those that
 * its command line names, when first seen for those that are found open soon afterwards.
 *
 * Of files it records paths, sizes and what is cached; nothing is ever read of them. */
#include "source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pagecache.h"
#include "base/procfs.h"
#include "source/inputs_find.h"
#include "source/reading.h"

#define LOOK_EVERY_NS (5 * NS_PER_S)
/* And not before LOOK_FACTOR times its cost: 1% of a core at most, however many marks. */
#define LOOK_AT_MARKS_NS NS_PER_S
#define FIRST_LOOK_LONGEST_NS (500 * NS_PER_MS)
#define LOOK_FACTOR 100
/* A program opens its inputs soon: so often in the first seconds, then more rarely, then no more. */
#define SEARCH_EAGER_NS (10 * NS_PER_S)
#define SEARCH_EAGER_EVERY_NS (200 * NS_PER_MS)
#define SEARCH_EVERY_NS (2 * NS_PER_S)
#define SEARCH_UNTIL_NS (60 * NS_PER_S)
#define SEARCH_FACTOR 400 /* at most 0.25% of a core */

struct inputs_state {
	struct inputs inputs;
	struct input_series {
		int size, cached, evicted; /* -1: not defined */
		size_t number;
	} series[INPUTS_MAX];
	size_t numbers; /* that are taken: a file that could never be opened has none */
	bool begun;
	int64_t begun_at, looked_at;
	struct pace look, search;
};

static int define(struct source_context *c, size_t number, const char *what, const struct input *input)
{
	char name[64], scope[2048];

	snprintf(name, sizeof name, "input.%zu.%s", number, what);
	snprintf(scope, sizeof scope, "%s %s", input->opened ? "opened" : "file", input->path);
	return series_define(c, &(struct series_desc){name, "bytes", "inputs", scope, SERIES_GAUGE});
}

static void put(struct source_context *c, int *series, size_t number, const char *what, const struct input *input,
		int64_t now, double value)
{
	if (isnan(value))
		return;
	if (*series < 0)
		*series = define(c, number, what, input);
	timeline_put(c->timeline, *series, now, value);
}

/* A file that has gone meanwhile gets no more points. */
static void look_one(struct inputs_state *s, struct source_context *c, size_t i, int64_t now)
{
	const struct input *input = &s->inputs.items[i];
	struct input_series *to = &s->series[i];
	struct pagecache p;

	if (pagecache_look(input->path, &p, NULL) < 0)
		return;
	if (to->size < 0)
		to->number = s->numbers++;
	put(c, &to->size, to->number, "size", input, now, (double)p.size);
	put(c, &to->cached, to->number, "cached", input, now, p.cached);
	put(c, &to->evicted, to->number, "evicted", input, now, p.evicted);
	if (!p.how)
		warnings_add(c->warnings,
			     "How much of some input files the page cache holds is not known: the kernel tells it "
			     "only to those who own a file or may write it, and not for every file system.");
}

static void look_from(struct inputs_state *s, struct source_context *c, size_t first, int64_t now)
{
	for (size_t i = first; i < s->inputs.count; i++)
		look_one(s, c, i, now);
}

/* The command waits for the first look: files that it has no time for are left out, since what is cached of them later
 * would not be what was before the run. */
static void look_first(struct inputs_state *s, struct source_context *c, int64_t now)
{
	int64_t began = clock_mono_ns();
	size_t looked = 0;

	while (looked < s->inputs.count && clock_mono_ns() - began < FIRST_LOOK_LONGEST_NS)
		look_one(s, c, looked++, now);
	if (looked == s->inputs.count)
		return;
	warnings_add(c->warnings, "Of %zu large input files only the first %zu are watched: looking took too long.",
		     s->inputs.count, looked);
	while (s->inputs.count > looked)
		free(s->inputs.items[--s->inputs.count].path);
}

static void look(struct inputs_state *s, struct source_context *c, int64_t now)
{
	s->look.began = clock_mono_ns();
	if (s->looked_at == 0)
		look_first(s, c, now);
	else
		look_from(s, c, 0, now);
	pace_done(&s->look, now, PACE_FACTOR);
	pace_at_least(&s->look, now, LOOK_EVERY_NS);
	s->looked_at = now;
}

static bool look_is_due(const struct inputs_state *s, const struct source_context *c, int64_t now)
{
	int64_t least = LOOK_FACTOR * s->look.cost > LOOK_AT_MARKS_NS ? LOOK_FACTOR * s->look.cost : LOOK_AT_MARKS_NS;

	if (!c->exact)
		return now >= s->look.next;
	/* A mark, or the end of the run, which is read in any case. */
	return now - s->looked_at >= least || !process_find(c->processes, c->command);
}

static void search(struct inputs_state *s, struct source_context *c, int64_t now)
{
	int64_t age = now - s->begun_at;
	size_t known = s->inputs.count;

	if (now < s->search.next || age > SEARCH_UNTIL_NS)
		return;
	s->search.began = clock_mono_ns();
	inputs_opened(&s->inputs, c->processes, c->warnings);
	pace_done(&s->search, now, SEARCH_FACTOR);
	pace_at_least(&s->search, now, age < SEARCH_EAGER_NS ? SEARCH_EAGER_EVERY_NS : SEARCH_EVERY_NS);
	look_from(s, c, known, now);
}

static void inputs_slow(void *state, struct source_context *c, int64_t now)
{
	struct inputs_state *s = state;

	/* The first call comes before the command runs: until then, what its process has open is ours. */
	if (!s->begun) {
		s->begun = true;
		s->begun_at = now;
		look(s, c, now);
		return;
	}
	search(s, c, now);
	if (s->inputs.count > 0 && look_is_due(s, c, now))
		look(s, c, now);
}

static void inputs_close(void *state)
{
	struct inputs_state *s = state;

	inputs_release(&s->inputs);
	free(s);
}

static int inputs_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	CLEANUP(fd_cleanup) int fd = procfs_open("self/fd");
	struct inputs_state *s;

	if (fd < 0)
		return error_set(why_not, "%s/self/fd: %s; mount the proc file system", procfs_root(), strerror(-fd));
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	for (size_t i = 0; i < INPUTS_MAX; i++)
		s->series[i] = (struct input_series){.size = -1, .cached = -1, .evicted = -1};
	inputs_named(&s->inputs, c->argv);
	*ret_state = s;
	return 0;
}

const struct source source_inputs = {
	.name = "inputs",
	.summary = "large files that the target reads, and how much of them was in the page cache",
	.open = inputs_open,
	.slow = inputs_slow,
	.close = inputs_close,
};
