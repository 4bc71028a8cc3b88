/* Builds timeline.h5 from the monitor segment: reads, checks, and hands points to the plug-in, which alone knows HDF5.
 * Nothing is believed of a segment: it may come from a killed run or a full disk. */
#include "store/timeline_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "model/timeline.h"
#include "store/hdf5_plugin.h"
#include "store/segments.h"
#include "store/timeline_plugin.h"

#define SERIES_MAX 100000u
#define SERIES_NAME_MAX 1000u /* HDF5 has no such limit, but an error sentence has */

/* What became of one record: below 0 nothing more can be written, above 0 nothing more can be read; *err says why. */
enum fed { FED_FAILED = -1, FED = 0, FED_DAMAGED = 1 };

struct build {
	const struct timeline_plugin *plugin;
	struct timeline_h5 *h5;
	uint32_t series;
	int64_t start_ns;
};

static const struct timeline_plugin *load_plugin(char *version, size_t size, struct error *err)
{
	const struct timeline_plugin *plugin = hdf5_plugin_table(TIMELINE_PLUGIN_SYMBOL, TIMELINE_PLUGIN_VERSION, err);

	return plugin && plugin->start(version, size, err) == 0 ? plugin : NULL;
}

/* The next of a payload's zero-ended texts, made valid UTF-8; *at moves behind it. One that is not there is empty. */
static void next_text(const char **at, const char *end, struct buf *ret)
{
	size_t length = strnlen(*at, (size_t)(end - *at));

	buf_clear(ret);
	utf8_append_clean(ret, *at, length);
	*at += length;
	if (*at < end)
		(*at)++;
}

/* A name as one part of an HDF5 path. */
static void clean_name(struct buf *name)
{
	name->length = utf8_cut(name->text, name->length, SERIES_NAME_MAX);
	name->text[name->length] = '\0';
	for (char *c = name->text; *c; c++)
		if (*c == '/')
			*c = '_';
	if (name->length == 0 || strcmp(name->text, ".") == 0)
		buf_putc(name, '_');
}

