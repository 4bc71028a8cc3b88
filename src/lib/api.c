/* The calls of include/assay.h that a program makes now and then: they begin and end the recording, steer it, and add
 * what the program knows. */
#include <assay.h>

#include <string.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/recording.h"

#define METADATA_MAX 60000u /* bytes of a value */

/* What a call of that name does, locked, to what is recorded; fails where nothing is. */
static int perform(const char *call, int (*act)(struct recording *r, const void *with), const void *with)
{
	struct recording *r;
	struct entry entry;
	int result;

	if (!recording_enter(&entry))
		return -1;
	r = recording_locked();
	if (r) {
		result = act(r, with);
		recording_unlock(r);
	} else {
		result = last_error_set("%s: nothing is being recorded", call);
	}
	recording_leave(&entry);
	return result;
}

static int begin_locked(struct recording *r, const struct assay_options *options)
{
	if (!settings_from_environment() && !(options && options->dir))
		return -1;
	if (options) {
		if ((uint32_t)options->mode > REGION_TRACE)
			return last_error_set("assay_init: %d is none of the modes", (int)options->mode);
		if (options->dir && settings_resolve(options->dir, settings.dir) < 0)
			return -1;
		settings.mode = (uint32_t)options->mode;
		settings.limit = options->limit ? options->limit : settings.limit;
	}
	return recording_begin(r, true);
}

/* Whether options ask for what is being recorded already. */
static int compare_dir(const struct assay_options *options)
{
	char path[PATH_MAX];

	if (!options || !options->dir)
		return 0;
	if (settings_resolve(options->dir, path) < 0)
		return -1;
	if (strcmp(path, settings.dir) == 0)
		return 0;
	return last_error_set("assay_init: %s: regions are recorded into %s already", options->dir, settings.dir);
}

ASSAY_EXPORT int assay_init(const struct assay_options *options)
{
	struct recording *r;
	struct entry entry;
	int result;

	if (!recording_enter(&entry))
		return -1;
	r = recording_memory_locked();
	if (!r) {
		result = last_error_set("assay_init: there is no memory that a fork wipes");
	} else {
		result = r->live ? compare_dir(options) : begin_locked(r, options);
		recording_unlock(r);
	}
	recording_leave(&entry);
	return result;
}

ASSAY_EXPORT int assay_finalize(void)
{
	struct recording *r;
	struct entry entry;

	if (!recording_enter(&entry))
		return -1;
	r = recording_memory_locked();
	if (r) {
		if (r->live)
			recording_end(r);
		recording_stay_off();
		recording_unlock(r);
	}
	recording_leave(&entry);
	return 0;
}

static int change_mode(struct recording *r, const void *mode)
{
	recording_set_mode(r, *(const uint32_t *)mode);
	return 0;
}

ASSAY_EXPORT int assay_set_mode(enum assay_mode mode)
{
	const uint32_t wanted = (uint32_t)mode;

	if (wanted > REGION_TRACE)
		return last_error_set("assay_set_mode: %d is none of the modes", (int)mode);
	return perform("assay_set_mode", change_mode, &wanted);
}

ASSAY_EXPORT enum assay_mode assay_get_mode(void)
{
	enum assay_mode mode = ASSAY_OFF;
	struct recording *r;
	struct entry entry;

	if (!recording_enter(&entry))
		return ASSAY_OFF;
	r = recording_locked();
	if (r) {
		mode = (enum assay_mode)settings.mode;
		recording_unlock(r);
	}
	recording_leave(&entry);
	return mode;
}

struct rank {
	int rank, size;
};

static int change_rank(struct recording *r, const void *with)
{
	const struct rank *of = with;

	(void)r;
	/* A fork's child is of the same rank. */
	settings.has_rank = true;
	settings.rank = of->rank;
	settings.size = of->size;
	table_rank(of->rank, of->size, 2);
	return 0;
}

ASSAY_EXPORT int assay_set_rank(int rank, int size)
{
	const struct rank of = {rank, size};

	if (rank < 0 || size < 0 || (size > 0 && rank >= size))
		return last_error_set("assay_set_rank: %d is no rank of %d", rank, size);
	return perform("assay_set_rank", change_rank, &of);
}

/* One record for the table, from a call of that name. */
struct addition {
	const char *call;
	uint16_t type;
	const void *fixed;
	size_t length;
	const char *const *texts;
	size_t text_count;
};

static int append_locked(struct recording *r, const void *with)
{
	const struct addition *a = with;
	int result = table_append(a->type, a->fixed, a->length, a->texts, a->text_count);

	(void)r;
	if (result < 0)
		last_error_set("%s: %s: there is no room for it", a->call, settings.dir);
	return result;
}

ASSAY_EXPORT int assay_set_clock_offset(int64_t offset_ns, int64_t bound_ns)
{
	const struct region_offset offset = {monotonic_ns(), offset_ns, bound_ns};
	const struct addition addition = {"assay_set_clock_offset", REGION_RECORD_OFFSET, &offset, sizeof offset,
					  NULL, 0};

	return perform(addition.call, append_locked, &addition);
}

ASSAY_EXPORT int assay_set_metadata(const char *key, const char *value)
{
	const char *const texts[] = {key, value};
	const struct addition addition = {"assay_set_metadata", REGION_RECORD_METADATA, NULL, 0, texts, 2};

	if (!key || !*key || !value)
		return last_error_set("assay_set_metadata: it needs a key and a value");
	if (strnlen(key, REGION_NAME_MAX + 1) > REGION_NAME_MAX || strnlen(value, METADATA_MAX + 1) > METADATA_MAX)
		return last_error_set("assay_set_metadata: a key has at most %u bytes, a value %u", REGION_NAME_MAX,
				      METADATA_MAX);
	return perform(addition.call, append_locked, &addition);
}

static int flush_all(struct recording *r, const void *with)
{
	int failed = 0;

	(void)with;
	if (self != &recording_nobody && self->header && self->run == r->run)
		atomic_store_explicit(&self->shown->last, clock_now(self->tsc), memory_order_relaxed);
	table_clock();
	for (const struct thread *t = r->files; t; t = t->next_file) {
		int now = thread_file_flush(t);

		failed = failed ? failed : now;
	}
	failed = failed ? failed : table_flush();
	return failed ? last_error_set("%s: %s", settings.dir, strerror(failed)) : 0;
}

ASSAY_EXPORT int assay_flush(void)
{
	return perform("assay_flush", flush_all, NULL);
}

ASSAY_EXPORT const char *assay_directory(void)
{
	const char *dir = NULL;
	struct recording *r;
	struct entry entry;

	if (!recording_enter(&entry))
		return NULL;
	r = recording_locked();
	if (r) {
		dir = settings.dir;
		recording_unlock(r);
	}
	recording_leave(&entry);
	return dir;
}
