#include "record/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "record/elf_headers.h"
#include "record/ring_guard.h"

#define RECORD_BYTES_MAX (sizeof(struct sampler_sample) + SAMPLER_FRAMES_MAX * sizeof(uint64_t))
#define FILE_BYTES_MAX ((uint64_t)1 << 40)
#define MODULES_MAX 8192u
#define SLOTS_FIRST 8u /* that are mapped at first */

static struct sampler_slot *slot_at(const struct ring *r, uint32_t slot)
{
	return (struct sampler_slot *)((char *)r->header + r->slots_at + slot * r->slot_bytes);
}

/* Checks the header's places against the file's size, on a copy that does not change. */
static int check(const struct sampler_header *h, uint64_t bytes, const char *path, struct error *err)
{
	if (memcmp(h->magic, SAMPLER_MAGIC, sizeof h->magic) != 0)
		return error_set(err, "%s: not a ring file of assay's sampler", path);
	if (h->version != SAMPLER_VERSION)
		return error_set(err, "%s: a ring file of version %u; this program reads version %d", path,
				 (unsigned)h->version, SAMPLER_VERSION);
	if (h->hz == 0 || h->hz > 1000000)
		return error_set(err, "%s: damaged: samples at %u Hz cannot be", path, (unsigned)h->hz);
	if (h->slot_size != SAMPLER_SLOT_BYTES || h->slot_max == 0 || h->slot_max > SAMPLER_SLOTS_MAX ||
	    h->slots_offset % 64 || h->slots_offset < sizeof *h || h->modules_offset % 8 ||
	    h->modules_offset < sizeof *h || h->modules_bytes > SAMPLER_MODULE_BYTES ||
	    (uint64_t)h->modules_offset + h->modules_bytes > h->slots_offset || h->slots_offset > bytes)
		return error_set(err, "%s: damaged: its header does not describe a file of %llu bytes", path,
				 (unsigned long long)bytes);
	return 0;
}

static void take_header(struct ring *r, const struct sampler_header *h)
{
	r->pid = h->pid;
	r->ppid = h->ppid;
	r->hz = h->hz;
	r->slot_max = h->slot_max;
	r->start_ticks = h->start_ticks;
	r->mono_ns = h->mono_ns;
	r->slot_bytes = h->slot_size;
	r->slots_at = h->slots_offset;
	r->modules_at = h->modules_offset;
	r->modules_room = h->modules_bytes;
}

static int refuse_map(const char *path, int code, struct error *err)
{
	struct rlimit limit;

	if (code == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		return error_set(err, "%s: assay's own limit on memory (ulimit -v %llu) leaves no room to read it",
				 path, (unsigned long long)limit.rlim_cur / 1024);
	return error_set(err, "%s: %s", path, strerror(code));
}

/* Reads the header with a system call, so that a file which is cut meanwhile does no harm. */
static int read_header(struct ring *r, int fd, struct sampler_header *h, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, "%s: %s", r->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof *h || (uint64_t)st.st_size > FILE_BYTES_MAX ||
	    !elf_read_at(fd, 0, h, sizeof *h))
		return error_set(err, "%s: not a ring file of assay's sampler", r->path);
	h->exe[sizeof h->exe - 1] = '\0';
	r->file_bytes = (uint64_t)st.st_size;
	r->device = st.st_dev;
	r->inode = st.st_ino;
	return check(h, r->file_bytes, r->path, err);
}

static uint32_t slots_inside(const struct ring *r, uint64_t bytes)
{
	uint64_t fit = bytes > r->slots_at ? (bytes - r->slots_at) / r->slot_bytes : 0;

	return fit < r->slot_max ? (uint32_t)fit : r->slot_max;
}

static uint64_t bytes_of(const struct ring *r, uint32_t slots)
{
	uint64_t bytes = r->slots_at + slots * r->slot_bytes;

	return bytes < r->file_bytes ? bytes : r->file_bytes;
}

/* The part that is in use, since the file has its full size, for thousands of threads, from the start. */
static int map(struct ring *r, int fd, struct error *err)
{
	uint64_t bytes = bytes_of(r, SLOTS_FIRST);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return refuse_map(r->path, errno, err);
	r->header = at;
	r->bytes = bytes;
	return 0;
}

