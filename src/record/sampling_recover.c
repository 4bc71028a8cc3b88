#include "record/sampling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "record/image.h"
#include "record/image_ends.h"
#include "record/preload_target.h"
#include "record/ring_folder.h"
#include "store/samples.h"

struct recovery {
	struct warnings *warnings;
	const char *rings;
	struct profile old;     /* what is on file */
	bool has_old;
	const char *path;       /* of the new segment */
	struct samples_writer *writer;
	struct module_files *files;
	struct image_shared *shared;
	uint32_t *nodes;        /* of the old places: their new ids; owned */
	uint32_t *last;         /* of the old threads: number of the last sample + 1, 0: none; owned */
	struct image_ends ends;
	char **gone;            /* rings of processes that have ended; owned */
	size_t gone_count;
	size_t alive;           /* processes that have not ended */
	char alive_pids[128];   /* of these, as far as there is room */
	size_t alive_length;
	bool failed;            /* out of memory */
};

static int copy_tables(struct recovery *r, struct error *err)
{
	const struct profile *old = &r->old;
	CLEANUP(free_cleanup) uint32_t *modules = calloc(old->module_count + 1, sizeof *modules);

	r->nodes = calloc(old->node_count + 1, sizeof *r->nodes);
	r->last = calloc(old->thread_count + 1, sizeof *r->last);
	if (!modules || !r->nodes || !r->last)
		return error_set(err, "%s: out of memory", r->path);
	for (size_t i = 0; i < old->image_count; i++) {
		const struct profile_image *image = &old->images[i];

		samples_writer_image(r->writer, image->pid, image->ppid, image->t, image->exe, image->command);
	}
	for (size_t i = 0; i < old->thread_count; i++)
		samples_writer_thread(r->writer, old->threads[i].image, old->threads[i].tid, old->threads[i].name);
	for (size_t i = 0; i < old->module_count; i++) {
		const struct profile_module *m = &old->modules[i];
		struct wire_module wire = {
			.kind = m->kind,
			.image = m->image,
			.build_id_length = (uint32_t)m->build_id_length,
			.device = m->device,
			.inode = m->inode,
			.size = m->size,
			.mtime_ns = m->mtime_ns,
		};

		memcpy(wire.build_id, m->build_id, sizeof wire.build_id);
		modules[i] = samples_writer_module(r->writer, &wire, m->path);
	}
	/* A parent stands before its children. */
	for (size_t i = 1; i < old->node_count; i++) {
		const struct profile_location *l = &old->locations[old->nodes[i].location];

		r->nodes[i] = samples_writer_node(r->writer, r->nodes[old->nodes[i].parent], modules[l->module],
						  l->address);
	}
	return 0;
}

static void copy_samples(struct recovery *r)
{
	const struct profile *old = &r->old;

	for (size_t i = 0; i < old->sample_count; i++) {
		const struct profile_sample *s = &old->samples[i];
		struct wire_sample wire = {.t = s->t,
					   .thread = s->thread,
					   .node = r->nodes[s->node],
					   .weight = s->weight,
					   .flags = s->flags};

		samples_writer_sample(r->writer, &wire);
		r->last[s->thread] = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < old->image_count; i++) {
		const struct profile_image *image = &old->images[i];
		struct wire_image_end end = {
			.id = (uint32_t)i,
			.trouble = image->trouble | (image->disbelieved ? WIRE_IMAGE_DISBELIEVED : 0),
			.deliveries = image->deliveries,
			.weight = image->weight,
			.dropped = image->dropped,
			.dropped_weight = image->dropped_weight,
			.handler_ns = image->handler_ns,
			.cpu_ns = image->cpu_ns,
			.unsampled_ns = image->unsampled_ns,
			.unarmed = image->unarmed,
			.unarmed_errno = image->unarmed_errno,
		};

		if (image->ended)
			samples_writer_image_end(r->writer, &end, image->note);
	}
	for (size_t i = 0; i < old->unsampled_count; i++) {
		const struct profile_unsampled *u = &old->unsampled[i];

		samples_writer_unsampled(r->writer, u->pid, u->cpu_ns, u->name, u->reason);
	}
}

