/* Names of regions and their ids, which stay for the life of the process, over forks and recordings. All text is
 * copied: a plug-in may be unloaded with its descriptors. The memory is mapped, never malloc's, and only grows.
 *
 * Guarded by the recording's lock. A fork may come while another thread is in here; so an id counts only once
 * `names.count` reaches it, and what was begun beyond it is written over. */
#include <string.h>
#include <sys/mman.h>

#include "lib/export.h"
#include "lib/recording.h"

#define HASH_SLOTS 131072u /* a power of two, twice the ids */
#define CHUNK_BYTES (UINT64_C(128) << 10)

struct name {
	struct assay_region region;
	uint32_t hash;
	char text[];
};

static struct {
	struct name **by_id;
	uint32_t *slots;
	uint32_t count; /* ids 1 to count are there */
	char *chunk, *chunk_end;
} names;

static struct assay_region other_names = {"(other names)", "", "", 0, REGION_ID_MAX};

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Bytes of the text that count: at most REGION_NAME_MAX, cut between two characters of UTF-8. */
static size_t length_of(const char *text)
{
	size_t length = text ? strnlen(text, REGION_NAME_MAX + 1) : 0;

	if (length > REGION_NAME_MAX) {
		length = REGION_NAME_MAX;
		while (length > REGION_NAME_MAX - 4 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	return length;
}

static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static bool prepare(void)
{
	if (!names.by_id)
		names.by_id = map((REGION_ID_MAX + 1) * sizeof *names.by_id);
	if (!names.slots)
		names.slots = map(HASH_SLOTS * sizeof *names.slots);
	return names.by_id && names.slots;
}

/* The slot of that name, or the free one where it belongs. */
static uint32_t *slot_of(const char *text, size_t length, uint32_t hash)
{
	uint32_t at = hash;

	for (;; at++) {
		uint32_t *slot = &names.slots[at & (HASH_SLOTS - 1)];
		const struct name *known;

		if (*slot == 0 || *slot > names.count)
			return slot;
		known = names.by_id[*slot];
		if (known->hash == hash && strncmp(known->region.name, text, length) == 0 &&
		    known->region.name[length] == '\0')
			return slot;
	}
}

static const char *keep(char **at, const char *text, size_t length)
{
	char *start = *at;

	memcpy(start, text ? text : "", length);
	start[length] = '\0';
	*at += length + 1;
	return start;
}

static struct name *make(const struct assay_region *region, size_t length, uint32_t hash)
{
	size_t file = length_of(region->file), tags = length_of(region->tags);
	size_t size = (sizeof(struct name) + length + file + tags + 3 + 7) / 8 * 8;
	struct name *name;
	char *text;

	if ((size_t)(names.chunk_end - names.chunk) < size) {
		char *chunk = map(CHUNK_BYTES);

		if (!chunk)
			return NULL;
		names.chunk = chunk;
		names.chunk_end = chunk + CHUNK_BYTES;
	}
	name = (struct name *)names.chunk;
	names.chunk += size;
	text = name->text;
	name->hash = hash;
	name->region.line = region->line;
	name->region.name = keep(&text, region->name, length);
	name->region.file = keep(&text, region->file, file);
	name->region.tags = keep(&text, region->tags, tags);
	return name;
}

static void write_name(const struct assay_region *region)
{
	const char *const texts[] = {region->name, region->file, region->tags};
	struct region_name record = {region->id, region->line};

	table_append(REGION_RECORD_NAME, &record, sizeof record, texts, 3);
}

/* Once per recording. */
static void write_others(void)
{
	static uint32_t run;

	if (run == settings.run)
		return;
	run = settings.run;
	write_name(&other_names);
}

/* The one that is kept under its name; NULL where there can be none. */
static struct name *intern(const struct assay_region *region)
{
	size_t length = length_of(region->name);
	uint32_t hash = hash_of(region->name, length), *slot;
	struct name *name;

	if (!prepare())
		return NULL;
	slot = slot_of(region->name, length, hash);
	if (*slot && *slot <= names.count)
		return names.by_id[*slot];
	if (names.count == REGION_ID_MAX - 1 || !(name = make(region, length, hash)))
		return NULL;
	name->region.id = names.count + 1;
	names.by_id[name->region.id] = name;
	*slot = name->region.id;
	atomic_signal_fence(memory_order_seq_cst);
	names.count = name->region.id;
	write_name(&name->region);
	return name;
}

uint32_t name_id(struct assay_region *region)
{
	uint32_t id = __atomic_load_n(&region->id, __ATOMIC_RELAXED);
	struct assay_region named = {region->name ? region->name : "(no name)", region->file, region->tags,
				     region->line, 0};
	struct recording *r;
	struct name *name;

	if (id)
		return id;
	r = recording_memory_locked();
	name = r ? intern(&named) : NULL;
	id = name ? name->region.id : REGION_ID_MAX;
	if (r && !name)
		write_others();
	if (r)
		recording_unlock(r);
	__atomic_store_n(&region->id, id, __ATOMIC_RELAXED);
	return id;
}

void names_write(void)
{
	for (uint32_t id = 1; id <= names.count; id++)
		write_name(&names.by_id[id]->region);
	if (names.count == REGION_ID_MAX - 1)
		write_others();
}

ASSAY_EXPORT struct assay_region *assay_region_named(const char *text)
{
	struct assay_region named = {text ? text : "(no name)", NULL, NULL, 0, 0};
	struct name *name = NULL;
	struct recording *r;
	struct entry entry;

	if (!recording_enter(&entry))
		return &other_names;
	r = recording_memory_locked();
	if (r) {
		name = intern(&named);
		if (!name)
			write_others();
		recording_unlock(r);
	}
	recording_leave(&entry);
	return name ? &name->region : &other_names;
}
