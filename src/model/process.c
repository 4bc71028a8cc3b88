#include "model/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Open files that are left to everything but this table. */
#define DESCRIPTORS_FOR_OTHERS 256

static size_t descriptors_allowed(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 2 * DESCRIPTORS_FOR_OTHERS)
		return DESCRIPTORS_FOR_OTHERS / 2;
	/* Past some number, the kernel's memory for open /proc files would be felt. */
	return limit.rlim_cur > 65536 ? 65536 - DESCRIPTORS_FOR_OTHERS
				      : (size_t)limit.rlim_cur - DESCRIPTORS_FOR_OTHERS;
}

void process_table_init(struct process_table *t)
{
	*t = (struct process_table){.kept_max = descriptors_allowed()};
}

bool process_keep(struct process_table *t, int *place, int fd)
{
	process_unkeep(t, place);
	if (t->kept >= t->kept_max) {
		close(fd);
		return false;
	}
	t->kept++;
	*place = fd;
	return true;
}

void process_unkeep(struct process_table *t, int *place)
{
	if (*place < 0)
		return;
	close(*place);
	*place = -1;
	t->kept--;
}

void process_table_release(struct process_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		process_unkeep(t, &t->items[i].stat_fd);
		process_unkeep(t, &t->items[i].statm_fd);
		free(t->items[i].command);
	}
	free(t->items);
	free(t->slots);
	*t = (struct process_table){0};
}

/* Multiplication by a number without pattern (2^32 / golden ratio) spreads pids, which come in rows. */
static size_t slot_of(const struct process_table *t, int pid)
{
	return ((uint32_t)pid * UINT32_C(2654435769) >> 7) & (t->slot_count - 1);
}

static void insert_slot(struct process_table *t, size_t item)
{
	size_t at = slot_of(t, t->items[item].pid);

	while (t->slots[at])
		at = (at + 1) & (t->slot_count - 1);
	t->slots[at] = (uint32_t)item + 1;
}

static void rebuild_slots(struct process_table *t)
{
	memset(t->slots, 0, t->slot_count * sizeof *t->slots);
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].alive)
			insert_slot(t, i);
}

/* Closes the gap behind it, so that searches need no marks of what was deleted. */
static void remove_slot(struct process_table *t, size_t item)
{
	size_t mask = t->slot_count - 1, gap = slot_of(t, t->items[item].pid);

	while (t->slots[gap] != (uint32_t)item + 1)
		gap = (gap + 1) & mask;
	for (size_t at = (gap + 1) & mask; t->slots[at]; at = (at + 1) & mask) {
		size_t home = slot_of(t, t->items[t->slots[at] - 1].pid);

		if (((at - home) & mask) >= ((at - gap) & mask)) {
			t->slots[gap] = t->slots[at];
			gap = at;
		}
	}
	t->slots[gap] = 0;
}

struct process *process_find(struct process_table *t, int pid)
{
	if (t->slot_count == 0)
		return NULL;
	for (size_t at = slot_of(t, pid); t->slots[at]; at = (at + 1) & (t->slot_count - 1))
		if (t->items[t->slots[at] - 1].pid == pid)
			return &t->items[t->slots[at] - 1];
	return NULL;
}

static int make_room(struct process_table *t)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 32;
		struct process *items = room > UINT32_MAX / 4 ? NULL : reallocarray(t->items, room, sizeof *items);

		if (!items)
			return -1;
		t->items = items;
		t->room = room;
	}
	if (2 * (t->alive + 1) >= t->slot_count) {
		size_t slot_count = t->slot_count ? 2 * t->slot_count : 64;
		uint32_t *slots = reallocarray(t->slots, slot_count, sizeof *slots);

		if (!slots)
			return -1;
		t->slots = slots;
		t->slot_count = slot_count;
		rebuild_slots(t);
	}
	return 0;
}

struct process *process_add(struct process_table *t, int pid, int ppid, int64_t start_ticks, int64_t now)
{
	struct process *p = process_find(t, pid);

	if (p)
		process_died(t, p, now);
	if (make_room(t) < 0)
		return NULL;
	p = &t->items[t->count];
	*p = (struct process){
		.pid = pid,
		.ppid = ppid,
		.parent = ppid,
		.start_ticks = start_ticks,
		.first_seen = now,
		.last_seen = now,
		.alive = true,
		.user_ns = -1,
		.system_ns = -1,
		.rss = -1,
		.anon = -1,
		.rss_peak = -1,
		.anon_peak = -1,
		.high_water = -1,
		.threads = -1,
		.threads_peak = -1,
		.minor_faults = -1,
		.major_faults = -1,
		.read_bytes = -1,
		.write_bytes = -1,
		.read_chars = -1,
		.write_chars = -1,
		.read_calls = -1,
		.write_calls = -1,
		.clock_ns = -1,
		.clock_at_io = -1,
		.clock_at_threads = -1,
		.ran = true,
		.cpu_series = -1,
		.rss_series = -1,
		.stat_fd = -1,
		.statm_fd = -1,
	};
	insert_slot(t, t->count++);
	t->seen++;
	if (++t->alive > t->peak_alive)
		t->peak_alive = t->alive;
	return p;
}

void process_died(struct process_table *t, struct process *p, int64_t now)
{
	if (!p->alive)
		return;
	remove_slot(t, (size_t)(p - t->items));
	usage_died(t, p);
	p->alive = false;
	p->last_seen = now;
	t->alive--;
	process_unkeep(t, &p->stat_fd);
	process_unkeep(t, &p->statm_fd);
}

void process_table_reap(struct process_table *t, void (*each)(void *context, const struct process *p), void *context)
{
	size_t kept = 0;

	if (t->count == t->alive)
		return;
	for (size_t i = 0; i < t->count; i++) {
		struct process *p = &t->items[i];

		if (p->alive) {
			t->items[kept++] = *p;
			continue;
		}
		if (each)
			each(context, p);
		free(p->command);
	}
	t->count = kept;
	if (t->slot_count)
		rebuild_slots(t);
}
