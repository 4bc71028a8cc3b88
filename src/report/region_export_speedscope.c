/* speedscope's own format: the regions once, then for each thread a profile of its calls' beginnings and ends.
 * https://www.speedscope.app/file-format-schema.json is its schema. Calls of a thread that overlap are spread over
 * several profiles, and each profile must stand in one piece: those beside the first wait in a file without a name. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "report/json_stream.h"
#include "report/region_exporter.h"
#include "report/region_nest.h"

#define STACKS_MAX 256 /* of calls of one thread that overlap */

/* One stack of a thread. */
struct profile {
	uint32_t rank, stack;
	int32_t thread;
	int64_t start, end;
};

struct beginning {
	int64_t end;
	uint32_t region;
};

/* A call of another stack than the first, as it waits. */
struct waiting {
	int64_t start, end;
	uint32_t region, stack;
};

struct writing {
	const struct region_export *e;
	const struct regions *regions;
	FILE *out;
	struct buf text;
	struct region_stacks stacks;
	struct profile *profiles; /* all, by rank, thread and stack */
	size_t profile_count, profile_room;
	size_t at;              /* the thread's first profile */
	FILE *wait;             /* the thread's struct waiting */
	struct beginning *open; /* outermost first; room for REGION_STACK_DEPTH_MAX */
	size_t depth;
	const char *before; /* punctuation before the next event */
};

static void writing_release(struct writing *w)
{
	if (w->wait)
		fclose(w->wait);
	buf_release(&w->text);
	region_stacks_release(&w->stacks);
	free(w->profiles);
	free(w->open);
}

/* Whether the call is of another thread than the last one; begins that. */
static bool begins_thread(struct writing *w, const struct profile *last, const struct region_call *c)
{
	if (last && last->rank == w->regions->parts[c->part].rank && last->thread == c->thread)
		return false;
	region_stacks_clear(&w->stacks);
	return true;
}

static struct profile *add_profile(struct writing *w, struct error *err)
{
	if (w->profile_count == w->profile_room) {
		size_t room = w->profile_room ? 2 * w->profile_room : 64;
		struct profile *profiles = reallocarray(w->profiles, room, sizeof *profiles);

		if (!profiles) {
			error_set(err, "out of memory for %zu profiles", room);
			return NULL;
		}
		w->profiles = profiles;
		w->profile_room = room;
	}
	return &w->profiles[w->profile_count++];
}

/* Before anything is written: what profiles there are, and from when till when. */
static int survey_call(void *context, const struct region_call *c, struct error *err)
{
	struct writing *w = context;
	struct profile *p;
	uint32_t stack;

	if (begins_thread(w, w->profile_count ? &w->profiles[w->profile_count - 1] : NULL, c))
		w->at = w->profile_count;
	if (region_stacks_place(&w->stacks, c->start, c->end, &stack, err) < 0)
		return -1;
	if (stack == STACKS_MAX)
		return error_set(err,
				 "more than %d calls of one thread overlap without being inside each other: "
				 "leave out their regions with --exclude",
				 STACKS_MAX);
	if (w->at + stack == w->profile_count) {
		p = add_profile(w, err);
		if (!p)
			return -1;
		*p = (struct profile){w->regions->parts[c->part].rank, stack, c->thread, c->start, c->end};
	}
	p = &w->profiles[w->at + stack];
	p->end = c->end > p->end ? c->end : p->end;
	return 0;
}

static void put_time(struct writing *w, int64_t t)
{
	fprintf(w->out, "%" PRId64, (int64_t)((uint64_t)t - (uint64_t)w->e->zero));
}

static void put_event(struct writing *w, const char *type, uint32_t region, int64_t t)
{
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, "{\"type\":\"");
	json_stream_raw(w->out, type);
	json_stream_raw(w->out, "\",\"frame\":");
	json_stream_number(w->out, region);
	json_stream_raw(w->out, ",\"at\":");
	put_time(w, t);
	json_stream_raw(w->out, "}");
	w->before = ",\n";
}

static void close_until(struct writing *w, int64_t t)
{
	for (; w->depth && w->open[w->depth - 1].end <= t; w->depth--)
		put_event(w, "C", w->open[w->depth - 1].region, w->open[w->depth - 1].end);
}

static void put_name(struct writing *w, const struct profile *p)
{
	const struct region_thread_row *t = region_export_thread(w->regions, p->rank, p->thread);

	buf_clear(&w->text);
	buf_printf(&w->text, "rank %" PRIu32, p->rank);
	if (t && *t->name)
		buf_printf(&w->text, ", %s", t->name);
	else if (p->thread >= 0)
		buf_printf(&w->text, ", thread %" PRId32, p->thread);
	if (t && t->native_id > 0)
		buf_printf(&w->text, " (%" PRId64 ")", t->native_id);
	if (p->stack)
		buf_printf(&w->text, ", overlapping calls %" PRIu32, p->stack);
	json_stream_text(w->out, w->text.text);
}

