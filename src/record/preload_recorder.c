/* The recorder that reads what libassay-sampler.so writes inside the target's processes: finds their ring files,
 * empties them while they run, tells whose they are and when they have ended, and what could not be sampled. */
#include "record/sampling_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/procfs.h"
#include "exec/scan.h"
#include "record/image.h"
#include "record/image_ends.h"
#include "record/preload_target.h"
#include "record/ring_folder.h"
#include "record/sampled_processes.h"
#include "record/unsampled.h"

/* All rings are emptied so often; one that is a quarter full at once. */
#define DRAIN_EVERY_NS (100 * NS_PER_MS)
#define DRAIN_AT_ONCE (SAMPLER_RING_BYTES / 4)
#define LOOKS_PER_ROUND 50 /* into /proc, for processes that the table does not have */
#define IMAGES_MAX 20000   /* at a time: each holds a mapping */
/* So long a file waits for the table of processes to have its process, which may have another pid for itself. */
#define DEFER_NS (300 * NS_PER_MS)

struct preload {
	const struct sampling_context *context;
	char *folder, *library;
	char **environment;
	int notify; /* inotify; -1: the folder is listed at every round */
	struct image_shared *shared;
	struct image **images; /* that may still give samples */
	size_t count, room;
	char **pending; /* paths of files that wait for their process to be known; owned */
	size_t pending_count;
	bool ending;
	size_t next_look; /* where the looks into /proc go on */
	int64_t drained_at, total_ns;
	struct sampled_processes processes;
	struct image_ends ends;
	char refusal[256]; /* of a file that is no good; "": all are */
};

static void preload_close(void *state)
{
	struct preload *p = state;

	for (size_t i = 0; i < p->count; i++)
		image_free(p->images[i]);
	for (size_t i = 0; i < p->pending_count; i++)
		free(p->pending[i]);
	free(p->pending);
	free(p->images);
	free(p->shared);
	preload_environment_free(p->environment);
	sampled_processes_release(&p->processes);
	fd_cleanup(&p->notify);
	if (p->folder)
		ring_folder_remove(p->context->options->rings);
	free(p->folder);
	free(p->library);
	free(p);
}

static int make_folder(struct preload *p, struct error *err)
{
	p->folder = ring_folder_make(p->context->options->rings, err);
	if (!p->folder)
		return -1;
	p->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (p->notify >= 0 && inotify_add_watch(p->notify, p->folder, IN_MOVED_TO | IN_CREATE) < 0)
		fd_cleanup(&p->notify), p->notify = -1;
	return 0;
}

static int preload_open(const struct sampling_context *context, void **ret_state, struct error *err)
{
	struct preload *p = calloc(1, sizeof *p);

	if (!p)
		return error_set(err, "out of memory for the sampler");
	p->context = context;
	p->notify = -1;
	p->shared = calloc(1, sizeof *p->shared);
	p->library = preload_find_library(err);
	if (!p->shared || !p->library || make_folder(p, err) < 0) {
		if (!p->shared)
			error_set(err, "out of memory for the sampler");
		preload_close(p);
		return -1;
	}
	p->shared->writer = context->writer;
	p->shared->files = context->files;
	sampled_processes_init(&p->processes,
			       &(struct unsampled_needs){.library = p->library, .rings = p->folder});
	*ret_state = p;
	return 0;
}

static const char *const *preload_set(void *state, const char *const *env)
{
	struct preload *p = state;

	preload_environment_free(p->environment);
	p->environment = preload_environment(p->library, p->folder, p->context->options->hz, env);
	return (const char *const *)p->environment;
}

static struct sampled_process *process_of(struct preload *p, const struct image *i)
{
	return sampled_process_at(&p->processes, i->pid, (int64_t)i->ring->start_ticks);
}

/* The image is over, or the recording is. */
static void end_image(struct preload *p, struct image *i, int64_t now)
{
	struct sampled_process *process = process_of(p, i);
	struct ring_counts counts;
	int64_t cpu = -1, own;

	ring_count(i->ring, &counts);
	own = (int64_t)((double)counts.weight * 1e9 / i->ring->hz) + (int64_t)counts.unsampled_ns;
	if (process && process->cpu_ns >= 0) {
		cpu = process->cpu_ns - (i->cpu_at_start > 0 ? i->cpu_at_start : 0);
		/* What another program used after it, without samples, is that one's. */
		if (process->looked)
			cpu = own < cpu ? own : cpu;
		cpu = cpu > 0 ? cpu : 0;
	}
	if (process)
		process->live_ns = own;
	/* Threads that ended have told what they used: at least that. */
	if ((int64_t)counts.ended_ns > cpu && cpu >= 0)
		cpu = (int64_t)counts.ended_ns;
	image_ends_add(&p->ends, p->context->writer, i->id, i->ring, &counts, cpu, now);
}

