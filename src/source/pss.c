#include "source/pss.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/units.h"
#include "source/reading.h"

#define GROWTH 1.2
/* The target waits meanwhile where it changes its memory map, so this stays rare: a thousandth of the time. */
#define COST_FACTOR 1000
#define LONGEST_NS (50 * NS_PER_MS)
/* Before anything was measured: 60 ns for each page of 4 KiB, as on a machine of 2024 without huge pages. */
#define NS_PER_BYTE_AT_FIRST (60.0 / 4096)
/* Below this, opening the file and the number of mappings are what costs, and say nothing of the price of a page. */
#define SMALL_BYTES (INT64_C(16) << 20)

/* The largest processes, largest first. Returns how many. */
static size_t pick_largest(const struct process_table *t, const struct process *largest[PSS_PROCESSES])
{
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct process *p = &t->items[i];
		size_t at = count;

		if (!p->alive || p->rss <= 0)
			continue;
		while (at > 0 && largest[at - 1]->rss < p->rss)
			at--;
		if (at == PSS_PROCESSES)
			continue;
		if (count < PSS_PROCESSES)
			count++;
		memmove(&largest[at + 1], &largest[at], (count - at - 1) * sizeof *largest);
		largest[at] = p;
	}
	return count;
}

static double sum_shares(struct source_context *c, const struct process *const *of, size_t count)
{
	char text[4096];
	double sum = 0;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		struct scan_key share = {.name = "Pss:"};
		ssize_t length = living_read_once(of[i], "smaps_rollup", text, sizeof text);

		if (length == -EACCES || length == -EPERM) {
			warnings_add(c->warnings,
				     "memory.pss is not known: %s/%d/smaps_rollup belongs to another user, "
				     "and reading it takes CAP_SYS_PTRACE",
				     procfs_root(), of[i]->pid);
			return NAN;
		}
		if (length <= 0 || scan_keys(text, (size_t)length, &share, 1) == 0)
			continue;
		sum += 1024.0 * (double)share.value;
		any = true;
	}
	return any ? sum : NAN;
}

double pss_read(struct pss *s, struct source_context *c, int64_t rss, int64_t now)
{
	if (rss <= 0 || now < s->next || (double)rss < GROWTH * (double)s->rss_at_last)
		return NAN;
	return pss_read_now(s, c, rss, now);
}

double pss_read_now(struct pss *s, struct source_context *c, int64_t rss, int64_t now)
{
	const struct process *largest[PSS_PROCESSES];
	double rate = s->ns_per_byte > 0 ? s->ns_per_byte : NS_PER_BYTE_AT_FIRST, sum;
	int64_t longest = s->longest_ns ? s->longest_ns : LONGEST_NS, began, cost;
	size_t count;

	if (rate * (double)rss > (double)longest) {
		warnings_add(c->warnings,
			     "memory.pss was not read past %s resident: it would stop the target's use of its "
			     "memory map for more than %s each time",
			     units_bytes((double)(s->rss_at_last > 0 ? s->rss_at_last : rss)).text,
			     units_seconds((double)longest / 1e9).text);
		s->next = INT64_MAX;
		return NAN;
	}
	count = pick_largest(c->processes, largest);
	if (count < c->processes->alive && count == PSS_PROCESSES)
		warnings_add(c->warnings, "memory.pss is the sum over the %d largest processes only", PSS_PROCESSES);
	began = clock_mono_ns();
	sum = sum_shares(c, largest, count);
	cost = clock_mono_ns() - began;
	s->next = now + (s->factor ? s->factor : COST_FACTOR) * cost;
	s->rss_at_last = rss;
	if (rss > SMALL_BYTES)
		s->ns_per_byte = (double)cost / (double)rss;
	return sum;
}
