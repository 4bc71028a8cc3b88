/* A file of regions as layout 1, for readers that know no other. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/replace.h"
#include "store/hdf5_plugin.h"
#include "store/region_plugin.h"
#include "store/region_writer.h"

#define AT_ONCE 65536u /* calls */

struct layout1 {
	struct region_file *file;
	const struct region_plugin *plugin;
	struct region_h5_old *old;
	int64_t *rows[3];
};

/* The groups "a/b" are those of a name; none of its parts can be empty, or a word of paths. */
static int check_name(const char *name, struct error *err)
{
	for (const char *part = name;; part++) {
		size_t length = strcspn(part, "/");

		if (length == 0 || (length == 1 && part[0] == '.'))
			return error_set(err, "layout 1 cannot hold a region of the name \"%.200s\"", name);
		part += length;
		if (!*part)
			return 0;
	}
}

static int has_gpu(const struct layout1 *l, const struct region_part *part, int *ret, struct error *err)
{
	*ret = 0;
	if (!(region_file_regions(l->file)->columns & 1u << REGION_GPU))
		return 0;
	for (uint64_t at = 0; at < part->count && !*ret; at += AT_ONCE) {
		uint64_t left = part->count - at, step = left < AT_ONCE ? left : AT_ONCE;

		if (region_file_read(l->file, REGION_GPU, part->first + at, step, l->rows[2], err) < 0)
			return -1;
		for (uint64_t i = 0; i < step; i++)
			*ret |= l->rows[2][i] >= 0;
	}
	return 0;
}

static int copy_part(struct layout1 *l, const struct region_part *part, struct error *err)
{
	static const enum region_column columns[] = {REGION_START, REGION_END, REGION_GPU};
	const char *name = region_file_regions(l->file)->names[part->region];
	int gpu;

	if (check_name(name, err) < 0 || has_gpu(l, part, &gpu, err) < 0 ||
	    l->plugin->old_begin(l->old, part, name, gpu, err) < 0)
		return -1;
	for (uint64_t at = 0; at < part->count; at += AT_ONCE) {
		uint64_t left = part->count - at, step = left < AT_ONCE ? left : AT_ONCE;

		for (size_t i = 0; i < (gpu ? 3 : 2); i++)
			if (region_file_read(l->file, columns[i], part->first + at, step, l->rows[i], err) < 0)
				return -1;
		if (l->plugin->old_add(l->old, at, step, l->rows[0], l->rows[1], gpu ? l->rows[2] : NULL, err) < 0)
			return -1;
	}
	return 0;
}

static void put_lost(struct buf *lost, bool is_lost, const char *what)
{
	if (is_lost)
		buf_printf(lost, "%s%s", lost->length ? ", " : "", what);
}

/* What layout 1 has no place for, as a sentence; NULL in *ret: nothing. */
static int tell_lost(const struct regions *r, char **ret, struct error *err)
{
	uint64_t dropped = 0, uncounted = 0;
	CLEANUP(buf_release) struct buf lost;
	char *sentence;

	buf_init(&lost);
	for (size_t i = 0; i < r->part_count; i++) {
		dropped += r->parts[i].dropped;
		uncounted += r->parts[i].calls - (r->parts[i].calls > r->parts[i].count ? r->parts[i].count
											: r->parts[i].calls);
	}
	put_lost(&lost, r->columns & 1u << REGION_THREAD || r->thread_count, "threads");
	put_lost(&lost, r->columns & 1u << REGION_TASK, "tasks");
	put_lost(&lost, r->columns & 1u << REGION_AWAIT, "times of waiting");
	put_lost(&lost, r->columns & 1u << REGION_PARENT, "parents of calls and exclusive times");
	put_lost(&lost, uncounted > 0, "calls that were only counted or added up");
	put_lost(&lost, dropped > 0, "how many calls were dropped");
	put_lost(&lost, r->trouble_count > 0, "what was used wrongly");
	put_lost(&lost, r->note_count > 0, "notes");
	*ret = NULL;
	if (lost.length == 0)
		return 0;
	if (lost.failed || asprintf(&sentence, "layout 1 has no place for: %s", lost.text) < 0)
		return error_set(err, "out of memory");
	*ret = sentence;
	return 0;
}

static int write_all(struct layout1 *l, const char *beside, struct error *err)
{
	const struct regions *r = region_file_regions(l->file);
	struct region_h5_old *old;

	if (l->plugin->old_create(beside, r, &l->old, err) < 0)
		return -1;
	for (size_t i = 0; i < r->part_count; i++)
		/* A region without calls is no region to old readers: they take the least of its times. */
		if (r->parts[i].count && copy_part(l, &r->parts[i], err) < 0) {
			l->plugin->old_abandon(l->old);
			return -1;
		}
	old = l->old;
	return l->plugin->old_finish(old, err);
}

static int write_beside(struct layout1 *l, struct replacement *file, struct error *err)
{
	struct size_signal size_signal;
	int result = 0;

	for (size_t i = 0; i < 3; i++) {
		l->rows[i] = calloc(AT_ONCE, sizeof *l->rows[i]);
		if (!l->rows[i])
			result = error_set(err, "out of memory for %u calls", AT_ONCE);
	}
	size_signal_hold(&size_signal);
	if (result == 0)
		result = write_all(l, file->beside, err);
	if (result == 0 && fsync(fileno(file->out)) < 0)
		result = error_set(err, "it cannot be written: %s", strerror(errno));
	size_signal_release(&size_signal);
	for (size_t i = 0; i < 3; i++)
		free(l->rows[i]);
	return result < 0 ? error_prefix(err, "%.250s", file->path) : 0;
}

int region_layout1_write(struct region_file *f, const char *path, char **ret_lost, struct error *err)
{
	CLEANUP(replacement_release) struct replacement file;
	CLEANUP(free_cleanup) char *lost = NULL;
	struct layout1 l = {.file = f};
	char version[64];

	replacement_init(&file);
	l.plugin = hdf5_plugin_table(REGION_PLUGIN_SYMBOL, REGION_PLUGIN_VERSION, err);
	if (!l.plugin || l.plugin->start(version, sizeof version, err) < 0 ||
	    tell_lost(region_file_regions(f), &lost, err) < 0 || replacement_open(&file, path, err) < 0)
		return -1;
	if (!file.beside)
		return error_set(err, "%s: a file of regions cannot be written to what is no regular file", path);
	if (write_beside(&l, &file, err) < 0 || replacement_commit(&file, err) < 0)
		return -1;
	*ret_lost = lost;
	lost = NULL;
	return 0;
}
