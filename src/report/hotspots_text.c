#include "report/hotspots.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "judge/shares.h"
#include "report/hotspot_notes.h"
#include "report/hotspot_words.h"

#define COLUMNS_UNSEEN 120 /* where no terminal says how many there are */
#define MODULES_SHOWN 8
#define THREADS_SHOWN 6
#define BUSIEST_SHOWN 8
#define UNSAMPLED_SHOWN 10
#define NAME_SHOWN 48
#define LIST_INDENT 12
#define REASON_COLUMNS 300
#define PROSE_COLUMNS 120 /* longer lines of words are hard to follow */
#define UNSEEN_SHARE 0.05 /* of the CPU time: less is lost at the ends of any run */
#define RECORDER_PERF 2 /* as profile.recorder has it */

struct printing {
	const struct hotspots_shown *shown;
	struct buf *out;
	size_t columns; /* of tables */
	size_t prose;   /* of sentences */
	struct hotspot_notes notes;
};

static const char *what_of(enum hotspot_by by)
{
	static const char *const names[] = {
		[BY_FUNCTION] = "function", [BY_LINE] = "line",	      [BY_MODULE] = "module",
		[BY_THREAD] = "thread",	    [BY_PROCESS] = "program",
	};

	return names[by];
}

static void heading(const struct printing *p, const char *text)
{
	buf_printf(p->out, "\n%s%s%s\n", p->shown->colour ? "\033[1m" : "", text, p->shown->colour ? "\033[0m" : "");
}

/* Ends the paragraph in `line`, which is emptied. */
static void put_wrapped(const struct printing *p, struct buf *line)
{
	buf_puts(p->out, "  ");
	wrap_append(p->out, line->text, 2, 4, p->prose);
	buf_clear(line);
}

static void put_total(const struct printing *p)
{
	const struct profile_account *a = &p->shown->account;
	const struct hotspots *h = p->shown->hotspots;
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	buf_printf(&line, "assay profile: %s of CPU time in %s sample%s, %u asked for per CPU second",
		   units_seconds(a->sampled_s).text, units_count((double)a->deliveries).text,
		   a->deliveries == 1 ? "" : "s", p->shown->profile->hz);
	if (h->weight < a->weight)
		buf_printf(&line, "; what was asked for is %s of it, in %s sample%s",
			   units_seconds((double)h->weight * p->shown->profile->period_s).text,
			   units_count((double)h->deliveries).text, h->deliveries == 1 ? "" : "s");
	wrap_append(p->out, line.text, 0, 2, p->prose);
}

/* One sentence with the group before it. */
static void put_serial(void *context, const char *group, const char *text)
{
	const struct printing *p = context;
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	if (hotspots_section_count(p->shown->hotspots) > 1)
		buf_printf(&line, "%s: ", group);
	buf_puts(&line, text);
	buf_puts(p->out, "  ");
	wrap_append(p->out, line.text, 2, 4, p->prose);
}

/* "prog 70%, libc.so.6 20%, ...": what would be a table of two columns, on as few lines as it takes. */
static void put_list(const struct printing *p, const char *title, const struct hotspot_rows *rows, size_t most)
{
	CLEANUP(buf_release) struct buf line;
	size_t shown = rows->count < most ? rows->count : most;

	buf_init(&line);
	for (size_t i = 0; i < shown; i++) {
		buf_puts(&line, i ? ", " : "");
		hotspot_words_name(&line, *rows->items[i].name ? rows->items[i].name : "(no name)", NAME_SHOWN);
		buf_printf(&line, " %.1f%%", 100 * rows->items[i].share);
	}
	if (rows->all > shown)
		buf_printf(&line, ", and %zu more", rows->all - shown);
	buf_printf(p->out, "  %-*s", LIST_INDENT - 2, title);
	wrap_append(p->out, line.text, LIST_INDENT, LIST_INDENT, p->prose);
}

static void put_busiest(const struct printing *p, const struct hotspot_group *g)
{
	CLEANUP(buf_release) struct buf line;
	const struct hotspot_rows *rows = &g->busiest_threads;
	size_t shown = rows->count < BUSIEST_SHOWN ? rows->count : BUSIEST_SHOWN;

	buf_init(&line);
	for (size_t i = 0; i < shown; i++) {
		buf_puts(&line, i ? ", " : "");
		hotspot_words_name(&line, *rows->items[i].name ? rows->items[i].name : "(no name)", NAME_SHOWN);
		buf_printf(&line, " (%d) %s", rows->items[i].busiest_tid, units_seconds(rows->items[i].cpu_s).text);
	}
	if (rows->all > shown)
		buf_printf(&line, ", and %zu more", rows->all - shown);
	buf_printf(p->out, "  %-*s", LIST_INDENT - 2, "busiest");
	wrap_append(p->out, line.text, LIST_INDENT, LIST_INDENT, p->prose);
}

