#include "source/reading.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

int series_define(struct source_context *c, const struct series_desc *desc)
{
	return c->timeline ? timeline_define(c->timeline, desc) : -1;
}

bool pace_due(struct pace *pace, const struct source_context *c, int64_t now)
{
	if (now < pace->next && !c->exact)
		return false;
	pace->began = clock_mono_ns();
	return true;
}

void pace_done(struct pace *pace, int64_t now, int64_t factor)
{
	int64_t cost = clock_mono_ns() - pace->began;

	/* A clock of CPU time would be a system call, which costs as much as some of the files. */
	if (pace->cost == 0 || cost < pace->cost)
		pace->cost = cost;
	else
		pace->cost += (cost - pace->cost) / 8;
	pace->next = now + factor * pace->cost;
}

void pace_at_least(struct pace *pace, int64_t now, int64_t ns)
{
	if (pace->next < now + ns)
		pace->next = now + ns;
}

double running_total(struct running *r, double now)
{
	if (r->begun && (r->elsewhere || now + r->offset < r->last))
		r->offset = r->last - now;
	/* Rounding may leave the sum a little below. */
	if (!r->begun || now + r->offset > r->last)
		r->last = now + r->offset;
	r->begun = true;
	r->elsewhere = false;
	return r->last;
}

static ssize_t gone_is_zero(ssize_t length)
{
	return length == -ESRCH || length == -ENOENT ? 0 : length;
}

ssize_t living_read(struct source_context *c, struct process *p, int *place, const char *name, char *text, size_t size)
{
	ssize_t length;
	int fd;

	if (*place >= 0)
		return gone_is_zero(procfs_read_record(*place, text, size));
	fd = procfs_open("%d/%s", p->pid, name);
	if (fd < 0)
		return gone_is_zero(fd);
	/* Opened by pid: whether it is still the same process is for the reader of its stat to see. */
	length = procfs_read_record(fd, text, size);
	process_keep(c->processes, place, fd);
	return gone_is_zero(length);
}

ssize_t living_read_once(const struct process *p, const char *name, char *text, size_t size)
{
	return gone_is_zero(procfs_read_file(text, size, "%d/%s", p->pid, name));
}

void living_gone(struct source_context *c, struct process *p, int64_t now)
{
	if (c->process_gone)
		c->process_gone(c->gone_context, p, now);
	if (p->alive)
		process_died(c->processes, p, now);
}

bool reading_is_due(const struct process *p, int64_t read_at, int64_t every, int64_t now)
{
	/* Pids of one burst are neighbours: 64 of them fall into a quarter of the time. */
	return read_at == 0 || now - read_at >= every - (p->pid & 63) * (every / 256);
}

static bool name_is_taken(const struct own_series *own, int pid)
{
	for (size_t i = 0; i < own->count; i++)
		if (own->pids[i] == pid)
			return true;
	return false;
}

void own_series_update(struct own_series *own, struct source_context *c, const struct process *p, int *id,
		       const struct series_desc *desc, int64_t now)
{
	char name[64], scope[32];
	struct series_desc of_process = *desc;

	if (*id != -1 || own->count == OWN_SERIES_MAX || now - p->first_seen < OWN_SERIES_AFTER_NS)
		return;
	if (name_is_taken(own, p->pid)) {
		*id = OWN_SERIES_NEVER;
		return;
	}
	snprintf(name, sizeof name, "process.%d.%s", p->pid, desc->name);
	snprintf(scope, sizeof scope, "process %d", p->pid);
	of_process.name = name;
	of_process.scope = scope;
	*id = series_define(c, &of_process);
	if (*id < 0)
		*id = OWN_SERIES_NEVER;
	else
		own->pids[own->count++] = p->pid;
}
