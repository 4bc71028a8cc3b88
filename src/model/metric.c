#include "model/metric.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define THROUGHPUT "tokens/s"
#define ENERGY "J/token"

/* name, unit, path, title, direction, floors, reference, gated. The reference's eight with its floors come first:
 * memory rounds to whole MiB and allocators differ a little from run to run, load time depends on the page cache, and
 * energy has its counter's resolution. Faults and disk reads depend on what the page cache held before, so they are
 * shown and do not decide. */
const struct metric_desc metric_table[] = {
	{"prefill_tps", THROUGHPUT, "throughput.prefill.tokens_per_s", "prefill", +1, 0.003, 0, true, true},
	{"decode_tps", THROUGHPUT, "throughput.decode.tokens_per_s", "decode", +1, 0.003, 0, true, true},
	{"gpu_peak_mib", "MiB", "memory.gpu.peak_above_baseline_total_mib", "GPU memory", -1, 0.002, 16, true, true},
	{"gpu_peak_max_device_mib", "MiB", "memory.gpu.peak_above_baseline_max_device_mib", "fullest GPU", -1, 0.002,
	 16, true, true},
	{"host_anon_peak_mib", "MiB", "memory.host.anon_peak_mib", "anonymous memory", -1, 0.02, 64, true, true},
	{"load_s", "s", "groups.load.wall_s", "load", -1, 0.05, 0.5, true, true},
	{"prefill_j_per_token", ENERGY, "energy.prefill_j_per_token", "prefill energy", -1, 0.05, 0, true, true},
	{"decode_j_per_token", ENERGY, "energy.decode_j_per_token", "decode energy", -1, 0.03, 0, true, true},
	{"wall_s", "s", "wall_s", "wall time", -1, 0.01, 0, false, true},
	{"cpu_s", "s", "cpu_s", "CPU time", -1, 0.01, 0, false, true},
	{"rss_peak_mib", "MiB", "memory.host.rss_peak_mib", "peak memory", -1, 0.02, 0, false, true},
	{"major_faults", "count", "counters.major_faults", "major faults", -1, 0.05, 0, false, false},
	{"disk_read_mib", "MiB", "counters.read_mib", "disk reads", -1, 0.05, 0, false, false},
};
const size_t metric_count = sizeof metric_table / sizeof *metric_table;

/* The slot of a name, or the free one where it would go. `slots` is a power of two, and never full. */
static size_t slot_of(const struct metric_set *s, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	size_t at;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	for (at = hash & (s->slots - 1); s->slot[at]; at = (at + 1) & (s->slots - 1))
		if (strcmp(s->items[s->slot[at] - 1].name, name) == 0)
			break;
	return at;
}

static int grow_slots(struct metric_set *s, size_t slots)
{
	size_t *slot = calloc(slots, sizeof *slot);

	if (!slot)
		return -1;
	free(s->slot);
	s->slot = slot;
	s->slots = slots;
	for (size_t i = 0; i < s->count; i++)
		s->slot[slot_of(s, s->items[i].name)] = i + 1;
	return 0;
}

int metric_set_init(struct metric_set *s, struct error *err)
{
	*s = (struct metric_set){0};
	for (size_t i = 0; i < metric_count; i++) {
		if (metric_add(s, &metric_table[i]) != SIZE_MAX) {
			s->items[i].path = metric_table[i].path;
			continue;
		}
		metric_set_release(s);
		return error_set(err, "out of memory for the metrics of a comparison");
	}
	return 0;
}

static void release_texts(struct metric_desc *d)
{
	free((char *)d->name);
	free((char *)d->unit);
	free((char *)d->title);
}

void metric_set_release(struct metric_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		release_texts(&s->items[i]);
	free(s->items);
	free(s->slot);
	*s = (struct metric_set){0};
}

size_t metric_find(const struct metric_set *s, const char *name)
{
	return s->slots ? s->slot[slot_of(s, name)] - 1 : SIZE_MAX;
}

size_t metric_add(struct metric_set *s, const struct metric_desc *desc)
{
	size_t found = metric_find(s, desc->name);
	struct metric_desc copy = *desc;

	if (found != SIZE_MAX)
		return found;
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 32;
		struct metric_desc *items = reallocarray(s->items, room, sizeof *items);

		if (!items)
			return SIZE_MAX;
		s->items = items;
		s->room = room;
	}
	if (2 * (s->count + 1) > s->slots && grow_slots(s, s->slots ? 2 * s->slots : 64) < 0)
		return SIZE_MAX;
	copy.path = NULL;
	copy.name = strdup(desc->name);
	copy.unit = strdup(desc->unit);
	copy.title = strdup(desc->title);
	if (!copy.name || !copy.unit || !copy.title) {
		release_texts(&copy);
		return SIZE_MAX;
	}
	s->slot[slot_of(s, copy.name)] = s->count + 1;
	s->items[s->count] = copy;
	return s->count++;
}
