#include "record/sampled_processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

/* From so much CPU time on a process counts, and is looked at when no samples come. */
#define COUNTS_NS (10 * NS_PER_MS)
#define LOOK_NS (20 * NS_PER_MS)
#define SEEN_NS NS_PER_MS
#define TOTAL_SHARE 1000 /* or a thousandth of the run's */
#define SMALL_SHARE 100  /* small ones are told of together from a hundredth of it on */
#define LOOKS_PER_UPDATE 20
#define REASONS_MAX 16

void sampled_processes_init(struct sampled_processes *s, const struct unsampled_needs *needs)
{
	*s = (struct sampled_processes){.needs = *needs};
}

void sampled_processes_release(struct sampled_processes *s)
{
	for (size_t i = 0; i < s->room; i++)
		free((char *)s->items[i].exe);
	free(s->items);
	*s = (struct sampled_processes){0};
}

static struct sampled_process *place(struct sampled_process *items, size_t room, int pid, int64_t start_ticks)
{
	uint64_t hash = ((uint64_t)(uint32_t)pid << 32 ^ (uint64_t)start_ticks) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 32) & (room - 1);

	while (items[at].pid && (items[at].pid != pid || items[at].start_ticks != start_ticks))
		at = (at + 1) & (room - 1);
	return &items[at];
}

static int grow(struct sampled_processes *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	struct sampled_process *items = calloc(room, sizeof *items);

	if (!items)
		return -1;
	for (size_t i = 0; i < s->room; i++)
		if (s->items[i].pid)
			*place(items, room, s->items[i].pid, s->items[i].start_ticks) = s->items[i];
	free(s->items);
	s->items = items;
	s->room = room;
	return 0;
}

static struct sampled_process *find(struct sampled_processes *s, int pid, int64_t start_ticks)
{
	struct sampled_process *p = s->room ? place(s->items, s->room, pid, start_ticks) : NULL;

	return p && p->pid ? p : NULL;
}

struct sampled_process *sampled_process_at(struct sampled_processes *s, int pid, int64_t start_ticks)
{
	struct sampled_process *p = find(s, pid, start_ticks);

	if (p)
		return p;
	if (2 * (s->count + 1) > s->room && grow(s) < 0)
		return NULL;
	p = place(s->items, s->room, pid, start_ticks);
	*p = (struct sampled_process){.pid = pid, .start_ticks = start_ticks, .cpu_ns = -1};
	s->count++;
	return p;
}

void sampled_process_has_ring(struct sampled_process *p, const char *exe)
{
	p->has_ring = true;
	p->sampled_ns += p->live_ns;
	p->live_ns = 0;
	free((char *)p->exe);
	p->exe = strdup(exe);
}

/* What it has used, as the sources last read it. */
static int64_t cpu_of(const struct process *p)
{
	int64_t ticks = p->user_ns < 0 || p->system_ns < 0 ? -1 : p->user_ns + p->system_ns;

	return p->clock_ns > ticks ? p->clock_ns : ticks;
}

/* Whether it runs another program now than the one whose samples came last. */
static bool runs_another(const struct sampled_process *p)
{
	char link[64], program[2048];
	ssize_t length;

	snprintf(link, sizeof link, "%s/%d/exe", procfs_root(), p->pid);
	length = readlink(link, program, sizeof program - 1);
	if (length <= 0 || !p->exe)
		return false;
	program[length] = '\0';
	return strcmp(program, p->exe) != 0;
}

static void look_at(struct sampled_processes *s, struct sampled_process *p)
{
	char program[2048], reason[UNSAMPLED_REASON_MAX];
	bool certain = unsampled_reason(p->pid, &s->needs, reason, program, sizeof program);
	const char *slash;

	/* Its samples may only be late. */
	if (p->has_ring && !certain && !runs_another(p))
		return;
	memcpy(p->reason, reason, sizeof p->reason);
	slash = strrchr(program, '/');
	if (*program)
		snprintf(p->name, sizeof p->name, "%.63s", slash && slash[1] ? slash + 1 : program);
	p->looked = true;
}

static int64_t not_sampled_ns(const struct sampled_process *p)
{
	return p->cpu_ns < 0 ? 0 : p->cpu_ns - p->sampled_ns - p->live_ns;
}

/* Without a ring at once; of one that has a ring, samples may lag behind and are not exact. */
static bool wants_a_look(const struct sampled_process *p)
{
	int64_t left = not_sampled_ns(p);

	if (!p->has_ring)
		return !p->looked && left >= LOOK_NS;
	return left >= LOOK_NS + p->cpu_ns / 10 && left >= 2 * p->looked_at_ns;
}

/* Its parent will be told of with the time of its children, when it is reaped. */
static void mark_parent(struct sampled_processes *s, const struct process_table *table, int ppid)
{
	for (size_t i = 0; i < table->count; i++) {
		struct sampled_process *parent;

		if (table->items[i].pid != ppid)
			continue;
		parent = sampled_process_at(s, ppid, table->items[i].start_ticks);
		if (parent)
			parent->has_children = true;
	}
}

/* The process, made and named where it is new; NULL: nothing new of it, or no memory. */
static struct sampled_process *refresh(struct sampled_processes *s, const struct process_table *table,
				       const struct process *from)
{
	int64_t cpu = cpu_of(from);
	struct sampled_process *p = cpu < SEEN_NS ? NULL : find(s, from->pid, from->start_ticks);

	if (cpu < SEEN_NS || (p && p->cpu_ns >= cpu))
		return NULL;
	if (!p || p->cpu_ns < 0)
		mark_parent(s, table, from->ppid);
	p = sampled_process_at(s, from->pid, from->start_ticks);
	if (!p)
		return NULL;
	if (!p->looked)
		snprintf(p->name, sizeof p->name, "%s", from->comm);
	p->cpu_ns = cpu;
	return p;
}