/* See image.h. */
static uint32_t chain_before(void *context, uint32_t thread, int64_t t, uint32_t *chain)
{
	const struct recovery *r = context;
	const struct profile_sample *found = NULL;
	uint32_t depth = 0;

	for (size_t i = r->last[thread]; i-- > 0 && !found;)
		if (r->old.samples[i].thread == thread && r->old.samples[i].t < t)
			found = &r->old.samples[i];
	for (uint32_t n = found ? found->node : 0; n; n = r->old.nodes[n].parent)
		depth++;
	if (depth > SAMPLER_FRAMES_MAX)
		return 0;
	for (uint32_t n = found ? found->node : 0, at = depth; n; n = r->old.nodes[n].parent)
		chain[--at] = r->nodes[n];
	return depth;
}

/* What is on file already of the image is not taken from its ring again. */
static void set_done(struct recovery *r, struct image *image)
{
	image->done = calloc(r->old.thread_count + 1, sizeof *image->done);
	if (!image->done) {
		r->failed = true;
		return;
	}
	for (size_t i = 0; i < r->old.thread_count; i++) {
		const struct profile_thread *thread = &r->old.threads[i];
		struct image_done *done = &image->done[image->done_count];
		int64_t t = r->last[i] ? r->old.samples[r->last[i] - 1].t : INT64_MIN;

		if (thread->image != image->id)
			continue;
		*done = (struct image_done){.tid = thread->tid, .thread = (uint32_t)i, .t = t};
		image->done_count++;
	}
	image->before = chain_before;
	image->before_context = r;
}

/* The image on file that this ring is of; its number, or that of a new one. */
static uint32_t image_of(struct recovery *r, const struct ring *ring, int pid, bool *ret_known)
{
	for (size_t i = 0; i < r->old.image_count; i++) {
		const struct profile_image *image = &r->old.images[i];

		*ret_known = image->t == ring->mono_ns && strcmp(image->exe, ring->exe) == 0;
		if (*ret_known)
			return (uint32_t)i;
	}
	return samples_writer_image(r->writer, pid, ring->ppid, ring->mono_ns, ring->exe, NULL);
}

static void keep_gone(struct recovery *r, const char *path)
{
	char **gone = reallocarray(r->gone, r->gone_count + 1, sizeof *gone);

	if (!gone)
		return;
	r->gone = gone;
	gone[r->gone_count] = strdup(path);
	r->gone_count += gone[r->gone_count] != NULL;
}

static void keep_alive(struct recovery *r, int pid)
{
	r->alive++;
	if (r->alive_length < sizeof r->alive_pids)
		r->alive_length += (size_t)snprintf(r->alive_pids + r->alive_length,
						    sizeof r->alive_pids - r->alive_length, "%s%d",
						    r->alive > 1 ? ", " : "", pid);
}

static int make_writer(struct recovery *r, enum wire_recorder recorder, unsigned hz, int64_t t, struct error *err)
{
	if (samples_writer_new(r->path, recorder, hz, t, &r->writer, err) < 0 ||
	    module_files_new(r->writer, r->warnings, &r->files, err) < 0)
		return -1;
	r->shared = calloc(1, sizeof *r->shared);
	if (!r->shared)
		return error_set(err, "%s: out of memory", r->path);
	r->shared->writer = r->writer;
	r->shared->files = r->files;
	return 0;
}

static int drain_ring(struct recovery *r, const char *path, struct error *err)
{
	struct process_table none = {0};
	struct ring_counts counts;
	struct ring *ring = NULL;
	struct image *image;
	bool known = false;
	uint32_t id;
	int ppid, pid;

	if (ring_open(path, &ring, err) < 0)
		return -1;
	if (!r->writer && make_writer(r, WIRE_RECORDER_PRELOAD, ring->hz, ring->mono_ns, err) < 0) {
		ring_close(ring);
		return -1;
	}
	/* Before it is drained: what comes later is not lost. */
	pid = preload_find_pid(ring, &none, &ppid);
	if (!pid)
		keep_gone(r, path);
	else
		keep_alive(r, pid);
	id = image_of(r, ring, pid ? pid : ring->pid, &known);
	if (image_new(r->shared, ring, id, pid ? pid : ring->pid, &image, err) < 0)
		return -1;
	image->pid_known = pid > 0;
	if (known)
		set_done(r, image);
	image_drain(image, 0, clock_mono_ns());
	samples_writer_flush(r->writer);
	ring_count(image->ring, &counts);
	image_ends_add(&r->ends,
		       &(struct image_end){
			       .image = id,
			       .ring = image->ring,
			       .counts = &counts,
			       .cpu_ns = -1,
			       .believed = true,
			       .t = clock_mono_ns(),
		       },
		       r->writer, r->warnings);
	image_free(image);
	return 0;
}