static void end_and_remove(struct preload *p, size_t at, int64_t now)
{
	struct image *i = p->images[at];

	image_drain(i, 0, now);
	samples_writer_flush(p->context->writer);
	end_image(p, i, now);
	ring_unlink(i->ring);
	image_free(i);
	p->images[at] = p->images[--p->count];
}

/* The image that this process was before it became another one by exec. */
static void end_predecessor(struct preload *p, const struct ring *ring, int pid, int64_t now)
{
	for (size_t k = 0; k < p->count; k++) {
		const struct image *i = p->images[k];

		if (i->pid == pid && i->ring->start_ticks == ring->start_ticks && i->ring->mono_ns < ring->mono_ns) {
			end_and_remove(p, k, now);
			return;
		}
	}
}

static int reserve(struct preload *p, struct error *err)
{
	size_t room = p->room ? 2 * p->room : 32;
	struct image **images;

	if (p->count >= IMAGES_MAX)
		return error_set(err, "more than %d processes are sampled at a time", IMAGES_MAX);
	if (p->count < p->room)
		return 0;
	images = reallocarray(p->images, room, sizeof *images);
	if (!images)
		return error_set(err, "out of memory for %zu program images", room);
	p->images = images;
	p->room = room;
	return 0;
}

/* `pid` 0: whose ring it is could not be told. */
static int add_image(struct preload *p, struct ring *ring, int pid, int ppid, int64_t now, struct error *err)
{
	struct process seen = {0};
	struct sampled_process *process;
	struct image *image;
	uint32_t id;

	if (reserve(p, err) < 0) {
		ring_close(ring);
		return -1;
	}
	seen.pid = pid > 0 ? pid : ring->pid;
	if (pid > 0)
		scan_read_command(&seen);
	end_predecessor(p, ring, seen.pid, now);
	id = samples_writer_image(p->context->writer, seen.pid, ppid, ring->mono_ns, ring->exe, seen.command);
	free(seen.command);
	if (image_new(p->shared, ring, id, seen.pid, &image, err) < 0)
		return -1;
	image->pid_known = pid > 0;
	process = process_of(p, image);
	if (process) {
		image->cpu_at_start = process->has_ring ? process->cpu_ns : 0;
		sampled_process_has_ring(process, ring->exe);
	}
	p->images[p->count++] = image;
	return 0;
}

struct finding {
	struct preload *preload;
	const struct process_table *table;
	int64_t now;
};

static bool is_open(const struct preload *p, const char *path)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->images[i]->ring->path, path) == 0)
			return true;
	return false;
}

/* Without memory for it the file is lost to sight, until the folder is listed. */
static void defer(struct preload *p, const char *path)
{
	char **pending = reallocarray(p->pending, p->pending_count + 1, sizeof *pending);

	if (!pending)
		return;
	p->pending = pending;
	pending[p->pending_count] = strdup(path);
	p->pending_count += pending[p->pending_count] != NULL;
}

static void take_file(void *context, const char *path)
{
	struct finding *f = context;
	struct preload *p = f->preload;
	struct ring *ring = NULL;
	struct error err;
	int pid, ppid;

	if (is_open(p, path))
		return;
	if (ring_open(path, &ring, &err) < 0) {
		/* One that is gone again was emptied before. */
		if (access(path, F_OK) == 0)
			snprintf(p->refusal, sizeof p->refusal, "%.255s", err.text);
		return;
	}
	if (ring->hz != p->context->options->hz) {
		snprintf(p->refusal, sizeof p->refusal, "%.150s: at %u Hz, where %u Hz were asked for", path, ring->hz,
			 p->context->options->hz);
		ring_close(ring);
		return;
	}
	ppid = ring->ppid;
	pid = preload_find_pid(ring, f->table, &ppid);
	if (!pid && !p->ending && f->now - ring->mono_ns < DEFER_NS) {
		defer(p, path);
		ring_close(ring);
		return;
	}
	if (add_image(p, ring, pid, ppid, f->now, &err) < 0)
		snprintf(p->refusal, sizeof p->refusal, "%.255s", err.text);
}

static void take_pending(struct preload *p, const struct process_table *table, int64_t now)
{
	struct finding f = {p, table, now};
	char **pending = p->pending;
	size_t count = p->pending_count;

	p->pending = NULL;
	p->pending_count = 0;
	for (size_t i = 0; i < count; i++) {
		take_file(&f, pending[i]);
		free(pending[i]);
	}
	free(pending);
}

static void list_folder(struct finding *f)
{
	struct error err;

	if (rings_each(f->preload->folder, take_file, f, &err) < 0)
		snprintf(f->preload->refusal, sizeof f->preload->refusal, "%.255s", err.text);
}

