#include "record/samples_writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/segment.h"

/* Sparse: it only has to be mapped. */
#define CAPACITY (UINT64_C(8) << 30)
#define SAMPLES_BUFFERED 256
#define NODES_BUFFERED 1024
/* Places are remembered in up to so many slots of 24 bytes: 48 MiB. */
#define SLOTS_MIN (1u << 12)
#define SLOTS_MAX (1u << 21)
/* Distinct modules; what comes past them counts as unknown code. */
#define MODULES_MAX 65536u
#define MODULE_SLOTS (2 * MODULES_MAX)
#define TEXT_MAX_BYTES 4096u
#define TRIM_EVERY 256 /* flushes */

struct slot {
	uint64_t address;
	uint32_t parent, module;
	uint32_t id; /* 0: empty */
	uint32_t reserved;
};

struct module {
	struct wire_module wire;
	char *path; /* owned */
};

struct samples_writer {
	struct segment_writer segment;
	uint32_t images, threads, nodes; /* how many there are */
	struct module *modules;
	uint32_t module_count, module_room;
	uint32_t *module_slots; /* hash of the modules: id + 1, 0 where empty */
	uint32_t unknown;       /* the module of what is past MODULES_MAX; UINT32_MAX: none yet */
	struct slot *slots;
	uint32_t slot_count, used; /* a power of two; how many are taken */
	uint32_t epoch;
	unsigned flushes;
	struct wire_node pending_nodes[NODES_BUFFERED];
	struct wire_sample pending_samples[SAMPLES_BUFFERED];
	size_t node_count, sample_count; /* that wait to be written */
};

int samples_writer_new(const char *path, enum wire_recorder recorder, uint32_t hz, int64_t t,
		       struct samples_writer **ret, struct error *err)
{
	struct samples_writer *w = calloc(1, sizeof *w);
	struct wire_profile profile = {.recorder = recorder, .hz = hz, .t = t};
	int failed = 0;

	if (w) {
		w->segment.fd = -1;
		w->unknown = UINT32_MAX;
		w->slot_count = SLOTS_MIN;
		w->slots = calloc(w->slot_count, sizeof *w->slots);
		w->module_slots = calloc(MODULE_SLOTS, sizeof *w->module_slots);
	}
	if (!w || !w->slots || !w->module_slots) {
		samples_writer_free(w);
		return error_set(err, "%s: out of memory", path);
	}
	failed = segment_create(&w->segment, path, SEGMENT_KIND_SAMPLES, CAPACITY);
	if (failed) {
		samples_writer_free(w);
		return error_set(err, "%s: %s", path, strerror(-failed));
	}
	segment_append(&w->segment, WIRE_PROFILE, 0, &profile, sizeof profile);
	*ret = w;
	return 0;
}

static void write_nodes(struct samples_writer *w)
{
	if (w->node_count)
		segment_append(&w->segment, WIRE_NODES, 0, w->pending_nodes,
			       w->node_count * sizeof *w->pending_nodes);
	w->node_count = 0;
}

void samples_writer_flush(struct samples_writer *w)
{
	if (!w->node_count && !w->sample_count)
		return;
	write_nodes(w);
	if (w->sample_count)
		segment_append(&w->segment, WIRE_SAMPLES, 0, w->pending_samples,
			       w->sample_count * sizeof *w->pending_samples);
	w->sample_count = 0;
	if (++w->flushes % TRIM_EVERY == 0)
		segment_trim(&w->segment);
}

void samples_writer_free(struct samples_writer *w)
{
	if (!w)
		return;
	samples_writer_flush(w);
	segment_close(&w->segment);
	for (uint32_t i = 0; i < w->module_count; i++)
		free(w->modules[i].path);
	free(w->modules);
	free(w->module_slots);
	free(w->slots);
	free(w);
}

