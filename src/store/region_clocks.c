#include "store/region_clocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* Readings err by tens of ns: over this time that is some millionths. */
#define APART (10 * NS_PER_MS)

/* Time stamp counters run at 0.1 to 20 GHz. */
#define LEAST_SLOPE 0.05
#define MOST_SLOPE 10.0

#define TIME_MAX (INT64_MAX / 4) /* what is beyond is no time */

void region_machines_release(struct region_machines *m)
{
	free(m->machines);
	*m = (struct region_machines){0};
}

static int by_boot_id(const void *a, const void *b)
{
	const struct region_machine *one = a, *other = b;

	return strcmp(one->boot_id, other->boot_id);
}

size_t region_machines_of(const struct region_machines *m, const struct region_log *l)
{
	struct region_machine key;
	const struct region_machine *found;

	memcpy(key.boot_id, l->process.boot_id, sizeof key.boot_id);
	found = bsearch(&key, m->machines, m->count, sizeof key, by_boot_id);
	return found ? (size_t)(found - m->machines) : m->reference;
}

static int add_pairs(const struct region_log *l, struct region_ramp *ramp, struct error *err)
{
	for (size_t i = 0; i < l->pair_count; i++)
		if (region_ramp_add(ramp, l->pairs[i].clock, l->pairs[i].mono_ns, err) < 0)
			return -1;
	return 0;
}

/* What a process' table alone says about the time stamp counter of its machine. */
static int learn_rate(const struct region_log *l, struct region_machine *machine, struct error *err)
{
	CLEANUP(region_ramp_release) struct region_ramp ramp;
	size_t last;

	region_ramp_init(&ramp);
	if (l->process.clock != REGION_CLOCK_TSC)
		return 0;
	if (add_pairs(l, &ramp, err) < 0)
		return -1;
	if (region_ramp_finish(&ramp, APART, LEAST_SLOPE, MOST_SLOPE) < 2)
		return 0;
	last = ramp.count - 1;
	if (ramp.knots[last].y - ramp.knots[0].y > machine->span) {
		machine->span = ramp.knots[last].y - ramp.knots[0].y;
		machine->ns_per_tick = region_ramp_slope(&ramp);
	}
	return 0;
}

static int64_t wall_offset(const struct region_log *l)
{
	int64_t offset;

	return __builtin_sub_overflow(l->process.wall_ns, l->process.mono_ns, &offset) ? 0 : offset;
}

int region_machines_find(const struct region_job *j, const struct region_log *reference, struct region_machines *ret,
			 struct error *err)
{
	struct region_machine *machines = calloc(j->count ? j->count : 1, sizeof *machines);
	size_t kept = 0;

	if (!machines)
		return error_set(err, "out of memory for %zu processes", j->count);
	ret->machines = machines;
	for (size_t i = 0; i < j->count; i++) {
		memcpy(machines[i].boot_id, j->logs[i].process.boot_id, sizeof machines[i].boot_id);
		machines[i].wall_offset = wall_offset(&j->logs[i]);
	}
	if (j->count)
		qsort(machines, j->count, sizeof *machines, by_boot_id);
	for (size_t i = 0; i < j->count; i++)
		if (!kept || strcmp(machines[kept - 1].boot_id, machines[i].boot_id) != 0)
			machines[kept++] = machines[i];
	ret->count = kept;
	for (size_t i = 0; i < j->count; i++) {
		struct region_machine *machine = &machines[region_machines_of(ret, &j->logs[i])];

		if (learn_rate(&j->logs[i], machine, err) < 0)
			return -1;
		if (!machine->offsets && j->logs[i].offset_count)
			machine->offsets = &j->logs[i];
	}
	ret->reference = region_machines_of(ret, reference);
	machines[ret->reference].wall_offset = wall_offset(reference);
	return 0;
}

void region_clocks_release(struct region_clocks *c)
{
	region_ramp_release(&c->own);
	region_ramp_release(&c->offset);
}

/* The boot id of the machine that this runs on; "" where it does not tell. */
static const char *own_boot_id(void)
{
	static char id[64];
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (!*id && fs_read_file(BOOT_ID_PATH, 4096, &text, NULL) == 0) {
		text.text[strcspn(text.text, "\n")] = 0;
		strncpy(id, text.text, sizeof id - 1);
	}
	return id;
}

/* A killed program's only reading may be that of its start. Where its machine has not been started anew since, its
 * counter still runs. */
static int add_fresh_pair(const struct region_log *l, struct region_ramp *ramp, struct error *err)
{
#if defined(__x86_64__)
	int64_t best = INT64_MAX, mono = 0;
	uint64_t clock = 0;

	if (!*l->process.boot_id || strcmp(l->process.boot_id, own_boot_id()) != 0)
		return 0;
	for (int i = 0; i < 5; i++) {
		int64_t before = clock_mono_ns();
		uint64_t ticks = __builtin_ia32_rdtsc();
		int64_t after = clock_mono_ns();

		if (after - before < best) {
			best = after - before;
			mono = before + best / 2;
			clock = ticks;
		}
	}
	return region_ramp_add(ramp, clock, mono, err);
#else
	(void)l, (void)ramp, (void)err;
	return 0;
#endif
}