/* Opens the files that have come. */
static void find_files(struct preload *p, const struct process_table *table, int64_t now)
{
	struct finding f = {p, table, now};
	_Alignas(struct inotify_event) char events[16384];
	bool all = p->notify < 0;
	ssize_t got;

	while (p->notify >= 0 && (got = read(p->notify, events, sizeof events)) > 0) {
		for (char *at = events; at < events + got;) {
			const struct inotify_event *e = (const struct inotify_event *)at;
			size_t length = e->len ? strlen(e->name) : 0, suffix = strlen(SAMPLER_FILE_SUFFIX);
			CLEANUP(free_cleanup) char *path = NULL;

			at += sizeof *e + e->len;
			all |= (e->mask & IN_Q_OVERFLOW) != 0;
			if (length <= suffix || strcmp(e->name + length - suffix, SAMPLER_FILE_SUFFIX) != 0)
				continue;
			path = fs_join(p->folder, e->name);
			if (path && access(path, F_OK) == 0)
				take_file(&f, path);
		}
	}
	if (all)
		list_folder(&f);
}

/* Makes what was drained safe, and only then gives its room back. */
static void release(struct preload *p)
{
	samples_writer_flush(p->context->writer);
	for (size_t i = 0; i < p->count; i++)
		image_release(p->images[i]);
}

/* Whether its process has ended; `looks` is how often /proc may still be asked. */
static bool has_ended(const struct image *i, const struct process_table *table, unsigned *looks)
{
	if (preload_in_table(i->ring, i->pid, table))
		return false;
	if (!*looks)
		return false;
	--*looks;
	return !preload_lives(i->ring, i->pid_known ? i->pid : 0);
}

static void end_the_dead(struct preload *p, const struct process_table *table, unsigned looks, int64_t now)
{
	size_t left = p->count;

	/* From where the last round stopped, so that each gets its turn. */
	while (left-- > 0 && p->count) {
		if (p->next_look >= p->count)
			p->next_look = 0;
		if (has_ended(p->images[p->next_look], table, &looks))
			end_and_remove(p, p->next_look, now);
		else
			p->next_look++;
	}
}

static void count_weights(struct preload *p)
{
	for (size_t k = 0; k < p->count; k++) {
		struct image *i = p->images[k];
		struct sampled_process *process;
		struct ring_counts counts;

		ring_count(i->ring, &counts);
		if (counts.weight == i->weight && counts.unsampled_ns == 0)
			continue;
		i->weight = counts.weight;
		process = process_of(p, i);
		if (process)
			process->live_ns = (int64_t)((double)counts.weight * 1e9 / i->ring->hz) +
					   (int64_t)counts.unsampled_ns;
	}
}

static void preload_poll(void *state, const struct process_table *table, int64_t now)
{
	struct preload *p = state;
	bool round = now - p->drained_at >= DRAIN_EVERY_NS;

	find_files(p, table, now);
	if (round)
		take_pending(p, table, now);
	for (size_t i = 0; i < p->count; i++)
		image_drain(p->images[i], round ? 0 : DRAIN_AT_ONCE, now);
	release(p);
	if (!round)
		return;
	p->drained_at = now;
	count_weights(p);
	sampled_processes_update(&p->processes, table);
	end_the_dead(p, table, LOOKS_PER_ROUND, now);
}

static void preload_reaped(void *state, const struct wire_exit *e, int64_t now)
{
	struct preload *p = state;

	(void)now;
	p->total_ns += e->user_ns + e->system_ns;
	sampled_processes_reaped(&p->processes, e);
}

static void preload_forgotten(void *state, const struct process *process)
{
	struct preload *p = state;

	sampled_processes_forgotten(&p->processes, process);
}

static void preload_end(void *state, const struct process_table *table, int64_t now)
{
	struct preload *p = state;

	p->ending = true;
	find_files(p, table, now);
	take_pending(p, table, now);
	for (size_t i = 0; i < p->count; i++)
		image_drain(p->images[i], 0, now);
	release(p);
	count_weights(p);
	sampled_processes_update(&p->processes, table);
	end_the_dead(p, table, UINT32_MAX, now);
	for (size_t i = 0; i < p->count; i++)
		end_image(p, p->images[i], now);
	sampled_processes_report(&p->processes, p->total_ns, p->context->writer, p->context->warnings);
	image_ends_report(&p->ends, p->context->warnings);
	if (*p->refusal)
		warnings_add(p->context->warnings, "Not profiled: a process whose file of samples is no good (%s).",
			     p->refusal);
	/* Of processes that live on, too: they may last for days, and nobody would ever look at their rings again. */
	rings_remove(p->folder);
}

const struct sampling_recorder preload_recorder = {
	.name = "preload",
	.wire = WIRE_RECORDER_PRELOAD,
	.open = preload_open,
	.close = preload_close,
	.environment = preload_set,
	.poll = preload_poll,
	.reaped = preload_reaped,
	.forgotten = preload_forgotten,
	.end = preload_end,
};
