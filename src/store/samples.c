#include "store/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/segments.h"

/* A text of the record, and the next one behind it; a record whose text does not end has its end there. */
static const char *next_text(const char **at, const char *end, char *copy, size_t size)
{
	size_t length = strnlen(*at, (size_t)(end - *at)), kept = length < size ? length : size - 1;

	memcpy(copy, *at, kept);
	copy[kept] = '\0';
	*at += length;
	if (*at < end)
		(*at)++;
	return copy;
}

/* Ids are places in the order of definition: one that is not the next is damage. */
static int in_order(const char *what, uint32_t id, size_t count, struct error *err)
{
	if (id == count)
		return 0;
	return error_set(err, "%s %u comes where number %zu is due", what, (unsigned)id, count);
}

static int take_profile(struct profile *p, const struct wire_profile *w, struct error *err)
{
	if (w->hz == 0 || w->hz > 1000000000)
		return error_set(err, "samples at %u Hz cannot be", (unsigned)w->hz);
	p->recorder = w->recorder;
	p->hz = w->hz;
	p->period_s = 1.0 / w->hz;
	p->t = w->t;
	return 0;
}

static int take_image(struct profile *p, const struct wire_image *w, uint32_t used, struct error *err)
{
	const char *at = (const char *)(w + 1), *end = (const char *)w + used;
	char exe[4097], command[4097];

	if (in_order("program image", w->id, p->image_count, err) < 0)
		return -1;
	next_text(&at, end, exe, sizeof exe);
	next_text(&at, end, command, sizeof command);
	return profile_add_image(p, w->pid, w->ppid, w->t, exe, command, err);
}

static int take_thread(struct profile *p, const struct wire_thread *w, uint32_t used, struct error *err)
{
	const char *at = (const char *)(w + 1), *end = (const char *)w + used;
	char name[257];

	next_text(&at, end, name, sizeof name);
	if (w->id < p->thread_count)
		return profile_rename_thread(p, w->id, name, err);
	if (in_order("thread", w->id, p->thread_count, err) < 0)
		return -1;
	return profile_add_thread(p, w->image, w->tid, name, err);
}

static int take_module(struct profile *p, const struct wire_module *w, uint32_t used, struct error *err)
{
	const char *at = (const char *)(w + 1), *end = (const char *)w + used;
	char path[4097];
	struct profile_module m = {
		.image = w->image,
		.path = path,
		.build_id_length = w->build_id_length,
		.device = w->device,
		.inode = w->inode,
		.size = w->size,
		.mtime_ns = w->mtime_ns,
	};

	if (in_order("module", w->id, p->module_count, err) < 0)
		return -1;
	if (w->kind > WIRE_MODULE_UNKNOWN)
		return error_set(err, "a module of kind %u is not known here", (unsigned)w->kind);
	m.kind = (enum profile_module_kind)w->kind;
	memcpy(m.build_id, w->build_id, sizeof m.build_id);
	next_text(&at, end, path, sizeof path);
	return profile_add_module(p, &m, err);
}

static int take_nodes(struct profile *p, const struct wire_node *nodes, uint32_t used, struct error *err)
{
	for (size_t i = 0; i < used / sizeof *nodes; i++)
		if (profile_add_node(p, nodes[i].parent, nodes[i].module, nodes[i].address, err) < 0)
			return -1;
	return 0;
}

static int take_samples(struct profile *p, const struct wire_sample *samples, uint32_t used, struct error *err)
{
	for (size_t i = 0; i < used / sizeof *samples; i++) {
		const struct wire_sample *w = &samples[i];
		struct profile_sample s = {
			.t = w->t, .thread = w->thread, .node = w->node, .weight = w->weight, .flags = w->flags};

		if (profile_add_sample(p, &s, err) < 0)
			return -1;
	}
	return 0;
}

