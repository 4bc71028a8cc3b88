#include "record/image_ends.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it lacks, as sentences; "" where it lacks nothing. */
static void describe(const struct ring *ring, const struct ring_counts *c, char *note, size_t size)
{
	size_t used = 0;

	note[0] = '\0';
#define SAY(...) \
	do { \
		if (used < size) \
			used += (size_t)snprintf(note + used, size - used, __VA_ARGS__); \
	} while (0)
	if (ring->broken)
		SAY("Its file of samples was cut short while it was read. ");
	if (c->trouble & SAMPLER_TIMER_REFUSED)
		SAY("The system refused timers for %u of its threads (%s). ", c->unarmed, strerror(c->unarmed_errno));
	if (c->trouble & SAMPLER_NO_ROOM)
		SAY("There was no room for %u of its threads. ", c->roomless);
	if (c->trouble & SAMPLER_SIGNAL_TAKEN)
		SAY("It took the sampler's signal for itself. ");
	if (c->trouble & SAMPLER_RESTRICTED)
		SAY("It restricted its system calls: threads that it made afterwards were not sampled. ");
	if (c->trouble & SAMPLER_MODULES_FULL)
		SAY("It loaded more modules than are kept: code in later ones has no names. ");
	if (c->trouble & SAMPLER_UNKNOWN_STACK)
		SAY("Some of its stacks lay in memory that may not be read, and are cut there. ");
#undef SAY
	used = strlen(note);
	if (used)
		note[used - 1] = '\0'; /* the last blank */
}

void image_ends_add(struct image_ends *e, struct samples_writer *writer, uint32_t image, const struct ring *ring,
		    const struct ring_counts *counts, int64_t cpu_ns, int64_t t)
{
	struct wire_image_end end = {
		.id = image,
		.trouble = counts->trouble,
		.t = t,
		.deliveries = counts->deliveries,
		.weight = counts->weight,
		.dropped = counts->dropped,
		.dropped_weight = counts->dropped_weight,
		.handler_ns = counts->handler_ns,
		.cpu_ns = cpu_ns,
		.unsampled_ns = (int64_t)(counts->unsampled_ns < INT64_MAX ? counts->unsampled_ns : INT64_MAX),
		.unarmed = counts->unarmed,
		.unarmed_errno = counts->unarmed_errno,
	};
	char note[512];

	describe(ring, counts, note, sizeof note);
	samples_writer_image_end(writer, &end, note);
	e->images++;
	e->broken += ring->broken;
	e->deliveries += counts->deliveries;
	e->dropped += counts->dropped;
	e->dropped_s += (double)counts->dropped_weight / ring->hz;
	e->refused += (counts->trouble & SAMPLER_TIMER_REFUSED) != 0;
	e->roomless += (counts->trouble & SAMPLER_NO_ROOM) != 0;
	e->taken += (counts->trouble & SAMPLER_SIGNAL_TAKEN) != 0;
	e->restricted += (counts->trouble & SAMPLER_RESTRICTED) != 0;
	e->modules_full += (counts->trouble & SAMPLER_MODULES_FULL) != 0;
	e->unarmed_threads += counts->unarmed;
	e->roomless_threads += counts->roomless;
	e->unarmed_errno = counts->unarmed_errno ? counts->unarmed_errno : e->unarmed_errno;
}

static const char *processes(size_t count)
{
	return count == 1 ? "process" : "processes";
}

void image_ends_report(const struct image_ends *e, struct warnings *warnings)
{
	if (e->dropped)
		warnings_add(warnings,
			     "Of %" PRIu64 " CPU samples %" PRIu64 " found no room (%.2f s of CPU time): their code is "
			     "missing in the profile.",
			     e->deliveries, e->dropped, e->dropped_s);
	if (e->refused)
		warnings_add(warnings, "Not profiled: %" PRIu64 " threads of %zu %s, whose timers were refused (%s).",
			     e->unarmed_threads, e->refused, processes(e->refused), strerror(e->unarmed_errno));
	if (e->roomless)
		warnings_add(warnings, "Not profiled: %" PRIu64 " threads of %zu %s, for which there was no room.",
			     e->roomless_threads, e->roomless, processes(e->roomless));
	if (e->taken)
		warnings_add(warnings, "Profiled in part: %zu %s that took the sampler's signal.", e->taken,
			     processes(e->taken));
	if (e->restricted)
		warnings_add(warnings,
			     "Profiled in part: %zu %s that restricted the system calls; threads made afterwards were "
			     "not sampled.",
			     e->restricted, processes(e->restricted));
	if (e->modules_full)
		warnings_add(warnings, "Code without names: %zu %s loaded more modules than are kept.", e->modules_full,
			     processes(e->modules_full));
	if (e->broken)
		warnings_add(warnings, "Profiled in part: the files of samples of %zu %s were cut short by somebody.",
			     e->broken, processes(e->broken));
}
