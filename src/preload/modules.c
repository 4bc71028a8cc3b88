#include "preload/modules.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "preload/process.h"
#include "preload/real.h"
#include "preload/ring.h"

#define TABLE 4096u /* a power of two */
#define PROBES 16u

/* What was last said of each start address. Written in handlers of any thread: an entry is stored behind its record,
 * and two threads that say the same at once do no harm. */
struct said {
	_Atomic uint64_t start, content;
};

static struct said table[TABLE];

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t content_of(const struct unwind_module *m, size_t path_length)
{
	uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), &m->end, sizeof m->end);

	hash = mix(hash, &m->bias, sizeof m->bias);
	hash = mix(hash, m->build_id, m->build_id_length);
	hash = mix(hash, m->path, path_length);
	return hash ? hash : 1;
}

/* The entry of that start, else a free one, else NULL: it is then said each time that it is met. */
static struct said *find(uint64_t start)
{
	uint64_t hash = (start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct said *s = &table[(hash + i) & (TABLE - 1)];
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong(&s->start, &seen, start) || seen == start)
			return s;
	}
	return NULL;
}

static bool write_module(const struct unwind_module *m, size_t path_length, int64_t t)
{
	struct sampler_module *record;
	size_t id_length = m->build_id_length < sizeof record->build_id ? m->build_id_length : sizeof record->build_id;
	uint64_t size = (sizeof *record + path_length + 7) / 8 * 8, at;

	at = atomic_load(&ring_header->modules_used);
	do {
		if (at % 8 || at > SAMPLER_MODULE_BYTES || size > SAMPLER_MODULE_BYTES - at) {
			process_trouble(SAMPLER_MODULES_FULL);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&ring_header->modules_used, &at, at + size));
	record = (struct sampler_module *)((char *)ring_header + ring_header->modules_offset + at);
	record->path_length = (uint16_t)path_length;
	record->build_id_length = (uint16_t)id_length;
	record->t = t;
	record->start = m->start;
	record->end = m->end;
	record->bias = m->bias;
	if (id_length)
		memcpy(record->build_id, m->build_id, id_length);
	memcpy(record->path, m->path, path_length);
	atomic_store_explicit(&record->size, (uint32_t)size, memory_order_release);
	return true;
}

void modules_met(void *context, const struct unwind_module *module)
{
	size_t path_length = strnlen(module->path, 4096);
	uint64_t content = content_of(module, path_length);
	struct said *s = find(module->start);
	const int64_t *t = context;

	if (s && atomic_load_explicit(&s->content, memory_order_acquire) == content)
		return;
	if (write_module(module, path_length, *t) && s)
		atomic_store_explicit(&s->content, content, memory_order_release);
}

void modules_forget(void)
{
	for (uint32_t i = 0; i < TABLE; i++)
		if (atomic_load_explicit(&table[i].start, memory_order_relaxed)) {
			atomic_store(&table[i].content, 0);
			atomic_store(&table[i].start, 0);
		}
}

EXPORT int dlclose(void *handle)
{
	int result;

	unwind_modules_closing();
	result = real_functions()->dlclose(handle);
	unwind_modules_changed();
	return result;
}
