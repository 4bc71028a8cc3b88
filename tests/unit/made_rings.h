/* Ring files as a sampled process would write them, one record at a time. */
#ifndef ASSAY_TESTS_MADE_RINGS_H
#define ASSAY_TESTS_MADE_RINGS_H

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/sampler.h"

#define MADE_SLOTS 4u
#define MADE_MODULES 65536u

struct made_ring {
	struct sampler_header *header;
	size_t bytes;
};

static inline struct made_ring made_ring_new(const char *path, int pid, int64_t mono_ns)
{
	struct made_ring r = {.bytes = 4096 + MADE_MODULES + MADE_SLOTS * (size_t)SAMPLER_SLOT_BYTES};
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	struct sampler_header *h;

	assert(fd >= 0 && ftruncate(fd, (off_t)r.bytes) == 0);
	h = r.header = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(h != MAP_FAILED);
	close(fd);
	h->version = SAMPLER_VERSION;
	h->pid = pid;
	h->ppid = 1;
	h->hz = 199;
	h->slot_size = SAMPLER_SLOT_BYTES;
	h->slot_max = MADE_SLOTS;
	h->modules_offset = 4096;
	h->modules_bytes = MADE_MODULES;
	h->slots_offset = 4096 + MADE_MODULES;
	h->mono_ns = mono_ns;
	strcpy(h->exe, "/nowhere/program");
	memcpy(h->magic, SAMPLER_MAGIC, sizeof h->magic);
	return r;
}

static inline void made_ring_free(struct made_ring *r)
{
	munmap(r->header, r->bytes);
}

/* Maps the file anew, `bytes` of it. */
static inline void made_ring_map(struct made_ring *r, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert(fd >= 0);
	r->header = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(r->header != MAP_FAILED);
	close(fd);
}

static inline struct sampler_slot *made_slot(struct made_ring *r, uint32_t slot)
{
	if (r->header->slots <= slot)
		r->header->slots = slot + 1;
	return (struct sampler_slot *)((char *)r->header + r->header->slots_offset + slot * SAMPLER_SLOT_BYTES);
}

/* Writes a record as the sampler does: behind a pad where it would wrap. False where there is no room. */
static inline int made_put(struct made_ring *r, uint32_t slot, const void *record, uint32_t size)
{
	struct sampler_slot *s = made_slot(r, slot);
	char *ring = (char *)s + SAMPLER_RING_OFFSET;
	uint64_t head = s->head, at = head % SAMPLER_RING_BYTES, left = SAMPLER_RING_BYTES - at;
	uint64_t need = left < size ? left + size : size;

	if (head + need - s->tail > SAMPLER_RING_BYTES) {
		s->dropped++;
		return 0;
	}
	if (left < size) {
		struct sampler_record pad = {(uint32_t)left, SAMPLER_PAD, 0};

		memcpy(ring + at, &pad, sizeof pad);
		head += left;
		at = 0;
	}
	memcpy(ring + at, record, size);
	s->head = head + size;
	return 1;
}

static inline void made_thread(struct made_ring *r, uint32_t slot, int tid, const char *name)
{
	struct sampler_thread t = {.record = {sizeof t, SAMPLER_THREAD, 0}, .tid = tid};

	strncpy(t.name, name, sizeof t.name - 1);
	made_put(r, slot, &t, sizeof t);
}

/* `frames`: innermost first. */
static inline int made_sample(struct made_ring *r, uint32_t slot, int tid, int64_t t, uint32_t kept,
			      const uint64_t *frames, uint32_t count, uint16_t flags)
{
	uint64_t bytes[(sizeof(struct sampler_sample) + SAMPLER_FRAMES_MAX * 8) / 8];
	struct sampler_sample *s = (struct sampler_sample *)bytes;
	uint32_t size = (uint32_t)(sizeof *s + count * 8);
	struct sampler_slot *at = made_slot(r, slot);

	*s = (struct sampler_sample){.record = {size, SAMPLER_SAMPLE, flags},
				     .t = t,
				     .tid = tid,
				     .weight = 1,
				     .kept = kept,
				     .count = count};
	memcpy(s->frames, frames, count * 8);
	at->deliveries++;
	at->weight++;
	return made_put(r, slot, s, size);
}

static inline void made_module(struct made_ring *r, int64_t t, uint64_t start, uint64_t end, uint64_t bias,
			       const char *path, uint8_t id)
{
	uint32_t length = (uint32_t)strlen(path), size = (uint32_t)(sizeof(struct sampler_module) + length + 7) & ~7u;
	struct sampler_module *m =
		(struct sampler_module *)((char *)r->header + r->header->modules_offset + r->header->modules_used);

	assert(r->header->modules_used + size <= r->header->modules_bytes);
	r->header->modules_used += size;
	m->path_length = (uint16_t)length;
	m->build_id_length = id ? 20 : 0;
	memset(m->build_id, id, m->build_id_length);
	m->t = t;
	m->start = start;
	m->end = end;
	m->bias = bias;
	memcpy(m->path, path, length);
	m->size = size;
}

#endif