static enum fed damaged(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

static enum fed damaged(struct error *err, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	error_set(err, "a damaged record: %s", text);
	return FED_DAMAGED;
}

static enum fed feed_series(struct build *b, const char *payload, size_t length, struct error *err)
{
	CLEANUP(buf_release) struct buf name, unit, source, scope;
	const char *at = payload + sizeof(struct wire_series), *end = payload + length;
	struct timeline_h5_series series;
	struct wire_series fixed;

	buf_init(&name), buf_init(&unit), buf_init(&source), buf_init(&scope);
	if (length < sizeof fixed)
		return damaged(err, "a series of %zu bytes", length);
	memcpy(&fixed, payload, sizeof fixed);
	if (fixed.id != b->series || fixed.id >= SERIES_MAX)
		return damaged(err, "series %" PRIu32 " is defined where series %" PRIu32 " is next", fixed.id,
			       b->series);
	next_text(&at, end, &name);
	next_text(&at, end, &unit);
	next_text(&at, end, &source);
	next_text(&at, end, &scope);
	clean_name(&name);
	if (name.failed || unit.failed || source.failed || scope.failed)
		return error_set(err, "out of memory for series %" PRIu32, fixed.id);
	series = (struct timeline_h5_series){name.text, unit.text, source.text, scope.text,
					     fixed.kind == SERIES_COUNTER ? "counter" : "gauge"};
	b->series++;
	return b->plugin->define(b->h5, &series, err);
}

static enum fed feed_points(struct build *b, const char *payload, size_t length, struct error *err)
{
	struct wire_points fixed;
	int64_t t;

	if (length < sizeof fixed || (length - sizeof fixed) % sizeof(struct wire_point))
		return damaged(err, "points of %zu bytes", length);
	memcpy(&fixed, payload, sizeof fixed);
	if (__builtin_sub_overflow(fixed.t, b->start_ns, &t))
		return damaged(err, "a point at %" PRId64 " ns", fixed.t);
	for (size_t at = sizeof fixed; at < length; at += sizeof(struct wire_point)) {
		struct wire_point point;

		memcpy(&point, payload + at, sizeof point);
		if (point.id >= b->series)
			return damaged(err, "a point of series %" PRIu32 ", which is not defined", point.id);
		if (b->plugin->append(b->h5, point.id, t, point.value, err) < 0)
			return FED_FAILED;
	}
	return FED;
}

static enum fed feed_all(struct build *b, struct segment_reader *reader, const volatile int *stop, struct error *err)
{
	enum fed fed = FED;

	while (fed == FED) {
		struct segment_record record;
		const void *payload;
		int got;

		if (stop && *stop)
			return error_set(err, "interrupted while it was written");
		got = segment_reader_next(reader, &record, &payload, err);
		if (got == 0)
			return FED;
		if (got < 0)
			return FED_DAMAGED;
		if (record.type == WIRE_SERIES)
			fed = feed_series(b, payload, record.used, err);
		else if (record.type == WIRE_POINTS)
			fed = feed_points(b, payload, record.used, err);
	}
	return fed;
}

static int put_attributes(const struct build *b, int64_t wall_start_ns, struct error *err)
{
	char wall[64];

	clock_iso8601(wall_start_ns, wall, sizeof wall);
	return b->plugin->put_text(b->h5, "schema", "assay-timeline-1", err) < 0 ||
			       b->plugin->put_text(b->h5, "clock", "CLOCK_MONOTONIC ns", err) < 0 ||
			       b->plugin->put_integer(b->h5, "start_ns", b->start_ns, err) < 0 ||
			       b->plugin->put_text(b->h5, "wall_start", wall, err) < 0
		       ? -1
		       : 0;
}

/* Fills the new file and closes it; enum fed, with *err for all but FED. */
static enum fed fill(struct build *b, struct segment_reader *reader, int64_t wall_start_ns, const volatile int *stop,
		     struct error *err)
{
	struct error trouble;
	enum fed fed = put_attributes(b, wall_start_ns, err) < 0 ? FED_FAILED : feed_all(b, reader, stop, err);

	for (uint32_t id = 0; id < b->series && fed != FED_FAILED; id++) {
		if (stop && *stop)
			fed = error_set(err, "interrupted while it was written");
		else if (b->plugin->end_series(b->h5, id, &trouble) < 0)
			fed = error_set(err, "%s", trouble.text);
	}
	if (fed == FED_FAILED) {
		b->plugin->abandon(b->h5);
	} else if (b->plugin->finish(b->h5, &trouble) < 0) {
		fed = error_set(err, "%s", trouble.text);
	}
	return fed;
}

static int write_beside(const struct timeline_plugin *plugin, struct segment_reader *reader, const char *h5_path,
			int64_t start_ns, int64_t wall_start_ns, const volatile int *stop, struct error *err)
{
	CLEANUP(free_cleanup) char *beside = NULL;
	struct build b = {.plugin = plugin, .start_ns = start_ns};
	enum fed fed;

	if (asprintf(&beside, "%s.%ld.tmp", h5_path, (long)getpid()) < 0) {
		beside = NULL;
		return error_set(err, "out of memory");
	}
	fed = plugin->create(beside, &b.h5, err) < 0 ? FED_FAILED : fill(&b, reader, wall_start_ns, stop, err);
	if (fed != FED_FAILED && rename(beside, h5_path) < 0)
		fed = error_set(err, "%s", strerror(errno));
	if (fed == FED_FAILED)
		unlink(beside);
	return fed;
}

int timeline_file_build(const char *segment_path, const char *h5_path, int64_t start_ns, int64_t wall_start_ns,
			const volatile int *stop, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	const struct timeline_plugin *plugin;
	struct size_signal size_signal;
	struct error trouble;
	char version[64];
	int result;

	if (segment_reader_open(segment_path, SEGMENT_KIND_MONITOR, &reader, err) < 0)
		return -1;
	plugin = load_plugin(version, sizeof version, err);
	if (!plugin)
		return -1;
	size_signal_hold(&size_signal);
	result = write_beside(plugin, reader, h5_path, start_ns, wall_start_ns, stop, &trouble);
	size_signal_release(&size_signal);
	if (result != FED)
		error_set(err, "%s: %s", h5_path, trouble.text);
	return result;
}

int timeline_file_available(char *version, unsigned long size, struct error *err)
{
	return load_plugin(version, size, err) ? 0 : -1;
}
