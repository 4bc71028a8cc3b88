/* The recorder that reads what libassay-sampler.so writes inside the target's processes: finds their ring files,
 * empties them while they run, tells whose they are and when they have ended, and what could not be sampled. */
#include "record/sampling_recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "record/ring_finder.h"
#include "record/ring_folder.h"
#include "record/sampled_processes.h"
#include "record/unsampled.h"

/* All rings are emptied so often; one that is a quarter full at once. */
#define DRAIN_EVERY_NS (100 * NS_PER_MS)
#define DRAIN_AT_ONCE (SAMPLER_RING_BYTES / 4)
#define LOOKS_PER_ROUND 50 /* into /proc, for processes that the table does not have */
#define IMAGES_MAX 10000   /* at a time: each holds a mapping */
/* So long a round may open files, and so long it may read them: whoever makes very many shall not make us deaf. */
#define OPEN_FOR_NS (20 * NS_PER_MS)
#define READ_FOR_NS (100 * NS_PER_MS)
/* So long a file waits for the table of processes to have its process, which may have another pid for itself. */
#define DEFER_NS (300 * NS_PER_MS)
/* What a program claims may be so far above what it can have used. */
#define BELIEVED_SHARE 1.2
#define BELIEVED_NS (50.0 * NS_PER_MS)
#define AGAIN_NS (50 * NS_PER_MS)

struct preload {
	const struct sampling_context *context;
	char *folder, *library;
	char **environment;
	struct ring_finder *finder;
	struct image_shared *shared;
	struct image **images; /* that may still give samples */
	size_t count, room;
	bool ending;
	size_t next_look; /* where the looks into /proc go on */
	size_t next_read, next_count; /* and the reading and counting */
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
	free(p->images);
	free(p->shared);
	preload_environment_free(p->environment);
	sampled_processes_release(&p->processes);
	ring_finder_free(p->finder);
	if (p->folder) {
		ring_folder_clear(p->context->options->rings);
		ring_folder_remove(p->context->options->rings, NULL);
	}
	free(p->folder);
	free(p->library);
	free(p);
}

static int make_folder(struct preload *p, struct error *err)
{
	p->folder = ring_folder_make(p->context->options->rings, err);
	if (!p->folder)
		return -1;
	return ring_finder_new(p->context->options->rings, p->folder, &p->finder, err);
}