/* A record: a struct and up to two texts, each ended by a zero byte. */
static void append_texts(struct samples_writer *w, uint16_t type, const void *fixed, size_t size, const char *first,
			 const char *second)
{
	size_t a = first ? strnlen(first, TEXT_MAX_BYTES) + 1 : 1, b = second ? strnlen(second, TEXT_MAX_BYTES) + 1 : 0;
	char *to = segment_reserve(&w->segment, type, 0, size + a + b);

	if (!to)
		return;
	memcpy(to, fixed, size);
	if (a > 1)
		memcpy(to + size, first, a - 1);
	if (b > 1)
		memcpy(to + size + a, second, b - 1);
	segment_commit(&w->segment);
}

uint32_t samples_writer_image(struct samples_writer *w, int pid, int ppid, int64_t t, const char *exe,
			      const char *command)
{
	struct wire_image image = {.id = w->images++, .pid = pid, .ppid = ppid, .t = t};

	append_texts(w, WIRE_IMAGE, &image, sizeof image, exe, command ? command : "");
	return image.id;
}

static void write_thread(struct samples_writer *w, const struct wire_thread *thread, const char *name)
{
	append_texts(w, WIRE_THREAD, thread, sizeof *thread, name, NULL);
}

uint32_t samples_writer_thread(struct samples_writer *w, uint32_t image, int tid, const char *name)
{
	struct wire_thread thread = {.id = w->threads++, .image = image, .tid = tid};

	write_thread(w, &thread, name);
	return thread.id;
}

void samples_writer_rename(struct samples_writer *w, uint32_t thread, const char *name)
{
	/* Of a second record only id and name count. */
	write_thread(w, &(struct wire_thread){.id = thread}, name);
}

/* FNV-1a: the keys come from elsewhere, but a bad spread costs time only, within the bounds above. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static bool same_module(const struct module *a, const struct wire_module *wire, const char *path)
{
	const struct wire_module *b = &a->wire;

	return b->kind == wire->kind && b->image == wire->image && b->build_id_length == wire->build_id_length &&
	       memcmp(b->build_id, wire->build_id, sizeof b->build_id) == 0 && b->device == wire->device &&
	       b->inode == wire->inode && b->size == wire->size && b->mtime_ns == wire->mtime_ns &&
	       strcmp(a->path, path) == 0;
}

/* Where the module is in the table, or the empty slot where it belongs. */
static uint32_t *find_module(struct samples_writer *w, const struct wire_module *module, const char *path)
{
	uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), path, strlen(path));
	uint32_t at;

	hash = hash_bytes(hash, &module->kind, sizeof module->kind);
	hash = hash_bytes(hash, &module->image, sizeof module->image);
	hash = hash_bytes(hash, &module->inode, sizeof module->inode);
	hash = hash_bytes(hash, module->build_id, sizeof module->build_id);
	at = (uint32_t)(hash ^ hash >> 32) & (MODULE_SLOTS - 1);
	while (w->module_slots[at] && !same_module(&w->modules[w->module_slots[at] - 1], module, path))
		at = (at + 1) & (MODULE_SLOTS - 1);
	return &w->module_slots[at];
}

static int grow_modules(struct samples_writer *w)
{
	uint32_t room = w->module_room ? 2 * w->module_room : 64;
	struct module *modules = reallocarray(w->modules, room, sizeof *modules);

	if (!modules)
		return -1;
	w->modules = modules;
	w->module_room = room;
	return 0;
}

/* Takes the path over, which may be NULL for want of memory. */
static uint32_t add_module(struct samples_writer *w, const struct wire_module *module, char *path)
{
	struct module *m;

	if (!path || (w->module_count == w->module_room && grow_modules(w) < 0)) {
		free(path);
		return UINT32_MAX;
	}
	m = &w->modules[w->module_count];
	*m = (struct module){.wire = *module, .path = path};
	m->wire.id = w->module_count;
	append_texts(w, WIRE_MODULE, &m->wire, sizeof m->wire, path, NULL);
	return w->module_count++;
}

/* What has no room any more, or no memory. */
static uint32_t unknown_module(struct samples_writer *w)
{
	static const struct wire_module unknown = {.kind = WIRE_MODULE_UNKNOWN};

	if (w->unknown == UINT32_MAX)
		w->unknown = add_module(w, &unknown, strdup("[unknown]"));
	return w->unknown == UINT32_MAX ? 0 : w->unknown;
}