static void begin_profile(struct writing *w, const struct profile *p)
{
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":");
	put_time(w, p->start);
	json_stream_raw(w->out, ",\"endValue\":");
	put_time(w, p->end);
	json_stream_raw(w->out, ",\"name\":");
	put_name(w, p);
	json_stream_raw(w->out, ",\n\"events\":[");
	w->before = "\n";
}

static void open_call(struct writing *w, int64_t start, int64_t end, uint32_t region)
{
	close_until(w, start);
	put_event(w, "O", region, start);
	w->open[w->depth++] = (struct beginning){end, region};
}

static void end_profile(struct writing *w)
{
	close_until(w, INT64_MAX);
	json_stream_raw(w->out, "]}");
	w->before = ",\n";
}

static int wait_error(struct error *err)
{
	return error_set(err, "the temporary file of calls that overlap: %s", strerror(errno));
}

/* The profile before the next one of its thread's, and that of the first stack, is written: the others follow. */
static int end_thread(struct writing *w, struct error *err)
{
	const struct profile *first = &w->profiles[w->at], *last = &w->profiles[w->profile_count], *p;
	struct waiting c;

	end_profile(w);
	for (p = first + 1; p < last && p->stack > 0; p++) {
		if (fseeko(w->wait, 0, SEEK_SET) < 0)
			return wait_error(err);
		begin_profile(w, p);
		while (fread(&c, sizeof c, 1, w->wait) == 1)
			if (c.stack == p->stack)
				open_call(w, c.start, c.end, c.region);
		if (ferror(w->wait))
			return wait_error(err);
		end_profile(w);
	}
	w->at = (size_t)(p - w->profiles);
	if (w->wait && (fseeko(w->wait, 0, SEEK_SET) < 0 || ftruncate(fileno(w->wait), 0) < 0))
		return wait_error(err);
	return 0;
}

static int open_wait(struct writing *w, struct error *err)
{
	int fd = fs_open_unnamed();

	if (fd >= 0)
		w->wait = fdopen(fd, "w+");
	if (w->wait)
		return 0;
	error_set(err, "no temporary file for calls that overlap: %s", strerror(fd < 0 ? -fd : errno));
	fd_cleanup(&fd);
	return -1;
}

static int put_call(void *context, const struct region_call *c, struct error *err)
{
	struct writing *w = context;
	struct waiting wait = {.start = c->start, .end = c->end, .region = w->regions->parts[c->part].region};
	bool first = w->before[0] == '\0';

	if (begins_thread(w, first ? NULL : &w->profiles[w->at], c)) {
		if (!first && end_thread(w, err) < 0)
			return -1;
		if (first)
			w->before = "\n";
		begin_profile(w, &w->profiles[w->at]);
	}
	if (region_stacks_place(&w->stacks, c->start, c->end, &wait.stack, err) < 0)
		return -1;
	if (wait.stack == 0)
		open_call(w, c->start, c->end, wait.region);
	else if (!w->wait && open_wait(w, err) < 0)
		return -1;
	else if (fwrite(&wait, sizeof wait, 1, w->wait) != 1)
		return wait_error(err);
	return ferror(w->out) ? error_set(err, "the events could not be written") : 0;
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

static void put_head(struct writing *w)
{
	json_stream_raw(w->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":");
	json_stream_text(w->out, "assay " ASSAY_VERSION);
	json_stream_raw(w->out, ",\"name\":");
	json_stream_text(w->out, w->regions->path);
	json_stream_raw(w->out, ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	put_frames(w);
	json_stream_raw(w->out, "]},\n\"profiles\":[");
}

int region_export_speedscope(const struct region_export *e, FILE *out, struct error *err)
{
	CLEANUP(region_order_release) struct region_order order;
	CLEANUP(writing_release) struct writing w = {.e = e, .out = out, .before = ""};
	struct region_visit visit = {
		.from = INT64_MIN, .to = INT64_MAX, .columns = 1u << REGION_CALL, .call = survey_call, .context = &w};

	region_order_init(&order);
	buf_init(&w.text);
	w.regions = region_file_regions(e->file);
	w.open = calloc(REGION_STACK_DEPTH_MAX, sizeof *w.open);
	if (!w.open)
		return error_set(err, "out of memory for %zu calls inside each other", REGION_STACK_DEPTH_MAX);
	if (region_order_by_thread(&order, e->file, e->wanted, err) < 0 ||
	    region_stacks_init(&w.stacks, STACKS_MAX, err) < 0 || region_order_visit(&order, &visit, err) < 0)
		return -1;
	put_head(&w);
	w.at = 0;
	visit.call = put_call;
	if (region_order_visit(&order, &visit, err) < 0 || (w.profile_count && end_thread(&w, err) < 0))
		return -1;
	json_stream_raw(out, "]}\n");
	return w.text.failed ? error_set(err, "out of memory for a name") : 0;
}