static int preload_open(const struct sampling_context *context, void **ret_state, struct error *err)
{
	struct preload *p = calloc(1, sizeof *p);

	if (!p)
		return error_set(err, "out of memory for the sampler");
	p->context = context;
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

/* What it says that it used, in several places: the largest counts. */
static int64_t claim_of(const struct image *i, const struct ring_counts *counts)
{
	uint64_t weight = counts->weight > i->taken ? counts->weight : i->taken;
	double ns = (double)weight * 1e9 / i->ring->hz + (double)counts->unsampled_ns;

	ns = (double)counts->ended_ns > ns ? (double)counts->ended_ns : ns;
	ns = (double)counts->handler_ns > ns ? (double)counts->handler_ns : ns;
	return ns < (double)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

/* Whether so much CPU time cannot have been used: more than all CPUs give, or than the kernel counted. */
static bool is_beyond_belief(const struct image *i, const struct sampled_process *process, int64_t claim, int64_t cpu)
{
	double cpus = (double)sysconf(_SC_NPROCESSORS_CONF);
	double most = (cpus > 0 ? cpus : 1) * (double)(clock_mono_ns() - i->ring->mono_ns);

	if (process && process->exact && cpu >= 0 && (double)cpu < most)
		most = (double)cpu;
	return (double)claim > most * BELIEVED_SHARE + BELIEVED_NS;
}

/* The image is over, or the recording is. */
static void end_image(struct preload *p, struct image *i, int64_t now)
{
	struct sampled_process *process = process_of(p, i);
	struct ring_counts counts;
	int64_t cpu = -1, own;
	bool believed;

	ring_count(i->ring, &counts);
	own = claim_of(i, &counts);
	if (process && process->cpu_ns >= 0)
		cpu = process->cpu_ns - (i->cpu_at_start > 0 ? i->cpu_at_start : 0);
	believed = !is_beyond_belief(i, process, own, cpu);
	if (cpu >= 0) {
		/* What another program used after it, without samples, is that one's. */
		if (process->looked)
			cpu = own < cpu ? own : cpu;
		cpu = cpu > 0 ? cpu : 0;
	}
	if (process) {
		process->live_ns = believed ? own : 0;
		process->image = process->image == i ? NULL : process->image;
	}
	/* Threads that ended have told what they used: at least that. */
	if (believed && (int64_t)counts.ended_ns > cpu && cpu >= 0)
		cpu = (int64_t)counts.ended_ns;
	image_ends_add(&p->ends,
		       &(struct image_end){
			       .image = i->id,
			       .ring = i->ring,
			       .counts = &counts,
			       .cpu_ns = cpu,
			       .claim_ns = own,
			       .believed = believed,
			       .t = now,
		       },
		       p->context->writer, p->context->warnings);
}

static void end_and_remove(struct preload *p, struct image *i, int64_t now)
{
	size_t at = i->place;

	image_drain(i, 0, now);
	samples_writer_flush(p->context->writer);
	end_image(p, i, now);
	ring_unlink(i->ring);
	ring_finder_discard(p->finder, i->ring->path);
	image_free(i);
	p->images[at] = p->images[--p->count];
	if (at < p->count)
		p->images[at]->place = at;
}

/* The image that this process was before it became another one by exec. False where the ring is that image's own: a
 * copy, or another name of the same file. */
static bool end_predecessor(struct preload *p, const struct ring *ring, int pid, int64_t now)
{
	struct sampled_process *process = sampled_process_at(&p->processes, pid, (int64_t)ring->start_ticks);
	struct image *before = process ? process->image : NULL;

	if (before && before->ring->mono_ns == ring->mono_ns)
		return false;
	if (before && before->ring->mono_ns < ring->mono_ns)
		end_and_remove(p, before, now);
	return true;
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
	if (!end_predecessor(p, ring, seen.pid, now)) {
		free(seen.command);
		error_set(err, "%s: a copy of another one", ring->path);
		ring_close(ring);
		return -1;
	}
	id = samples_writer_image(p->context->writer, seen.pid, ppid, ring->mono_ns, ring->exe, seen.command);
	free(seen.command);
	if (image_new(p->shared, ring, id, seen.pid, &image, err) < 0)
		return -1;
	image->pid_known = pid > 0;
	process = process_of(p, image);
	if (process) {
		image->cpu_at_start = process->has_ring ? process->cpu_ns : 0;
		sampled_process_has_ring(process, ring->exe);
		/* One that came late, of a program before the one that runs, takes nobody's place. */
		if (!process->image)
			process->image = image;
	}
	image->place = p->count;
	p->images[p->count++] = image;
	return 0;
}

static void refuse_file(struct preload *p, const char *path, const char *why)
{
	snprintf(p->refusal, sizeof p->refusal, "%.255s", why);
	ring_finder_discard(p->finder, path);
}

static void take_file(struct preload *p, const char *path, const struct process_table *table)
{
	int64_t now = clock_mono_ns();
	struct ring *ring = NULL;
	struct error err;
	int pid, ppid;

	if (ring_open(path, &ring, &err) < 0) {
		/* One that is gone again was emptied before. */
		if (access(path, F_OK) == 0 || errno != ENOENT)
			snprintf(p->refusal, sizeof p->refusal, "%.255s", err.text);
		ring_finder_discard(p->finder, path);
		return;
	}
	if (ring->hz != p->context->options->hz || ring->mono_ns > now) {
		if (ring->mono_ns > now)
			error_set(&err, "%.150s: it says that it was made in the future", path);
		else
			error_set(&err, "%.150s: at %u Hz, where %u Hz were asked for", path, ring->hz,
				  p->context->options->hz);
		ring_close(ring);
		refuse_file(p, path, err.text);
		return;
	}
	ppid = ring->ppid;
	pid = preload_find_pid(ring, table, &ppid);
	if (!pid && !p->ending && now - ring->mono_ns < DEFER_NS) {
		ring_finder_defer(p->finder, path, now + AGAIN_NS);
		ring_close(ring);
		return;
	}
	if (add_image(p, ring, pid, ppid, now, &err) < 0)
		refuse_file(p, path, err.text);
}

static bool in_a_hurry(const struct preload *p)
{
	return p->ending && p->context->options->hurry && *p->context->options->hurry;
}

/* Opens the files that have come, until the clock says `until`. */
static void find_files(struct preload *p, const struct process_table *table, int64_t until)
{
	int64_t due = p->ending ? INT64_MAX : clock_mono_ns();
	const char *path;

	ring_finder_look(p->finder, until);
	while (clock_mono_ns() < until && !in_a_hurry(p) && (path = ring_finder_next(p->finder, due)))
		take_file(p, path, table);
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
	while (left-- > 0 && p->count && !in_a_hurry(p)) {
		if (p->next_look >= p->count)
			p->next_look = 0;
		if (has_ended(p->images[p->next_look], table, &looks))
			end_and_remove(p, p->images[p->next_look], now);
		else
			p->next_look++;
	}
}

static void count_weight(struct preload *p, struct image *i)
{
	struct sampled_process *process;
	struct ring_counts counts;

	ring_count(i->ring, &counts);
	if (counts.weight == i->weight && counts.unsampled_ns == 0)
		return;
	i->weight = counts.weight;
	process = process_of(p, i);
	if (process)
		process->live_ns = claim_of(i, &counts);
}

static void count_weights(struct preload *p, int64_t until)
{
	for (size_t left = p->count; left > 0 && clock_mono_ns() < until && !in_a_hurry(p); left--)
		count_weight(p, p->images[p->next_count++ % p->count]);
}

static void drain(struct preload *p, uint64_t least, int64_t until, int64_t now)
{
	for (size_t left = p->count; left > 0 && clock_mono_ns() < until && !in_a_hurry(p); left--)
		image_drain(p->images[p->next_read++ % p->count], least, now);
}

static void preload_poll(void *state, const struct process_table *table, int64_t now)
{
	struct preload *p = state;
	bool round = now - p->drained_at >= DRAIN_EVERY_NS;

	find_files(p, table, clock_mono_ns() + OPEN_FOR_NS);
	drain(p, round ? 0 : DRAIN_AT_ONCE, clock_mono_ns() + READ_FOR_NS, now);
	release(p);
	if (!round)
		return;
	p->drained_at = now;
	count_weights(p, clock_mono_ns() + READ_FOR_NS);
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

/* What is left in the folder, of processes that live on, too: they may last for days, and nobody would ever look at
 * their rings again. */
static void remove_folder(struct preload *p)
{
	size_t unread = ring_finder_unread(p->finder);

	if (unread)
		warnings_add(p->context->warnings,
			     "Not profiled: %zu files of samples were not read, since there were too many or no time "
			     "was left.",
			     unread);
	ring_folder_clear(p->context->options->rings);
	ring_folder_remove(p->context->options->rings, p->context->warnings);
}

static void preload_end(void *state, const struct process_table *table, int64_t now)
{
	struct preload *p = state;

	p->ending = true;
	find_files(p, table, INT64_MAX);
	drain(p, 0, INT64_MAX, now);
	release(p);
	count_weights(p, INT64_MAX);
	sampled_processes_update(&p->processes, table);
	end_the_dead(p, table, UINT32_MAX, now);
	for (size_t i = 0; i < p->count; i++)
		end_image(p, p->images[i], now);
	sampled_processes_report(&p->processes, p->total_ns, p->context->writer, p->context->warnings);
	image_ends_report(&p->ends, p->context->warnings);
	if (*p->refusal)
		warnings_add(p->context->warnings, "Not profiled: a process whose file of samples is no good (%s).",
			     p->refusal);
	remove_folder(p);
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