uint32_t samples_writer_module(struct samples_writer *w, const struct wire_module *module, const char *path)
{
	CLEANUP(free_cleanup) char *key = strndup(path ? path : "", TEXT_MAX_BYTES);
	uint32_t *slot, id;

	if (!key)
		return unknown_module(w);
	slot = find_module(w, module, key);
	if (*slot)
		return *slot - 1;
	/* One more has to fit: the unknown one. */
	if (w->module_count + 1 >= MODULES_MAX)
		return unknown_module(w);
	id = add_module(w, module, key);
	key = NULL;
	if (id == UINT32_MAX)
		return unknown_module(w);
	*slot = id + 1;
	return id;
}

static uint32_t slot_of(const struct samples_writer *w, uint32_t parent, uint32_t module, uint64_t address)
{
	uint64_t hash = (address ^ (uint64_t)parent << 32 ^ parent) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 29 ^ module) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(hash >> 32) & (w->slot_count - 1);
}

static struct slot *find_node(struct samples_writer *w, uint32_t parent, uint32_t module, uint64_t address)
{
	uint32_t at = slot_of(w, parent, module, address);

	for (;; at = (at + 1) & (w->slot_count - 1)) {
		struct slot *s = &w->slots[at];

		if (!s->id || (s->address == address && s->parent == parent && s->module == module))
			return s;
	}
}

/* Makes room in the table, or empties it where it may not grow any more. */
static void make_room(struct samples_writer *w)
{
	uint32_t old_count = w->slot_count;
	struct slot *old = w->slots, *wider = NULL;

	if (old_count < SLOTS_MAX)
		wider = calloc(2 * (size_t)old_count, sizeof *wider);
	if (!wider) {
		memset(w->slots, 0, w->slot_count * sizeof *w->slots);
		w->used = 0;
		w->epoch++;
		return;
	}
	w->slots = wider;
	w->slot_count = 2 * old_count;
	for (uint32_t i = 0; i < old_count; i++)
		if (old[i].id)
			*find_node(w, old[i].parent, old[i].module, old[i].address) = old[i];
	free(old);
}

uint32_t samples_writer_node(struct samples_writer *w, uint32_t parent, uint32_t module, uint64_t address)
{
	struct slot *s = find_node(w, parent, module, address);

	if (s->id)
		return s->id;
	if (w->used + 1 > w->slot_count / 4 * 3) {
		make_room(w);
		s = find_node(w, parent, module, address);
	}
	w->used++;
	*s = (struct slot){.address = address, .parent = parent, .module = module, .id = ++w->nodes};
	if (w->node_count == NODES_BUFFERED)
		write_nodes(w);
	w->pending_nodes[w->node_count++] =
		(struct wire_node){.parent = parent, .module = module, .address = address};
	return w->nodes;
}

uint32_t samples_writer_epoch(const struct samples_writer *w)
{
	return w->epoch;
}

void samples_writer_sample(struct samples_writer *w, const struct wire_sample *sample)
{
	w->pending_samples[w->sample_count++] = *sample;
	if (w->sample_count == SAMPLES_BUFFERED)
		samples_writer_flush(w);
}

void samples_writer_image_end(struct samples_writer *w, const struct wire_image_end *end, const char *note)
{
	samples_writer_flush(w);
	append_texts(w, WIRE_IMAGE_END, end, sizeof *end, note, NULL);
}

void samples_writer_unsampled(struct samples_writer *w, int pid, int64_t cpu_ns, const char *name, const char *reason)
{
	struct wire_unsampled unsampled = {.pid = pid, .cpu_ns = cpu_ns};

	append_texts(w, WIRE_UNSAMPLED, &unsampled, sizeof unsampled, name, reason ? reason : "");
}

uint64_t samples_writer_dropped(const struct samples_writer *w, int *ret_errno)
{
	const struct segment_header *h = w->segment.header;

	*ret_errno = -w->segment.stopped;
	return h ? atomic_load_explicit(&h->dropped, memory_order_relaxed) : 0;
}
