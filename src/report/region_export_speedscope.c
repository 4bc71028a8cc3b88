/* speedscope's own format: the regions once, then for each thread a profile of its calls' beginnings and ends.
 * https://www.speedscope.app/file-format-schema.json is its schema. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "report/json_stream.h"
#include "report/region_timeline.h"

#define LANES_MAX 256 /* of calls of one thread that overlap */

struct writing {
	const struct region_export *e;
	const struct regions *regions;
	const struct region_timeline *timeline;
	FILE *out;
	struct buf text;
	uint32_t *open; /* calls, outermost first; room for the longest track */
	size_t depth;
	const char *before; /* punctuation before the next event */
};

static void writing_release(struct writing *w)
{
	buf_release(&w->text);
	free(w->open);
}

static void put_event(struct writing *w, const char *type, uint32_t region, int64_t t)
{
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, "{\"type\":\"");
	json_stream_raw(w->out, type);
	json_stream_raw(w->out, "\",\"frame\":");
	json_stream_number(w->out, region);
	json_stream_raw(w->out, ",\"at\":");
	fprintf(w->out, "%" PRId64, (int64_t)((uint64_t)t - (uint64_t)w->e->zero));
	json_stream_raw(w->out, "}");
	w->before = ",\n";
}

static void close_until(struct writing *w, int64_t t)
{
	while (w->depth) {
		const struct timeline_call *c = &w->timeline->calls[w->open[w->depth - 1]];

		if (c->end > t)
			return;
		put_event(w, "C", c->region, c->end);
		w->depth--;
	}
}

static void put_name(struct writing *w, const struct timeline_call *c)
{
	const struct region_thread_row *t = region_export_thread(w->regions, c->rank, c->thread);

	buf_clear(&w->text);
	buf_printf(&w->text, "rank %" PRIu32, c->rank);
	if (t && *t->name)
		buf_printf(&w->text, ", %s", t->name);
	else if (c->thread >= 0)
		buf_printf(&w->text, ", thread %" PRId32, c->thread);
	if (t && t->native_id > 0)
		buf_printf(&w->text, " (%" PRId64 ")", t->native_id);
	if (c->lane)
		buf_printf(&w->text, ", overlapping calls %" PRIu32, c->lane);
	json_stream_text(w->out, w->text.text);
}

static void put_profile(struct writing *w, const struct timeline_track *track, uint32_t lane)
{
	const struct timeline_call *calls = w->timeline->calls, *first = NULL;
	int64_t end = INT64_MIN;

	for (size_t i = track->first; i < track->first + track->count; i++) {
		if (calls[i].lane != lane)
			continue;
		first = first ? first : &calls[i];
		end = calls[i].end > end ? calls[i].end : end;
	}
	if (!first)
		return;
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":");
	fprintf(w->out, "%" PRId64, (int64_t)((uint64_t)first->start - (uint64_t)w->e->zero));
	json_stream_raw(w->out, ",\"endValue\":");
	fprintf(w->out, "%" PRId64, (int64_t)((uint64_t)end - (uint64_t)w->e->zero));
	json_stream_raw(w->out, ",\"name\":");
	put_name(w, first);
	json_stream_raw(w->out, ",\n\"events\":[");
	w->before = "\n";
	for (size_t i = track->first; i < track->first + track->count && !ferror(w->out); i++) {
		if (calls[i].lane != lane)
			continue;
		close_until(w, calls[i].start);
		put_event(w, "O", calls[i].region, calls[i].start);
		w->open[w->depth++] = (uint32_t)i;
	}
	close_until(w, INT64_MAX);
	json_stream_raw(w->out, "]}");
	w->before = ",\n";
}

static void put_frames(struct writing *w)
{
	CLEANUP(free_cleanup) const struct region_part **place = calloc(w->regions->name_count + 1, sizeof *place);

	/* Of a region that stands in several places the first one is told. */
	for (size_t i = w->regions->part_count; place && i > 0; i--)
		if (*w->regions->parts[i - 1].file)
			place[w->regions->parts[i - 1].region] = &w->regions->parts[i - 1];
	for (size_t i = 0; i < w->regions->name_count; i++) {
		json_stream_raw(w->out, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_stream_text(w->out, w->regions->names[i]);
		if (place && place[i]) {
			json_stream_raw(w->out, ",\"file\":");
			json_stream_text(w->out, place[i]->file);
			if (place[i]->line > 0) {
				json_stream_raw(w->out, ",\"line\":");
				json_stream_number(w->out, (uint64_t)place[i]->line);
			}
		}
		json_stream_raw(w->out, "}");
	}
}

/* Before anything is written. */
static int check(struct writing *w, struct error *err)
{
	size_t longest = 0;

	for (size_t i = 0; i < w->timeline->track_count; i++) {
		const struct timeline_track *t = &w->timeline->tracks[i];

		longest = t->count > longest ? t->count : longest;
		if (t->lanes > LANES_MAX)
			return error_set(
				err,
				"%s: more than %d calls of one thread overlap without being inside each other: "
				"leave out their regions with --exclude",
				w->regions->path, LANES_MAX);
	}
	w->open = calloc(longest + 1, sizeof *w->open);
	return w->open ? 0 : error_set(err, "out of memory for %zu calls", longest);
}

int region_export_speedscope(const struct region_export *e, FILE *out, struct error *err)
{
	CLEANUP(region_timeline_release) struct region_timeline t;
	CLEANUP(writing_release) struct writing w = {.e = e, .timeline = &t, .out = out, .before = "\n"};

	region_timeline_init(&t);
	buf_init(&w.text);
	w.regions = region_file_regions(e->file);
	if (region_timeline_read(&t, e, LANES_MAX + 1, err) < 0 || check(&w, err) < 0)
		return -1;
	json_stream_raw(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":");
	json_stream_text(out, "assay " ASSAY_VERSION);
	json_stream_raw(out, ",\"name\":");
	json_stream_text(out, w.regions->path);
	json_stream_raw(out, ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	put_frames(&w);
	json_stream_raw(out, "]},\n\"profiles\":[");
	for (size_t i = 0; i < t.track_count; i++)
		for (uint32_t lane = 0; lane < t.tracks[i].lanes; lane++)
			put_profile(&w, &t.tracks[i], lane);
	json_stream_raw(out, "]}\n");
	return w.text.failed ? error_set(err, "out of memory for a name") : 0;
}
