/* The calls of include/assay.h that a program makes now and then: they begin and end the recording, steer it, and add
 * what the program knows. */
#include <assay.h>

#include <string.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/recording.h"

#define METADATA_MAX 60000u /* bytes of a value */

/* Where recording_locked found that nothing is recorded. */
static int refuse(const char *call)
{
	return last_error_set("%s: nothing is being recorded", call);
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

ASSAY_EXPORT int assay_set_mode(enum assay_mode mode)
{
	struct recording *r;
	struct entry entry;
	int result = 0;

	if ((uint32_t)mode > REGION_TRACE)
		return last_error_set("assay_set_mode: %d is none of the modes", (int)mode);
	if (!recording_enter(&entry))
		return -1;
	r = recording_locked();
	if (r) {
		recording_set_mode(r, (uint32_t)mode);
		recording_unlock(r);
	} else {
		result = refuse("assay_set_mode");
	}
	recording_leave(&entry);
	return result;
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

ASSAY_EXPORT int assay_set_rank(int rank, int size)
{
	struct recording *r;
	struct entry entry;
	int result = 0;

	if (rank < 0 || size < 0 || (size > 0 && rank >= size))
		return last_error_set("assay_set_rank: %d is no rank of %d", rank, size);
	if (!recording_enter(&entry))
		return -1;
	r = recording_locked();
	if (r) {
		/* A fork's child is of the same rank. */
		settings.has_rank = true;
		settings.rank = rank;
		settings.size = size;
		table_rank(rank, size, 2);
		recording_unlock(r);
	} else {
		result = refuse("assay_set_rank");
	}
	recording_leave(&entry);
	return result;
}

/* One record for the table, from a call of that name. */
static int append(const char *call, uint16_t type, const void *fixed, size_t length, const char *const *texts,
		  size_t text_count)
{
	struct recording *r;
	struct entry entry;
	int result;

	if (!recording_enter(&entry))
		return -1;
	r = recording_locked();
	if (!r) {
		result = refuse(call);
	} else {
		result = table_append(type, fixed, length, texts, text_count);
		if (result < 0)
			last_error_set("%s: %s: there is no room for it", call, settings.dir);
		recording_unlock(r);
	}
	recording_leave(&entry);
	return result;
}

ASSAY_EXPORT int assay_set_clock_offset(int64_t offset_ns, int64_t bound_ns)
{
	struct region_offset offset = {monotonic_ns(), offset_ns, bound_ns};

	return append("assay_set_clock_offset", REGION_RECORD_OFFSET, &offset, sizeof offset, NULL, 0);
}

ASSAY_EXPORT int assay_set_metadata(const char *key, const char *value)
{
	const char *const texts[] = {key, value};

	if (!key || !*key || !value)
		return last_error_set("assay_set_metadata: it needs a key and a value");
	if (strnlen(key, REGION_NAME_MAX + 1) > REGION_NAME_MAX || strnlen(value, METADATA_MAX + 1) > METADATA_MAX)
		return last_error_set("assay_set_metadata: a key has at most %u bytes, a value %u", REGION_NAME_MAX,
				      METADATA_MAX);
	return append("assay_set_metadata", REGION_RECORD_METADATA, NULL, 0, texts, 2);
}

static int flush_all(const struct recording *r)
{
	int failed = 0;

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
	struct recording *r;
	struct entry entry;
	int result;

	if (!recording_enter(&entry))
		return -1;
	r = recording_locked();
	if (r) {
		result = flush_all(r);
		recording_unlock(r);
	} else {
		result = refuse("assay_flush");
	}
	recording_leave(&entry);
	return result;
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
