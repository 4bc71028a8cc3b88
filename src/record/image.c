#include "record/image.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define MAPS_EVERY_NS NS_PER_S

_Static_assert((int)SAMPLER_COMPLETE == (int)WIRE_SAMPLE_COMPLETE && (int)SAMPLER_CUT == (int)WIRE_SAMPLE_CUT &&
		       (int)SAMPLER_GUESSED == (int)WIRE_SAMPLE_GUESSED,
	       "marks of samples are the same in ring and segment");

int image_new(struct image_shared *shared, struct ring *ring, uint32_t id, int pid, struct image **ret,
	      struct error *err)
{
	struct image *i = calloc(1, sizeof *i);

	if (!i) {
		ring_close(ring);
		return error_set(err, "out of memory for a program image");
	}
	*i = (struct image){
		.shared = shared,
		.ring = ring,
		.id = id,
		.pid = pid,
		.anonymous = UINT32_MAX,
		.unknown = UINT32_MAX,
		.stamp = 1,
		.cpu_at_start = -1,
	};
	code_maps_init(&i->maps);
	*ret = i;
	return 0;
}

void image_free(struct image *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->slot_count; k++)
		free(i->slots[k].chain);
	free(i->slots);
	free(i->done);
	code_maps_release(&i->maps);
	ring_close(i->ring);
	free(i);
}

/* The module that a mapping announced by the sampler belongs to. */
static uint32_t announced_module(struct image *i, struct ring_module *m)
{
	struct module_seen seen = {
		/* A pid of another namespace is somebody else here. */
		.pid = i->pid_known ? i->pid : 0,
		.witness = ring_name(i->ring),
		.since = i->ring->mono_ns,
		.path = *m->path ? m->path : i->ring->exe,
		.program = !*m->path,
		.start = m->start,
		.end = m->end,
		.build_id = m->build_id,
		.build_id_length = m->build_id_length,
	};

	if (m->id != UINT32_MAX)
		return m->id;
	if (strncmp(m->path, "linux-vdso", 10) == 0 || strncmp(m->path, "linux-gate", 10) == 0) {
		struct wire_module vdso = {.kind = WIRE_MODULE_VDSO,
					   .build_id_length = (uint32_t)m->build_id_length};

		memcpy(vdso.build_id, m->build_id, m->build_id_length);
		m->id = samples_writer_module(i->shared->writer, &vdso, "[vdso]");
	} else {
		m->id = module_files_define(i->shared->files, &seen);
	}
	return m->id;
}

static uint32_t own_module(struct image *i, uint32_t *id, enum wire_module_kind kind, const char *name)
{
	struct wire_module module = {.kind = kind, .image = i->id};

	if (*id == UINT32_MAX)
		*id = samples_writer_module(i->shared->writer, &module, name);
	return *id;
}

/* Code that the loader knows nothing of: made at run time, or a file that was mapped by other means. */
static void resolve_map(struct image *i, struct code_map *m)
{
	struct module_seen seen = {
		.pid = i->pid, .path = m->path, .start = m->start, .end = m->end, .inode = m->inode};
	int fd = *m->path == '/' ? module_files_open(&seen) : -1;
	bool is_file = fd >= 0 && module_files_bias(fd, m->offset, m->start, &m->bias);

	if (fd >= 0)
		close(fd);
	m->resolved = true;
	if (is_file) {
		m->module = module_files_define(i->shared->files, &seen);
		return;
	}
	m->bias = 0;
	m->module = own_module(i, &i->anonymous, WIRE_MODULE_ANON, "[jit]");
}

static struct code_map *find_map(struct image *i, uint64_t address)
{
	struct code_map *m = code_maps_find(&i->maps, address);

	if (m || !i->pid_known || (i->maps_read_at && i->now - i->maps_read_at < MAPS_EVERY_NS))
		return m;
	i->maps_read_at = i->now;
	i->stamp++;
	/* A process that is gone has none, and one that runs another program by now has that one's. */
	if (code_maps_read_of(&i->maps, i->pid, ring_name(i->ring)) < 0)
		return NULL;
	return code_maps_find(&i->maps, address);
}

static uint32_t look_up(struct image *i, int64_t t, uint64_t address, uint64_t *ret_in_module)
{
	struct ring_module *announced = ring_module_at(i->ring, t, address);
	struct code_map *map;

	*ret_in_module = address;
	if (announced) {
		*ret_in_module = address - announced->bias;
		return announced_module(i, announced);
	}
	map = find_map(i, address);
	if (!map)
		return own_module(i, &i->unknown, WIRE_MODULE_UNKNOWN, "[unknown]");
	if (!map->resolved)
		resolve_map(i, map);
	*ret_in_module = address - map->bias;
	return map->module;
}