static bool take_ring(void *context, const char *name)
{
	struct recovery *r = context;
	CLEANUP(free_cleanup) char *path = fs_join(r->rings, name);
	struct error err;

	if (!path) {
		r->failed = true;
		return false;
	}
	if (drain_ring(r, path, &err) < 0)
		warnings_add(r->warnings, "CPU samples of a process are lost: %s.", err.text);
	return true;
}

static void take_rings(struct recovery *r)
{
	CLEANUP(fd_cleanup) int folder = ring_folder_open(r->rings);
	int problem = folder < 0 ? folder : rings_each(folder, take_ring, r);

	if (problem && problem != -ENOENT)
		warnings_add(r->warnings, "CPU samples may be lost: %s: %s.", r->rings, strerror(-problem));
}

static int recover(struct recovery *r, const char *segment_path, struct error *err)
{
	struct error why;

	r->has_old = samples_read(segment_path, &r->old, &why) == 0;
	if (!r->has_old)
		warnings_add(r->warnings, "CPU samples are taken from the rings only: %s.", why.text);
	else if (r->old.damaged)
		warnings_add(r->warnings, "CPU samples are incomplete: %s.", r->old.trouble);
	if (r->has_old) {
		if (make_writer(r, r->old.recorder == WIRE_RECORDER_PERF ? WIRE_RECORDER_PERF : WIRE_RECORDER_PRELOAD,
				r->old.hz, r->old.t, err) < 0 ||
		    copy_tables(r, err) < 0)
			return -1;
		copy_samples(r);
	}
	take_rings(r);
	if (!r->writer)
		return error_set(err, "%s: there are no CPU samples", segment_path);
	if (r->failed)
		return error_set(err, "%s: out of memory", segment_path);
	image_ends_report(&r->ends, r->warnings);
	return 0;
}

static void release(struct recovery *r)
{
	samples_writer_free(r->writer);
	module_files_free(r->files);
	free(r->shared);
	free(r->nodes);
	free(r->last);
	for (size_t i = 0; i < r->gone_count; i++)
		free(r->gone[i]);
	free(r->gone);
	profile_release(&r->old);
}

/* What was taken is on file: the rings of those that have ended are not needed any more. */
static void remove_rings(struct recovery *r)
{
	if (r->alive) {
		for (size_t i = 0; i < r->gone_count; i++)
			unlink(r->gone[i]);
		warnings_add(r->warnings,
			     "%zu sampled process%s (%.*s) still run%s: recover again when %s ended, for the samples "
			     "of later on, or their files stay in memory.",
			     r->alive, r->alive == 1 ? "" : "es", (int)sizeof r->alive_pids - 1, r->alive_pids,
			     r->alive == 1 ? "s" : "", r->alive == 1 ? "it has" : "they have");
		return;
	}
	ring_folder_clear(r->rings);
	ring_folder_remove(r->rings, r->warnings);
}

int sampling_recover(const char *rings, const char *segment_path, struct warnings *warnings, struct error *err)
{
	CLEANUP(free_cleanup) char *path = NULL;
	struct recovery r = {.warnings = warnings, .rings = rings};
	int failed;

	profile_init(&r.old);
	if (asprintf(&path, "%s.new", segment_path) < 0) {
		path = NULL;
		return error_set(err, "%s: out of memory", segment_path);
	}
	unlink(path);
	r.path = path;
	failed = recover(&r, segment_path, err);
	/* Closed before it gets its name. */
	samples_writer_free(r.writer);
	r.writer = NULL;
	if (!failed && rename(path, segment_path) < 0)
		failed = error_set(err, "%s: %s", segment_path, strerror(errno));
	if (failed)
		unlink(path);
	else
		remove_rings(&r);
	release(&r);
	return failed;
}

static bool is_left(void *context, const char *name)
{
	(void)name;
	*(bool *)context = true;
	return false;
}

bool sampling_rings_left(const char *rings)
{
	CLEANUP(fd_cleanup) int folder = ring_folder_open(rings);
	bool left = false;

	return folder >= 0 && rings_each(folder, is_left, &left) == 0 && left;
}
