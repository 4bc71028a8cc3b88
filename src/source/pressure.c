/* Pressure stall information of the whole machine, from /proc/pressure: for how long some, or all, tasks that wanted to
 * run stood still for want of CPU, memory or I/O. */
#include "source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"
#include "source/psi.h"
#include "source/reading.h"

#define FILES 3

static const struct {
	const char *name, *some, *full; /* full NULL: means nothing for the whole machine's CPUs */
} resources[FILES] = {
	{"cpu", "pressure.cpu.some", NULL},
	{"memory", "pressure.memory.some", "pressure.memory.full"},
	{"io", "pressure.io.some", "pressure.io.full"},
};

struct pressure_state {
	int fds[FILES], some[FILES], full[FILES];
	struct pace pace;
};

static void pressure_close(void *state)
{
	struct pressure_state *s = state;

	for (size_t i = 0; i < FILES; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	free(s);
}

static int define(struct source_context *c, const char *name)
{
	return series_define(c, &(struct series_desc){name, "s", "pressure", "machine", SERIES_COUNTER});
}

static int explain(struct error *why_not, const char *name, ssize_t failed)
{
	if (failed == -ENOENT)
		return error_set(why_not,
				 "%s/pressure/%s does not exist; it takes a kernel of 4.20 or newer with CONFIG_PSI, "
				 "and the boot parameter psi=1 where that is off by default",
				 procfs_root(), name);
	if (failed == -EOPNOTSUPP)
		return error_set(why_not, "%s/pressure/%s: the kernel has it turned off; boot with psi=1",
				 procfs_root(), name);
	if (failed == 0)
		return error_set(why_not, "%s/pressure/%s has no total= in it", procfs_root(), name);
	return error_set(why_not, "%s/pressure/%s: %s", procfs_root(), name, strerror((int)-failed));
}

static int pressure_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct pressure_state *s = calloc(1, sizeof *s);
	struct psi psi;
	ssize_t failed = 0;
	size_t open_files = 0, bad = 0;

	if (!s)
		return error_set(why_not, "out of memory");
	for (size_t i = 0; i < FILES; i++) {
		ssize_t got;

		s->some[i] = s->full[i] = -1;
		s->fds[i] = procfs_open("pressure/%s", resources[i].name);
		/* Where it is turned off, opening may succeed and reading fail. */
		got = s->fds[i] < 0 ? s->fds[i] : psi_read(s->fds[i], &psi);
		if (got > 0) {
			open_files++;
			continue;
		}
		failed = got;
		bad = i;
		if (s->fds[i] >= 0)
			close(s->fds[i]);
		s->fds[i] = -1;
	}
	if (open_files == 0) {
		pressure_close(s);
		return explain(why_not, resources[bad].name, failed);
	}
	for (size_t i = 0; i < FILES; i++) {
		if (s->fds[i] < 0)
			continue;
		s->some[i] = define(c, resources[i].some);
		if (resources[i].full)
			s->full[i] = define(c, resources[i].full);
	}
	*ret_state = s;
	return 0;
}

static void pressure_slow(void *state, struct source_context *c, int64_t now)
{
	struct pressure_state *s = state;

	if (!pace_due(&s->pace, c, now))
		return;
	for (size_t i = 0; i < FILES; i++) {
		struct psi psi;

		if (s->fds[i] < 0 || psi_read(s->fds[i], &psi) <= 0)
			continue;
		timeline_put(c->timeline, s->some[i], now, psi.some_s);
		timeline_put(c->timeline, s->full[i], now, psi.full_s);
	}
	pace_done(&s->pace, now, PACE_FACTOR);
}

const struct source source_pressure = {
	.name = "pressure",
	.summary = "time lost waiting for CPU, memory and I/O, of the whole machine (PSI)",
	.open = pressure_open,
	.slow = pressure_slow,
	.close = pressure_close,
};
