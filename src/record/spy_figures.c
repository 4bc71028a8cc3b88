/* What a watch of memory says in the end, and how far it may be relied on. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "record/spy_state.h"

/* By how much the RSS may have grown past the last reading of the PSS before that is said. It has grown as well where
 * processes grew while they were read, one after the other. */
#define PSS_KNOWN 1.02

/* A peak that can have been missed by no more than this is exact. */
#define TOLERANCE 0.02

static bool is_as_good_as(int64_t peak, int64_t bound)
{
	return (double)peak >= (1 - TOLERANCE) * (double)bound;
}

static void note_proven(struct spy_result *r, int64_t bytes)
{
	if (bytes <= r->peak)
		return;
	r->peak = bytes;
	r->peak_from_mark = true;
}

/* Of one process. Its last mark bounds all it ever used, if it was read at the very end and no other program ran in its
 * place before. */
static void judge_process(const struct spy *s, struct spy_result *r)
{
	const struct spy_marks *m = &s->marks;

	note_proven(r, m->proven);
	if (s->ended || m->replaced || m->last < 0 || m->read_at < s->last)
		return;
	r->peak_exact = is_as_good_as(r->peak, m->last);
	if (!r->peak_exact)
		r->peak_above = m->last;
}

/* The sum of marks is a bound only where it has those of all processes. */
static void judge_tree(const struct spy *s, struct spy_result *r)
{
	const struct spy_marks *m = &s->marks;

	r->tree_bound = true;
	if (s->processes.alive < s->processes.seen || r->unseen > 0 || m->last < 0 || m->read_at < s->last)
		return;
	r->peak_exact = is_as_good_as(r->peak, m->last);
	if (!r->peak_exact)
		r->peak_above = m->last;
}

/* The marks of all that were seen: of those that live, as last read, and of those that have ended. */
static int64_t sum_of_marks(const struct spy *s)
{
	int64_t sum = s->marks.ended;

	for (size_t i = 0; i < s->processes.count; i++) {
		const struct process *p = &s->processes.items[i];

		sum += p->high_water > p->rss_peak ? p->high_water : p->rss_peak > 0 ? p->rss_peak : 0;
	}
	return sum;
}

static void count_processes(struct spy *s, bool final, struct spy_result *r)
{
	struct tree_counts counts;

	r->processes = s->processes.seen;
	if (!s->tree)
		return;
	tree_counts(s->tree, &counts);
	r->processes = counts.processes;
	r->unseen = counts.unseen;
	if (final && !counts.exact)
		warnings_add(&s->warnings, "There may have been more processes than were seen: %s.", counts.why);
}

static void warn(struct spy *s, const struct spy_result *r)
{
	if (s->stretched)
		warnings_add(
			&s->warnings,
			"So many processes took long to read, and were read every %s at times instead of every %s.",
			units_seconds((double)s->stretched / 1e9).text,
			units_seconds((double)s->o.delay_ns / 1e9).text);
	if (s->ticks > 0 && r->high_water_end < 0)
		warnings_add(&s->warnings,
			     "The kernel told no high-water mark: what happened between two readings is not known.");
	if (r->how != SPY_RUNNING && s->shares_rss > 0 &&
	    (double)r->resources[SPY_RSS].peak > PSS_KNOWN * (double)s->shares_rss)
		warnings_add(&s->warnings,
			     "The PSS was read up to an RSS of %s, and not at %s: it is read rarely, since that "
			     "takes long, so its largest value is not known.",
			     units_bytes((double)s->shares_rss).text,
			     units_bytes((double)r->resources[SPY_RSS].peak).text);
}

static void copy_warnings(const struct warnings *from, struct warnings *to)
{
	for (size_t i = 0; i < from->count; i++)
		warnings_add(to, "%s", from->texts[i]);
}

/* A reading of everything, however lately it was. */
static void read_now(struct spy *s)
{
	s->context.exact = true;
	spy_tick(s, clock_mono_ns());
	s->context.exact = false;
}

void spy_figures(struct spy *s, bool final, struct spy_result *ret)
{
	if (final && !s->ended)
		read_now(s);
	spy_result_init(ret);
	memcpy(ret->resources, s->resources, sizeof ret->resources);
	ret->gpu_count = s->gpus.count;
	for (size_t i = 0; i < s->gpus.count; i++) {
		ret->gpus[i] = s->gpu_monitors[i];
		snprintf(ret->gpu_names[i], sizeof ret->gpu_names[i], "%s", gpu_reader_name(s->gpus.reader, i));
	}
	ret->begin = s->begin;
	ret->end = s->ended ? s->end : s->last;
	ret->how = s->ended ? SPY_GONE : final ? SPY_STOPPED : SPY_RUNNING;
	ret->ticks = s->ticks;
	ret->late_ticks = s->late_ticks;
	ret->high_water_begin = s->marks.begin;
	ret->high_water_end = s->marks.last;
	ret->high_water_read_at = s->marks.read_at;
	ret->peak = s->resources[SPY_RSS].peak;
	count_processes(s, final, ret);
	/* What was unseen had memory, too. */
	if (ret->processes > 1 || ret->unseen > 0) {
		if (s->marks.last >= 0)
			ret->high_water_end = sum_of_marks(s);
		judge_tree(s, ret);
	} else {
		judge_process(s, ret);
	}
	warn(s, ret);
	copy_warnings(&s->warnings, &ret->warnings);
}

void spy_result_maxrss(struct spy_result *r, int64_t bytes)
{
	if (r->how != SPY_GONE || bytes <= 0)
		return;
	/* What it had used before the watch began is in it, too. */
	if (r->high_water_begin >= 0 && bytes > r->high_water_begin)
		note_proven(r, bytes);
	/* The largest of the process and those that it waited for: of a tree, not the sum. */
	if (r->tree_bound)
		return;
	if (bytes > r->high_water_end) {
		r->high_water_end = bytes;
		r->high_water_read_at = r->end;
	}
	r->peak_exact = is_as_good_as(r->peak, bytes);
	r->peak_above = r->peak_exact ? -1 : bytes;
}