static int take_image_end(struct profile *p, const struct wire_image_end *w, uint32_t used, struct error *err)
{
	const char *at = (const char *)(w + 1), *end = (const char *)w + used;
	struct profile_image *image;
	char note[1025];

	if (w->id >= p->image_count)
		return error_set(err, "the end of program image %u is told, of %zu", (unsigned)w->id, p->image_count);
	image = &p->images[w->id];
	image->trouble = w->trouble & ~WIRE_IMAGE_DISBELIEVED;
	image->disbelieved = (w->trouble & WIRE_IMAGE_DISBELIEVED) != 0;
	image->deliveries = w->deliveries;
	image->weight = w->weight;
	image->dropped = w->dropped;
	image->dropped_weight = w->dropped_weight;
	image->handler_ns = w->handler_ns;
	image->cpu_ns = w->cpu_ns;
	image->unsampled_ns = w->unsampled_ns;
	image->unarmed = w->unarmed;
	image->unarmed_errno = w->unarmed_errno;
	image->ended = true;
	next_text(&at, end, note, sizeof note);
	free(image->note);
	image->note = *note ? strdup(note) : NULL;
	return *note && !image->note ? error_set(err, "out of memory for a note") : 0;
}

static int take_unsampled(struct profile *p, const struct wire_unsampled *w, uint32_t used, struct error *err)
{
	const char *at = (const char *)(w + 1), *end = (const char *)w + used;
	char name[257], reason[1025];

	next_text(&at, end, name, sizeof name);
	next_text(&at, end, reason, sizeof reason);
	return profile_add_unsampled(p, w->pid, w->cpu_ns, name, reason, err);
}

/* A record that is too short for its type is damage: there has been no other layout of these. One of another type is
 * passed over. */
static int take_record(struct profile *p, const struct segment_record *r, const void *payload, struct error *err)
{
	static const uint32_t sizes[] = {
		[WIRE_PROFILE] = sizeof(struct wire_profile),
		[WIRE_IMAGE] = sizeof(struct wire_image),
		[WIRE_THREAD] = sizeof(struct wire_thread),
		[WIRE_MODULE] = sizeof(struct wire_module),
		[WIRE_IMAGE_END] = sizeof(struct wire_image_end),
		[WIRE_UNSAMPLED] = sizeof(struct wire_unsampled),
	};

	if (r->type < sizeof sizes / sizeof *sizes && r->used < sizes[r->type])
		return error_set(err, "a record of type %u has %u bytes", (unsigned)r->type, (unsigned)r->used);
	switch (r->type) {
	case WIRE_PROFILE:
		return take_profile(p, payload, err);
	case WIRE_IMAGE:
		return take_image(p, payload, r->used, err);
	case WIRE_THREAD:
		return take_thread(p, payload, r->used, err);
	case WIRE_MODULE:
		return take_module(p, payload, r->used, err);
	case WIRE_NODES:
		return take_nodes(p, payload, r->used, err);
	case WIRE_SAMPLES:
		return take_samples(p, payload, r->used, err);
	case WIRE_IMAGE_END:
		return take_image_end(p, payload, r->used, err);
	case WIRE_UNSAMPLED:
		return take_unsampled(p, payload, r->used, err);
	default:
		return 0;
	}
}

static void damaged(struct profile *p, const char *why)
{
	p->damaged = true;
	snprintf(p->trouble, sizeof p->trouble, "%s", why);
}

int samples_read(const char *path, struct profile *ret, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	struct segment_facts facts;
	struct segment_record record;
	const void *payload;
	struct error why;
	int got;

	if (segment_reader_open(path, SEGMENT_KIND_SAMPLES, &reader, err) < 0)
		return -1;
	segment_reader_facts(reader, &facts);
	if (facts.dropped) {
		error_set(&why, "%s: %" PRIu64 " records found no room (%s)", path, facts.dropped,
			  facts.stopped ? strerror(facts.stopped) : "too large");
		damaged(ret, why.text);
	}
	while ((got = segment_reader_next(reader, &record, &payload, &why)) > 0) {
		if (take_record(ret, &record, payload, &why) < 0) {
			error_prefix(&why, "%s: damaged", path);
			break;
		}
	}
	if (got)
		damaged(ret, why.text);
	if (ret->hz == 0)
		return error_set(err, "%s: does not say at what rate samples were taken%s%s", path,
				 ret->damaged ? ": " : "", ret->trouble);
	return profile_sort(ret, err);
}
