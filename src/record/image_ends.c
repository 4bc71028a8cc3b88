#include "record/image_ends.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SILENT_S 0.1 /* that a program may use before it is odd that no tick came */

/* What it lacks, as sentences; "" where it lacks nothing. */
static void describe(const struct image_end *end, char *note, size_t size)
{
	const struct ring *ring = end->ring;
	const struct ring_counts *c = end->counts;
	double silent_s = c->deliveries ? 0 : (double)c->weight / ring->hz;
	size_t used = 0;

	note[0] = '\0';
#define SAY(...) \
	do { \
		if (used < size) \
			used += (size_t)snprintf(note + used, size - used, __VA_ARGS__); \
	} while (0)
	if (!end->believed)
		SAY("Its samples tell of %.2f s of CPU time, more than it can have used: they are not to be believed. ",
		    (double)end->claim_ns / 1e9);
	if (ring->broken)
		SAY("Its file of samples was cut short while it was read. ");
	if (ring->unread_slots)
		SAY("assay's own limit on memory left no room to read %u of its threads. ", ring->unread_slots);
	if (silent_s > SILENT_S)
		SAY("No tick ever came in its %.2f s of CPU time, so that nobody knows what ran: its signal may have "
		    "been taken or ignored, or no thread lived for a tick. ",
		    silent_s);
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

void image_ends_add(struct image_ends *e, const struct image_end *image, struct samples_writer *writer,
		    struct warnings *warnings)
{
	const struct ring_counts *counts = image->counts;
	const struct ring *ring = image->ring;
	struct wire_image_end end = {
		.id = image->image,
		.trouble = (counts->trouble & ~WIRE_IMAGE_DISBELIEVED) | (image->believed ? 0 : WIRE_IMAGE_DISBELIEVED),
		.t = image->t,
		.deliveries = counts->deliveries,
		.weight = counts->weight,
		.dropped = counts->dropped,
		.dropped_weight = counts->dropped_weight,
		.handler_ns = counts->handler_ns,
		.cpu_ns = image->cpu_ns,
		.unsampled_ns = (int64_t)(counts->unsampled_ns < INT64_MAX ? counts->unsampled_ns : INT64_MAX),
		.unarmed = counts->unarmed,
		.unarmed_errno = counts->unarmed_errno,
	};
	char note[768];

	describe(image, note, sizeof note);
	if (!image->believed)
		warnings_add(warnings,
			     "Not to be believed: the samples of %s (process %d) tell of %.2f s of CPU time, more than "
			     "it can have used; they do not count as sampled time.",
			     *ring->exe ? ring->exe : "a program", ring->pid, (double)image->claim_ns / 1e9);
	samples_writer_image_end(writer, &end, note);
	e->images++;
	e->broken += ring->broken;
	e->deliveries += image->believed ? counts->deliveries : 0;
	e->dropped += image->believed ? counts->dropped : 0;
	e->dropped_s += image->believed ? (double)counts->dropped_weight / ring->hz : 0;
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