int ring_open(const char *path, struct ring **ret, struct error *err)
{
	/* O_NONBLOCK: a FIFO of that name would wait for its writer. */
	CLEANUP(fd_cleanup) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct sampler_header copy;
	struct ring *r;

	if (fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	r = calloc(1, sizeof *r);
	if (!r || !(r->path = strdup(path))) {
		ring_close(r);
		return error_set(err, "%s: out of memory", path);
	}
	if (read_header(r, fd, &copy, err) < 0) {
		ring_close(r);
		return -1;
	}
	take_header(r, &copy);
	r->exe = strdup(copy.exe);
	if (!r->exe || map(r, fd, err) < 0) {
		if (!r->exe)
			error_set(err, "%s: out of memory", path);
		ring_close(r);
		return -1;
	}
	*ret = r;
	return 0;
}

const char *ring_name(const struct ring *r)
{
	const char *slash = strrchr(r->path, '/');

	return slash ? slash + 1 : r->path;
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	if (r->header)
		munmap(r->header, r->bytes);
	for (size_t i = 0; i < r->module_count; i++)
		free(r->modules[i].path);
	free(r->modules);
	free(r->tails);
	free(r->exe);
	free(r->path);
	free(r);
}

void ring_unlink(const struct ring *r)
{
	struct stat st;

	if (lstat(r->path, &st) == 0 && st.st_dev == r->device && st.st_ino == r->inode)
		unlink(r->path);
}

/* How many slots are in use, as far as the file goes. */
static uint32_t slots_in_use(const struct ring *r)
{
	uint32_t used = atomic_load_explicit(&r->header->slots, memory_order_acquire);
	uint32_t fit = slots_inside(r, r->file_bytes);

	return used < fit ? used : fit;
}

/* How many of them are mapped; maps more where it is too few. Not to be called while guarded. */
static uint32_t slots_to_read(struct ring *r)
{
	uint32_t used, mapped = slots_inside(r, r->bytes), wanted;
	uint64_t bytes;
	void *at;

	ring_guard_begin(r->header, r->bytes);
	used = slots_in_use(r);
	r->broken = ring_guard_end();
	if (r->broken || used <= mapped)
		return r->broken ? 0 : used;
	wanted = used > 2 * mapped ? used : 2 * mapped;
	bytes = bytes_of(r, wanted);
	at = mremap(r->header, r->bytes, bytes, MREMAP_MAYMOVE);
	if (at == MAP_FAILED) {
		bytes = bytes_of(r, used);
		at = mremap(r->header, r->bytes, bytes, MREMAP_MAYMOVE);
	}
	r->unread_slots = at == MAP_FAILED ? used - mapped : 0;
	if (at == MAP_FAILED)
		return mapped;
	r->header = at;
	r->bytes = bytes;
	return used;
}

static int grow_tails(struct ring *r, uint32_t count)
{
	uint64_t *tails;

	if (count <= r->tail_count)
		return 0;
	tails = reallocarray(r->tails, count, sizeof *tails);
	if (!tails)
		return -1;
	r->tails = tails;
	for (; r->tail_count < count; r->tail_count++)
		tails[r->tail_count] =
			atomic_load_explicit(&slot_at(r, (uint32_t)r->tail_count)->tail, memory_order_relaxed);
	return 0;
}

/* Keeps them in the order of t, though they are announced by several threads at once. */
static int insert_module(struct ring *r, const struct ring_module *m)
{
	size_t at = r->module_count;

	if (r->module_count == r->module_room) {
		size_t room = r->module_room ? 2 * r->module_room : 32;
		struct ring_module *modules = reallocarray(r->modules, room, sizeof *modules);

		if (!modules)
			return -1;
		r->modules = modules;
		r->module_room = room;
	}
	while (at > 0 && r->modules[at - 1].t > m->t)
		at--;
	memmove(r->modules + at + 1, r->modules + at, (r->module_count - at) * sizeof *r->modules);
	r->modules[at] = *m;
	r->module_count++;
	return 0;
}

/* Two threads may announce the same module twice. */
static bool is_known(const struct ring *r, const struct sampler_module *m)
{
	const struct ring_module *known = ring_module_at(r, m->t, m->start);

	return known && known->start == m->start && known->end == m->end && known->bias == m->bias &&
	       known->build_id_length == m->build_id_length && m->build_id_length > 0 &&
	       memcmp(known->build_id, m->build_id, m->build_id_length) == 0;
}

static int take_module(struct ring *r, const struct sampler_module *from, uint32_t size)
{
	struct sampler_module copy;
	struct ring_module m;
	int failed;

	memcpy((void *)&copy, from, sizeof copy);
	if (copy.path_length > size - sizeof copy || copy.build_id_length > sizeof copy.build_id ||
	    copy.start >= copy.end)
		return 0; /* makes no sense: it is passed over, its size did */
	if (is_known(r, &copy))
		return 0;
	m = (struct ring_module){
		.t = copy.t,
		.start = copy.start,
		.end = copy.end,
		.bias = copy.bias,
		.path = strndup(from->path, copy.path_length),
		.build_id_length = copy.build_id_length,
		.id = UINT32_MAX,
	};
	memcpy(m.build_id, copy.build_id, copy.build_id_length);
	failed = !m.path || insert_module(r, &m) < 0;
	if (failed)
		free(m.path);
	return failed ? -1 : 0;
}

static void read_modules(struct ring *r)
{
	const char *area = (const char *)r->header + r->modules_at;
	uint64_t used = atomic_load_explicit(&r->header->modules_used, memory_order_acquire);

	used = used < r->modules_room ? used : r->modules_room;
	while (r->modules_read + sizeof(struct sampler_module) <= used && r->module_count < MODULES_MAX) {
		const struct sampler_module *m = (const struct sampler_module *)(area + r->modules_read);
		uint32_t size = atomic_load_explicit(&m->size, memory_order_acquire);

		if (size < sizeof *m || size % 8 || size > used - r->modules_read || take_module(r, m, size) < 0)
			return; /* not whole yet, or never */
		r->modules_read += size;
	}
}

/* Two threads that meet a module at once announce it one after the other, so a sample may be a little older than the
 * record of its module. */
#define LATE_NS INT64_C(1000000000)

struct ring_module *ring_module_at(const struct ring *r, int64_t t, uint64_t address)
{
	struct ring_module *late = NULL;

	for (size_t i = r->module_count; i-- > 0;) {
		struct ring_module *m = &r->modules[i];

		if (address < m->start || address >= m->end)
			continue;
		if (m->t <= t)
			return m;
		late = m->t - t < LATE_NS ? m : NULL;
	}
	return late;
}

/* A record that was copied whole, `size` bytes. False where it makes no sense. */
static bool take_record(const struct sampler_record *record, uint32_t slot, const struct ring_sink *sink)
{
	if (record->type == SAMPLER_PAD)
		return true;
	if (record->type == SAMPLER_THREAD && record->size >= sizeof(struct sampler_thread)) {
		const struct sampler_thread *t = (const struct sampler_thread *)record;
		char name[SAMPLER_NAME_BYTES + 1];

		memcpy(name, t->name, SAMPLER_NAME_BYTES);
		name[SAMPLER_NAME_BYTES] = '\0';
		sink->thread(sink->context, slot, t->tid, name);
		return true;
	}
	if (record->type == SAMPLER_SAMPLE && record->size >= sizeof(struct sampler_sample)) {
		const struct sampler_sample *s = (const struct sampler_sample *)record;
		struct ring_sample sample = {s->t,    s->tid,   s->weight, record->flags,
					     s->kept, s->count, s->frames};

		if (s->kept > SAMPLER_FRAMES_MAX || s->count > SAMPLER_FRAMES_MAX - s->kept ||
		    s->count * sizeof *s->frames > record->size - sizeof *s)
			return false;
		sink->sample(sink->context, slot, &sample);
		return true;
	}
	return false;
}

/* Copies the record at `tail` out of the ring; 0 where there is none that makes sense, else its size. */
static uint32_t copy_record(const char *ring, uint64_t tail, uint64_t head, void *to)
{
	uint64_t at = tail % SAMPLER_RING_BYTES, left = head - tail;
	struct sampler_record record;

	if (at % 8 || left < sizeof record || SAMPLER_RING_BYTES - at < sizeof record)
		return 0;
	memcpy(&record, ring + at, sizeof record);
	if (record.size < sizeof record || record.size % 8 || record.size > left ||
	    record.size > SAMPLER_RING_BYTES - at)
		return 0;
	if (record.type == SAMPLER_PAD) {
		memcpy(to, &record, sizeof record);
		return record.size;
	}
	if (record.size > RECORD_BYTES_MAX)
		return 0;
	memcpy(to, ring + at, record.size);
	/* It may have changed in the meantime: what was checked is what counts. */
	memcpy(to, &record, sizeof record);
	return record.size;
}

static bool drain_slot(struct ring *r, uint32_t slot, uint64_t least, const struct ring_sink *sink)
{
	/* Aligned for the records that it holds. */
	static _Thread_local uint64_t copy[(RECORD_BYTES_MAX + 7) / 8];
	struct sampler_slot *s = slot_at(r, slot);
	uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire), tail = r->tails[slot];

	if (head == tail || head - tail < least)
		return false;
	/* Modules that these samples need were recorded before them. */
	read_modules(r);
	if (head - tail > SAMPLER_RING_BYTES) {
		sink->lost(sink->context, slot);
		tail = head;
	}
	while (tail != head) {
		uint32_t size = copy_record((const char *)s + SAMPLER_RING_OFFSET, tail, head, copy);

		if (!size || !take_record((const struct sampler_record *)copy, slot, sink)) {
			sink->lost(sink->context, slot);
			/* Without its size there is no next one. */
			tail = size ? tail + size : head;
			continue;
		}
		tail += size;
	}
	r->tails[slot] = tail;
	return true;
}