static void put_table(struct printing *p, const struct hotspot_group *g, const char *title,
		      const struct hotspot_rows *rows)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = hotspot_words_table(g, rows, what_of(p->shown->query->by), SIZE_MAX, p->columns, &t, &align);

	hotspot_notes_add(&p->notes, g, rows);
	buf_printf(p->out, "\n  %s\n", title);
	table_print(&t, align, "  ", p->out);
	if (left_out)
		buf_printf(p->out, "  ... and %zu more; --top shows them\n", left_out);
}

/* Where phases of several names are one group. */
static void put_phases(const struct printing *p, const struct hotspot_group *g)
{
	CLEANUP(buf_release) struct buf line;
	size_t commas = 0;

	buf_init(&line);
	if (g->phase_names < 2)
		return;
	for (const char *c = g->phases; *c; c++)
		commas += *c == ',';
	buf_puts(&line, "phases: ");
	utf8_append_line(&line, g->phases, REASON_COLUMNS);
	buf_printf(&line, "%s; --group NAME shows one of them alone", g->phase_names > commas + 1 ? ", ..." : "");
	buf_puts(p->out, "  ");
	wrap_append(p->out, line.text, 2, 2, p->prose);
}

static void put_few(const struct printing *p, const struct hotspot_group *g)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	buf_printf(&line, "too few samples (n = %.0f) to trust these shares; a longer run or a higher rate helps",
		   ceil(g->effective));
	put_wrapped(p, &line);
}

static void put_group_head(const struct printing *p, const struct hotspot_group *g)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, hotspot_words_title(g), NAME_SHOWN);
	buf_printf(&line, ": %s of CPU", units_seconds(g->cpu_s).text);
	if (!isnan(g->wall_s))
		buf_printf(&line, " in %s", units_seconds(g->wall_s).text);
	if (g->wall_s > 0)
		buf_printf(&line, " (%.2f cores)", g->cpu_s / g->wall_s);
	buf_printf(&line, ", %s sample%s, %zu thread%s", units_count((double)g->deliveries).text,
		   g->deliveries == 1 ? "" : "s", g->thread_count, g->thread_count == 1 ? "" : "s");
	heading(p, line.text);
	put_phases(p, g);
	if (g->effective < SHARES_LEAST)
		put_few(p, g);
}

static void put_group(struct printing *p, const struct hotspot_group *g)
{
	const struct hotspot_query *q = p->shown->query;
	bool by_code = q->by == BY_FUNCTION || q->by == BY_LINE || q->by == BY_MODULE;

	put_group_head(p, g);
	put_table(p, g, by_code ? "where it ran (in this function itself)" : "who used it", &g->self);
	if (q->focus) {
		put_table(p, g, "called by", &g->callers);
		put_table(p, g, "what it called", &g->callees);
	}
	if (by_code)
		put_table(p, g, "on whose behalf (with all that it called)", &g->inclusive);
	buf_putc(p->out, '\n');
	if (q->by != BY_MODULE)
		put_list(p, "modules", &g->modules, MODULES_SHOWN);
	if (q->by != BY_THREAD)
		put_list(p, "threads", &g->threads, THREADS_SHOWN);
	if (g->thread_count > 1)
		put_busiest(p, g);
}

/* CPU time that threads without a timer used, in processes that were sampled otherwise. */
static void put_unsampled_threads(const struct printing *p)
{
	const struct profile *profile = p->shown->profile;
	double seconds = 0;
	size_t threads = 0;

	for (size_t i = 0; i < profile->image_count; i++) {
		seconds += (double)profile->images[i].unsampled_ns / 1e9;
		threads += profile->images[i].unarmed;
	}
	if (threads || seconds > 0)
		buf_printf(p->out, "    threads without a timer: %zu, which used %s\n", threads,
			   units_seconds(seconds).text);
}

static void put_unsampled(const struct printing *p)
{
	const struct profile *profile = p->shown->profile;
	size_t shown = profile->unsampled_count < UNSAMPLED_SHOWN ? profile->unsampled_count : UNSAMPLED_SHOWN;

	if (!profile->unsampled_count)
		return;
	buf_puts(p->out, "  not sampled:\n");
	for (size_t i = 0; i < shown; i++) {
		const struct profile_unsampled *u = &profile->unsampled[i];
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		hotspot_words_name(&line, u->name, NAME_SHOWN);
		buf_printf(&line, " (%d), %s: ", u->pid,
			   u->cpu_ns < 0 ? "CPU time not known" : units_seconds((double)u->cpu_ns / 1e9).text);
		utf8_append_line(&line, u->reason, REASON_COLUMNS);
		buf_puts(p->out, "    ");
		wrap_append(p->out, line.text, 4, 6, p->prose);
	}
	if (profile->unsampled_count > shown)
		buf_printf(p->out, "    ... and %zu more; --json has them all\n", profile->unsampled_count - shown);
}