static int gather(const struct region_log *l, const struct region_ramp *readings, bool fresh, struct region_ramp *ramp,
		  struct error *err)
{
	ramp->count = 0;
	for (size_t i = 0; i < readings->count; i++)
		if (region_ramp_add(ramp, readings->knots[i].x, readings->knots[i].y, err) < 0)
			return -1;
	if (add_pairs(l, ramp, err) < 0)
		return -1;
	return fresh ? add_fresh_pair(l, ramp, err) : 0;
}

static int make_own(const struct region_log *l, const struct region_machine *machine,
		    const struct region_ramp *readings, struct region_clocks *c, struct error *err)
{
	if (gather(l, readings, false, &c->own, err) < 0)
		return -1;
	if (region_ramp_finish(&c->own, APART, LEAST_SLOPE, MOST_SLOPE) >= 2)
		return 0;
	if (gather(l, readings, true, &c->own, err) < 0)
		return -1;
	if (region_ramp_finish(&c->own, APART, LEAST_SLOPE, MOST_SLOPE) >= 2)
		return 0;
	c->usable = c->own.count > 0;
	if (machine->ns_per_tick > 0) {
		region_ramp_set_slope(&c->own, machine->ns_per_tick);
		return 0;
	}
	c->uncertain = true;
	if (gather(l, readings, false, &c->own, err) < 0)
		return -1;
	c->usable = region_ramp_finish(&c->own, 1, LEAST_SLOPE, MOST_SLOPE) >= 2;
	return 0;
}

/* Offsets are noted at the start and at the end; in between they change evenly, and beyond they stay as they are. */
static int add_offsets(const struct region_log *l, struct region_ramp *ramp, struct error *err)
{
	for (size_t i = 0; i < l->offset_count; i++) {
		const struct region_offset *o = &l->offsets[i];

		if (o->mono_ns >= 0 && o->mono_ns < TIME_MAX && o->offset_ns > -TIME_MAX && o->offset_ns < TIME_MAX &&
		    region_ramp_add(ramp, (uint64_t)o->mono_ns, o->mono_ns + o->offset_ns, err) < 0)
			return -1;
	}
	/* Clocks of two computers run apart by far less than a thousandth. */
	if (region_ramp_finish(ramp, NS_PER_MS, 0.999, 1.001) == 1)
		region_ramp_set_slope(ramp, 1);
	else if (ramp->count)
		ramp->knots[ramp->count - 1].slope = 1;
	return 0;
}

static int make_offset(const struct region_log *l, const struct region_machines *machines, struct region_clocks *c,
		       struct error *err)
{
	const struct region_machine *machine = &machines->machines[region_machines_of(machines, l)];
	const struct region_machine *reference = &machines->machines[machines->reference];
	int64_t apart, start = l->process.mono_ns;

	if (machine == reference)
		return 0;
	if (add_offsets(l->offset_count || !machine->offsets ? l : machine->offsets, &c->offset, err) < 0)
		return -1;
	if (c->offset.count)
		return 0;
	c->by_wall = true;
	if (__builtin_sub_overflow(machine->wall_offset, reference->wall_offset, &apart) || start < 0 ||
	    __builtin_add_overflow(start, apart, &apart))
		return 0;
	if (region_ramp_add(&c->offset, (uint64_t)start, apart, err) < 0)
		return -1;
	region_ramp_set_slope(&c->offset, 1);
	return 0;
}

int region_clocks_make(const struct region_log *l, const struct region_machines *machines,
		       const struct region_ramp *readings, struct region_clocks *ret, struct error *err)
{
	region_ramp_init(&ret->own);
	region_ramp_init(&ret->offset);
	ret->usable = true;
	ret->ns_per_unit = 1;
	if (l->process.clock == REGION_CLOCK_TSC) {
		if (make_own(l, &machines->machines[region_machines_of(machines, l)], readings, ret, err) < 0)
			return -1;
		if (ret->usable)
			ret->ns_per_unit = ret->own.count > 1 ? region_ramp_slope(&ret->own) : ret->own.knots[0].slope;
	}
	return make_offset(l, machines, ret, err);
}

int64_t region_clocks_mono(struct region_clocks *c, int64_t mono_ns)
{
	return c->offset.count ? region_ramp_y(&c->offset, mono_ns < 0 ? 0 : (uint64_t)mono_ns) : mono_ns;
}

int64_t region_clocks_at(struct region_clocks *c, uint64_t clock)
{
	return region_clocks_mono(c, region_ramp_y(&c->own, clock));
}
