/* Input and output of the tree, from /proc/PID/io: at the storage layer, and through system calls.
 *
 * What a process did between the last reading and its end is seen only where its parent is in the tree and waits for
 * it; see model/usage.h. */
#include "source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"
#include "source/reading.h"

#define FACTOR 5000 /* at most 0.02% of a core */
#define PROCESSES_PER_CALL 256

static const struct figure {
	const char *series, *unit, *key;
	enum usage usage;
} figures[] = {
	{"io.read_bytes", "bytes", "read_bytes:", USAGE_READ_BYTES},
	{"io.write_bytes", "bytes", "write_bytes:", USAGE_WRITE_BYTES},
	{"io.read_chars", "bytes", "rchar:", USAGE_READ_CHARS},
	{"io.write_chars", "bytes", "wchar:", USAGE_WRITE_CHARS},
	{"io.read_calls", "count", "syscr:", USAGE_READ_CALLS},
	{"io.write_calls", "count", "syscw:", USAGE_WRITE_CALLS},
};

#define FIGURES (sizeof figures / sizeof *figures)

struct io_state {
	int series[FIGURES];
	size_t at; /* the process that the next call starts with */
	bool any;  /* something could be read */
	struct pace pace;
};

static int io_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct io_state *s;
	char text[512];
	ssize_t length = procfs_read_file(text, sizeof text, "self/io");

	if (length == -ENOENT)
		return error_set(why_not, "%s/self/io does not exist; it takes a kernel with CONFIG_TASK_IO_ACCOUNTING",
				 procfs_root());
	if (length < 0)
		return error_set(why_not, "%s/self/io: %s", procfs_root(), strerror((int)-length));
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	for (size_t i = 0; i < FIGURES; i++)
		s->series[i] = series_define(
			c, &(struct series_desc){figures[i].series, figures[i].unit, "io", "tree", SERIES_COUNTER});
	*ret_state = s;
	return 0;
}

static void take(struct io_state *s, struct process_table *t, struct process *p, const struct scan_key keys[FIGURES])
{
	for (size_t i = 0; i < FIGURES; i++) {
		if (!keys[i].found || keys[i].value > INT64_MAX)
			continue;
		usage_read(t, p, figures[i].usage, (int64_t)keys[i].value);
		s->any = true;
	}
}

static void read_process(struct io_state *s, struct source_context *c, struct process *p)
{
	struct scan_key keys[FIGURES];
	char text[512];
	ssize_t length = living_read_once(p, "io", text, sizeof text);

	if (length == -EACCES || length == -EPERM) {
		warnings_add(c->warnings,
			     "the input and output of processes of other users is not known: reading "
			     "%s/PID/io takes CAP_SYS_PTRACE there",
			     procfs_root());
		return;
	}
	if (length <= 0)
		return;
	for (size_t i = 0; i < FIGURES; i++)
		keys[i].name = figures[i].key;
	scan_keys(text, (size_t)length, keys, FIGURES);
	take(s, c->processes, p, keys);
}

static void io_slow(void *state, struct source_context *c, int64_t now)
{
	struct io_state *s = state;
	size_t visited = 0;

	if (!pace_due(&s->pace, c, now))
		return;
	for (size_t turns = 0; turns < c->processes->count && visited < PROCESSES_PER_CALL; turns++, s->at++) {
		struct process *p;

		if (s->at >= c->processes->count)
			s->at = 0;
		p = &c->processes->items[s->at];
		/* Without CPU time there was no input or output. */
		if (!p->alive || (p->clock_ns >= 0 && p->clock_ns == p->clock_at_io))
			continue;
		p->clock_at_io = p->clock_ns;
		read_process(s, c, p);
		visited++;
	}
	pace_done(&s->pace, now, FACTOR);
	for (int round = 0; c->exact && round < 2; round++) /* as in cpu.c */
		usage_end_round(c->processes);
	for (size_t i = 0; s->any && i < FIGURES; i++)
		timeline_put(c->timeline, s->series[i], now, (double)c->processes->used[figures[i].usage]);
}

static void io_close(void *state)
{
	free(state);
}

const struct source source_io = {
	.name = "io",
	.summary = "bytes and calls of the target's reading and writing",
	.open = io_open,
	.slow = io_slow,
	.close = io_close,
};