bool ring_drain(struct ring *r, uint64_t least, const struct ring_sink *sink)
{
	bool any = false;
	uint32_t used = r->broken ? 0 : slots_to_read(r);

	if (r->broken)
		return false;
	ring_guard_begin(r->header, r->bytes);
	/* Without memory for its tail a slot waits. */
	used = grow_tails(r, used) == 0 ? used : (uint32_t)r->tail_count;
	for (uint32_t i = 0; i < used; i++)
		any |= drain_slot(r, i, least, sink);
	r->broken = ring_guard_end();
	return any;
}

void ring_release(struct ring *r)
{
	if (r->broken)
		return;
	ring_guard_begin(r->header, r->bytes);
	for (size_t i = 0; i < r->tail_count; i++) {
		struct sampler_slot *s = slot_at(r, (uint32_t)i);

		/* Only what changed: each store takes the line from the writer's cache. */
		if (atomic_load_explicit(&s->tail, memory_order_relaxed) != r->tails[i])
			atomic_store_explicit(&s->tail, r->tails[i], memory_order_release);
	}
	r->broken = ring_guard_end();
}

void ring_count(struct ring *r, struct ring_counts *ret)
{
	uint32_t used = r->broken ? 0 : slots_to_read(r);
	struct sampler_header *h = r->header;

	*ret = (struct ring_counts){0};
	if (r->broken)
		return;
	ring_guard_begin(r->header, r->bytes);
	for (uint32_t i = 0; i < used; i++) {
		struct sampler_slot *s = slot_at(r, i);

		ret->deliveries += atomic_load_explicit(&s->deliveries, memory_order_relaxed);
		ret->weight += atomic_load_explicit(&s->weight, memory_order_relaxed);
		ret->dropped += atomic_load_explicit(&s->dropped, memory_order_relaxed);
		ret->dropped_weight += atomic_load_explicit(&s->dropped_weight, memory_order_relaxed);
		ret->handler_ns += atomic_load_explicit(&s->handler_ns, memory_order_relaxed);
		ret->ended_ns += atomic_load_explicit(&s->ended_ns, memory_order_relaxed);
	}
	ret->trouble = atomic_load_explicit(&h->trouble, memory_order_relaxed);
	ret->unarmed = atomic_load_explicit(&h->unarmed, memory_order_relaxed);
	ret->roomless = atomic_load_explicit(&h->roomless, memory_order_relaxed);
	ret->unarmed_errno = atomic_load_explicit(&h->unarmed_errno, memory_order_relaxed);
	ret->unsampled_ns = atomic_load_explicit(&h->unsampled_ns, memory_order_relaxed);
	ret->closed = atomic_load_explicit(&h->closed, memory_order_relaxed) == 1;
	r->broken = ring_guard_end();
}

int rings_each(int folder, bool (*each)(void *context, const char *name), void *context)
{
	/* Another descriptor, since the position is shared by copies. */
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int code = errno;

		if (fd >= 0)
			close(fd);
		return -code;
	}
	while ((entry = readdir(dir)))
		if (ring_is_name(entry->d_name) && !each(context, entry->d_name))
			break;
	closedir(dir);
	return 0;
}

bool ring_is_name(const char *name)
{
	size_t length = strlen(name), ending = strlen(SAMPLER_FILE_SUFFIX);

	return length > ending && strcmp(name + length - ending, SAMPLER_FILE_SUFFIX) == 0;
}