/* What an image lacks, each sentence once. */
static void put_notes(const struct printing *p)
{
	const struct profile *profile = p->shown->profile;

	for (size_t i = 0; i < profile->image_count; i++) {
		CLEANUP(buf_release) struct buf line;
		bool said = !profile->images[i].note || !*profile->images[i].note;

		for (size_t k = 0; k < i && !said; k++)
			said = profile->images[k].note && strcmp(profile->images[k].note, profile->images[i].note) == 0;
		buf_init(&line);
		if (said || i >= UNSAMPLED_SHOWN)
			continue;
		utf8_append_line(&line, profile->images[i].note, REASON_COLUMNS);
		buf_puts(p->out, "  ");
		wrap_append(p->out, line.text, 2, 4, p->prose);
	}
	if (profile->damaged)
		buf_printf(p->out, "  The record of samples is damaged: %s\n", profile->trouble);
}

static void put_stacks(const struct printing *p, struct buf *line)
{
	const struct hotspots *h = p->shown->hotspots;
	uint64_t complete = 0, cut = 0, guessed = 0, stacked = 0;
	double of;

	for (size_t i = 0; i < h->group_count; i++) {
		complete += h->groups[i].complete;
		cut += h->groups[i].cut;
		guessed += h->groups[i].guessed;
		stacked += h->groups[i].stacked;
	}
	if (!stacked)
		return;
	of = (double)stacked;
	buf_printf(line, "stacks that reach the start of their thread: %.1f%%", 100 * (double)complete / of);
	if (cut)
		buf_printf(line, "; cut for their depth: %.1f%%", 100 * (double)cut / of);
	if (guessed)
		buf_printf(line, "; with a guessed frame: %.1f%%", 100 * (double)guessed / of);
	if (stacked < h->weight)
		buf_printf(line, "; CPU time counted without a stack: %.1f%%", 100 * (1 - of / (double)h->weight));
	put_wrapped(p, line);
}

/* Whether anything below tells why CPU time was not sampled. */
static bool has_reasons(const struct profile *p)
{
	bool has = p->unsampled_count > 0 || p->damaged;

	for (size_t i = 0; i < p->image_count && !has; i++)
		has = p->images[i].unarmed || p->images[i].unsampled_ns > 0 || p->images[i].note;
	return has;
}

static void put_unseen(const struct printing *p, struct buf *line)
{
	const struct profile_account *a = &p->shown->account;
	double unseen = a->cpu_s - a->sampled_s - a->dropped_s;

	if (!(unseen > UNSEEN_SHARE * a->cpu_s) || has_reasons(p->shown->profile))
		return;
	buf_printf(line, "the other %s went, most likely, into programs too short for a tick, and into the starting, "
			 "loading and ending of programs: no process or thread is known that was not sampled",
		   units_seconds(unseen).text);
	put_wrapped(p, line);
}

static void put_account(const struct printing *p)
{
	const struct profile_account *a = &p->shown->account;
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	heading(p, "How much of it this is");
	buf_printf(&line, "CPU time used %s, sampled %s", units_seconds(a->cpu_s).text,
		   units_seconds(a->sampled_s).text);
	if (a->cpu_s > 0)
		buf_printf(&line, " (%.1f%%)", 100 * a->sampled_s / a->cpu_s);
	buf_printf(&line, "; samples dropped for want of room: %s", units_count((double)a->dropped).text);
	if (a->dropped)
		buf_printf(&line, " (%s)", units_seconds(a->dropped_s).text);
	put_wrapped(p, &line);
	if (p->shown->profile->recorder == RECORDER_PERF && !(a->sampler_s > 0))
		buf_puts(&line, "the sampler itself ran in the kernel, which does not tell its time apart");
	else
		buf_printf(&line, "the sampler itself used %s", units_seconds(a->sampler_s).text);
	if (a->cpu_s > 0 && a->sampler_s > 0)
		buf_printf(&line, " (%.2f%% of the CPU time)", 100 * a->sampler_s / a->cpu_s);
	put_wrapped(p, &line);
	put_stacks(p, &line);
	put_unseen(p, &line);
	put_unsampled_threads(p);
	put_unsampled(p);
	put_notes(p);
}

static void put_note(void *context, const char *text)
{
	const struct printing *p = context;

	buf_puts(p->out, "  ");
	wrap_append(p->out, text, 2, 4, p->prose);
}

void hotspots_print(const struct hotspots_shown *shown, struct buf *out)
{
	size_t columns = shown->columns ? shown->columns : COLUMNS_UNSEEN;
	struct printing p = {
		.shown = shown,
		.out = out,
		.columns = columns,
		.prose = columns < PROSE_COLUMNS ? columns : PROSE_COLUMNS,
	};
	const struct hotspots *h = shown->hotspots;
	enum hotspot_by by = shown->query->by;

	put_total(&p);
	if (h->group_count && (by == BY_FUNCTION || by == BY_LINE) && !shown->query->focus) {
		heading(&p, "What is serial and holds up the run");
		hotspot_words_serial(h, put_serial, &p);
	}
	for (size_t i = 0; i < hotspots_section_count(h); i++)
		put_group(&p, hotspots_section(h, i));
	if (h->group_count) {
		buf_putc(out, '\n');
		hotspot_notes_each(&p.notes, put_note, &p);
	} else {
		buf_puts(out, shown->account.weight ? "\nNo sample is what was asked for.\n"
						    : "\nThere are no samples.\n");
	}
	put_account(&p);
}