void sampled_processes_update(struct sampled_processes *s, const struct process_table *table)
{
	unsigned looks = 0;

	if (!*s->full && !unsampled_folder_full(&s->needs, s->full))
		*s->full = '\0';
	for (size_t i = 0; i < table->count; i++) {
		struct sampled_process *p = refresh(s, table, &table->items[i]);

		if (!p || !table->items[i].alive || looks == LOOKS_PER_UPDATE || !wants_a_look(p))
			continue;
		looks++;
		p->looked_at_ns = not_sampled_ns(p);
		look_at(s, p);
	}
}

void sampled_processes_forgotten(struct sampled_processes *s, const struct process *from)
{
	struct process_table alone = {.items = (struct process *)from, .count = 1};

	refresh(s, &alone, from);
}

void sampled_processes_reaped(struct sampled_processes *s, const struct wire_exit *e)
{
	struct sampled_process *newest = NULL;
	int64_t cpu = e->user_ns + e->system_ns;

	for (size_t i = 0; i < s->room; i++)
		if (s->items[i].pid == e->pid && (!newest || s->items[i].start_ticks > newest->start_ticks))
			newest = &s->items[i];
	if (!newest || newest->has_children)
		return;
	newest->cpu_ns = cpu > newest->cpu_ns ? cpu : newest->cpu_ns;
	newest->exact = true;
}

/* One reason and the processes that it holds for. */
struct reason {
	const char *text;
	size_t count;
	int64_t cpu_ns;
	char names[160];
};

static void add_reason(struct reason *reasons, size_t *count, const char *text, const char *name, int64_t cpu_ns)
{
	struct reason *r = reasons;
	size_t length;

	while (r < reasons + *count && strcmp(r->text, text) != 0)
		r++;
	if (r == reasons + *count) {
		/* The last one takes all that are too many to tell apart. */
		if (*count == REASONS_MAX)
			r--;
		else
			reasons[(*count)++] = (struct reason){.text = text};
	}
	r->count++;
	r->cpu_ns += cpu_ns;
	length = strlen(r->names);
	if (!strstr(r->names, name) && length + strlen(name) + 3 < sizeof r->names)
		snprintf(r->names + length, sizeof r->names - length, "%s%s", length ? ", " : "", name);
}

static int by_cpu(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

/* What is too short to be looked at, each; together it may be much. `count` 0: nobody saw how many. */
static void report_small(size_t count, int64_t cpu_ns, const char *why, int64_t total_ns, struct samples_writer *writer,
			 struct warnings *warnings)
{
	char name[64];

	if (cpu_ns <= total_ns / SMALL_SHARE)
		return;
	if (count)
		snprintf(name, sizeof name, "%zu process%s of under 10 ms", count, count == 1 ? "" : "es");
	else
		snprintf(name, sizeof name, "processes too short to be seen");
	samples_writer_unsampled(writer, 0, cpu_ns, name, why);
	warnings_add(warnings, "Not profiled: %s, %.2f s in all: %s.", name, (double)cpu_ns / 1e9, why);
}

/* What processes used that were never seen: known by what is missing in the sum. */
static int64_t unseen_ns(const struct sampled_processes *s, int64_t total_ns)
{
	for (size_t i = 0; i < s->room; i++) {
		const struct sampled_process *p = &s->items[i];
		int64_t sampled = p->sampled_ns + p->live_ns;

		/* Of one that was reaped the time of its children is in its own. */
		if (p->pid)
			total_ns -= p->has_ring ? sampled : p->cpu_ns > 0 ? p->cpu_ns : 0;
	}
	return total_ns;
}

void sampled_processes_report(const struct sampled_processes *s, int64_t total_ns, struct samples_writer *writer,
			      struct warnings *warnings)
{
	const char *late = *s->full ? s->full : "ended before it could be looked at";
	struct reason reasons[REASONS_MAX];
	size_t count = 0, small = 0;
	int64_t small_ns = 0;

	for (size_t i = 0; i < s->room; i++) {
		const struct sampled_process *p = &s->items[i];
		int64_t left = not_sampled_ns(p);
		const char *why = p->looked ? p->reason : late;

		/* Of one that has samples only another program, seen for what it is, counts. */
		if (!p->pid || (p->has_ring && !p->looked) || left <= 0)
			continue;
		if (left < COUNTS_NS && left <= total_ns / TOTAL_SHARE) {
			small++;
			small_ns += left;
			continue;
		}
		samples_writer_unsampled(writer, p->pid, left, p->name, why);
		add_reason(reasons, &count, why, p->name, left);
	}
	qsort(reasons, count, sizeof *reasons, by_cpu);
	for (size_t i = 0; i < count; i++)
		warnings_add(warnings, "Not profiled: %s (%zu process%s, %.2f s of CPU time): %s.", reasons[i].names,
			     reasons[i].count, reasons[i].count == 1 ? "" : "es", (double)reasons[i].cpu_ns / 1e9,
			     reasons[i].text);
	report_small(small, small_ns, *s->full ? s->full : "each ended before it could be looked at", total_ns, writer,
		     warnings);
	/* Where all could make a file, what is missing is the time before and after each was sampled. */
	if (*s->full)
		report_small(0, unseen_ns(s, total_ns), s->full, total_ns, writer, warnings);
}