static struct image_place *place_of(struct image *i, uint64_t address)
{
	uint64_t hash = (address ^ (uint64_t)i->id << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return &i->shared->places[hash >> 40 & (IMAGE_PLACES - 1)];
}

static uint32_t module_at(struct image *i, int64_t t, uint64_t address, uint64_t *ret_in_module)
{
	const struct ring *r = i->ring;
	struct image_place *p = place_of(i, address);
	uint64_t stamp = i->stamp << 32 | r->module_count;
	/* An older sample may have seen another module there. */
	bool newest = !r->module_count || t >= r->modules[r->module_count - 1].t;

	if (newest && p->stamp == stamp && p->image == i->id && p->address == address) {
		*ret_in_module = p->in_module;
		return p->module;
	}
	*p = (struct image_place){.address = address, .image = i->id};
	p->module = look_up(i, t, address, &p->in_module);
	/* The look may have read the maps anew. */
	p->stamp = newest ? i->stamp << 32 | r->module_count : 0;
	*ret_in_module = p->in_module;
	return p->module;
}

static struct image_slot *slot_of(struct image *i, uint32_t slot)
{
	if (slot >= i->slot_count) {
		size_t count = slot + 8;
		struct image_slot *slots = reallocarray(i->slots, count, sizeof *slots);

		if (!slots)
			return NULL;
		for (size_t k = i->slot_count; k < count; k++)
			slots[k] = (struct image_slot){.thread = UINT32_MAX, .skip_until = INT64_MIN};
		i->slots = slots;
		i->slot_count = count;
	}
	return &i->slots[slot];
}

static bool reserve_chain(struct image_slot *s, uint32_t depth)
{
	uint32_t room = s->room ? s->room : 32, *chain;

	if (depth <= s->room)
		return true;
	while (room < depth)
		room *= 2;
	chain = reallocarray(s->chain, room, sizeof *chain);
	if (!chain)
		return false;
	s->chain = chain;
	s->room = room;
	return true;
}

/* Another thread has the slot; one whose samples are on file already keeps its number. */
static void begin_thread(struct image *i, struct image_slot *s, int tid, const char *name)
{
	s->tid = tid;
	s->skip_until = INT64_MIN;
	for (size_t k = 0; k < i->done_count; k++) {
		if (i->done[k].tid == tid) {
			s->thread = i->done[k].thread;
			s->skip_until = i->done[k].t;
			return;
		}
	}
	s->thread = samples_writer_thread(i->shared->writer, i->id, tid, name);
}

/* The first sample in a ring goes on from the frames of one that is on file only. */
static void resume_chain(struct image *i, struct image_slot *s, const struct ring_sample *sample)
{
	for (size_t k = 0; k < i->done_count; k++) {
		const struct image_done *d = &i->done[k];

		if (d->tid == sample->tid && reserve_chain(s, SAMPLER_FRAMES_MAX))
			s->depth = i->before(i->before_context, d->thread, sample->t, s->chain);
	}
}

static void on_thread(void *context, uint32_t slot, int tid, const char *name)
{
	struct image *i = context;
	struct image_slot *s = slot_of(i, slot);

	if (!s)
		return;
	if (s->thread != UINT32_MAX && s->tid == tid)
		samples_writer_rename(i->shared->writer, s->thread, name);
	else
		begin_thread(i, s, tid, name);
}

/* The chain becomes that of the sample. */
static void follow(struct image *i, struct image_slot *s, const struct ring_sample *sample)
{
	uint32_t parent;

	/* What was kept of a sample that was never read: its outer frames are missing. */
	if (sample->kept > s->depth) {
		memset(s->chain, 0, sample->kept * sizeof *s->chain);
		s->missing = sample->kept;
	}
	s->missing = s->missing < sample->kept ? s->missing : sample->kept;
	parent = sample->kept ? s->chain[sample->kept - 1] : 0;
	for (uint32_t k = 0; k < sample->count; k++) {
		uint64_t in_module;
		uint32_t module = module_at(i, sample->t, sample->frames[sample->count - 1 - k], &in_module);

		parent = samples_writer_node(i->shared->writer, parent, module, in_module);
		s->chain[sample->kept + k] = parent;
	}
	s->depth = sample->kept + sample->count;
}

static void on_sample(void *context, uint32_t slot, const struct ring_sample *sample)
{
	struct image *i = context;
	struct image_slot *s = slot_of(i, slot);
	struct wire_sample wire = {.t = sample->t, .weight = sample->weight};

	if (!s)
		return;
	if (s->thread == UINT32_MAX && i->done_count)
		resume_chain(i, s, sample);
	if (!reserve_chain(s, sample->kept + sample->count)) {
		s->depth = 0;
		return;
	}
	if (s->thread == UINT32_MAX || s->tid != sample->tid)
		begin_thread(i, s, sample->tid, "");
	follow(i, s, sample);
	i->taken += sample->weight;
	if (sample->t <= s->skip_until)
		return;
	wire.thread = s->thread;
	wire.node = s->depth ? s->chain[s->depth - 1] : 0;
	wire.flags = sample->flags & (SAMPLER_COMPLETE | SAMPLER_CUT | SAMPLER_GUESSED);
	if (s->missing)
		wire.flags = (wire.flags & ~(uint32_t)WIRE_SAMPLE_COMPLETE) | WIRE_SAMPLE_CUT;
	samples_writer_sample(i->shared->writer, &wire);
}

static void on_lost(void *context, uint32_t slot)
{
	struct image_slot *s = slot_of(context, slot);

	if (s)
		s->depth = s->missing = 0;
}

void image_drain(struct image *i, uint64_t least, int64_t now)
{
	const struct ring_sink sink = {i, on_thread, on_sample, on_lost};

	i->now = now;
	i->drained |= ring_drain(i->ring, least, &sink);
}

void image_release(struct image *i)
{
	if (i->drained)
		ring_release(i->ring);
	i->drained = false;
}
