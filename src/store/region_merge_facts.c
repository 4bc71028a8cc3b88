/* What a merge says beside the calls: facts about the run, and what a reader should know of how they came about. */
#include "store/region_merging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"

#define FACTS_MAX 4096        /* keys that all ranks together may bring */
#define FACT_BYTES_MAX 60000u /* of a value: what an attribute of HDF5 holds */
#define DAMAGED_MAX 50        /* files that get a note each */

int merge_damage(struct merging *m, const char *sentence, struct error *err)
{
	m->damaged++;
	if (m->damaged <= DAMAGED_MAX && regions_add_note(&m->regions, "%s.", sentence) < 0)
		return error_set(err, "out of memory for a note");
	return 0;
}

static int set_fact(struct merging *m, const char *key, const char *value, struct error *err)
{
	CLEANUP(free_cleanup) char *cut = NULL;
	size_t length = strlen(value);

	if (length <= FACT_BYTES_MAX)
		return regions_set_fact(&m->regions, key, value, err);
	cut = strndup(value, utf8_cut(value, length, FACT_BYTES_MAX));
	if (!cut)
		return error_set(err, "out of memory for the metadata");
	return regions_set_fact(&m->regions, key, cut, err);
}

/* The last of a key counts within a process; of several ranks the lowest. */
static int take_facts(struct merging *m, const struct region_log *l, struct error *err)
{
	CLEANUP(region_details_release) struct region_details d;

	region_details_init(&d);
	if (region_details_read(l, &d, NULL) < 0)
		return 0; /* its damage has been noted */
	for (size_t i = d.fact_count; i-- > 0;) {
		if (!*d.facts[i].key || regions_fact(&m->regions, d.facts[i].key))
			continue;
		if (m->regions.fact_count >= FACTS_MAX)
			break;
		if (set_fact(m, d.facts[i].key, d.facts[i].value, err) < 0)
			return -1;
	}
	return 0;
}

static int set_default(struct merging *m, const char *key, const char *value, struct error *err)
{
	return *value && !regions_fact(&m->regions, key) ? set_fact(m, key, value, err) : 0;
}

static int set_integer(struct merging *m, const char *key, int64_t value, struct error *err)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64, value);
	return set_default(m, key, text, err);
}

static uint32_t expected_ranks(const struct merging *m)
{
	uint32_t expected = 0;

	for (size_t i = 0; i < m->job.count; i++) {
		const struct region_log *l = &m->job.logs[i];

		if (l->ranked && l->rank.source && l->rank.size > 0 && (uint32_t)l->rank.size > expected)
			expected = (uint32_t)l->rank.size;
	}
	return expected;
}

int merge_facts(struct merging *m, struct error *err)
{
	const struct region_log *reference = &m->job.logs[m->order[0]];
	uint32_t expected = expected_ranks(m);
	char when[40];

	for (size_t i = 0; i < m->job.count; i++) /* the first process of each rank speaks for it */
		if ((i == 0 || m->ranks[m->order[i]] != m->ranks[m->order[i - 1]]) &&
		    take_facts(m, &m->job.logs[m->order[i]], err) < 0)
			return -1;
	clock_iso8601(reference->process.wall_ns, when, sizeof when);
	if (set_default(m, "timestamp", when, err) < 0 ||
	    set_default(m, "hostname", reference->host, err) < 0 ||
	    set_default(m, "command", reference->command, err) < 0 ||
	    set_default(m, "assay_version", ASSAY_VERSION, err) < 0)
		return -1;
	if (set_integer(m, "start_time_ns", reference->process.mono_ns, err) < 0 ||
	    set_integer(m, "start_wall_ns", reference->process.wall_ns, err) < 0)
		return -1;
	return set_integer(m, "mpi_size", expected > m->regions.rank_count ? expected : (int64_t)m->regions.rank_count,
			   err);
}

/* A sentence about some processes: how many, and which one for example. */
struct kind {
	const char *sentence; /* that goes with one process as with two: "had", not "were" */
	size_t processes;
	const char *of;
};

int merge_notes(struct merging *m, struct error *err)
{
	const struct kind kinds[] = {
		{"had been killed or still ran: what they had recorded is here, and regions that "
		 "were open end where they were last seen",
		 m->killed.processes, m->killed.of},
		{"recorded too briefly to tell how fast their clock ran: lengths may be wrong by percents",
		 m->uncertain.processes, m->uncertain.of},
		{"did not record how their clock runs: their calls have no times and count as dropped",
		 m->unusable.processes, m->unusable.of},
		{"ran on other machines than the first rank, and nothing told how far their clocks are apart: they are "
		 "put beside each other by the time of day, which may be off by milliseconds",
		 m->by_wall.processes, m->by_wall.of},
		{"had no room left for names of regions or threads", m->lossy.processes, m->lossy.of},
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].processes)
			failed |= regions_add_note(&m->regions, "%zu of %zu processes (%s%s) %s.", kinds[i].processes,
						   m->job.count, kinds[i].of, kinds[i].processes > 1 ? ", ..." : "",
						   kinds[i].sentence) < 0;
	if (m->refused.processes)
		failed |= regions_add_note(&m->regions, "%zu of %zu processes (%s%s) did not record all threads: %s.",
					   m->refused.processes, m->job.count, m->refused.of,
					   m->refused.processes > 1 ? ", ..." : "", m->refusal) < 0;
	for (size_t i = 0; i < m->job.note_count; i++)
		failed |= regions_add_note(&m->regions, "%s", m->job.notes[i]) < 0;
	if (m->job.unnoted)
		failed |= regions_add_note(&m->regions, "More files that cannot be read: %s.",
					   units_count((double)m->job.unnoted).text) < 0;
	if (m->damaged > DAMAGED_MAX)
		failed |= regions_add_note(&m->regions, "More files that are damaged: %s.",
					   units_count((double)(m->damaged - DAMAGED_MAX)).text) < 0;
	if (m->backwards)
		failed |= regions_add_note(&m->regions,
					   "Calls that end before they begin, whose length is 0 here: %s.",
					   units_count((double)m->backwards).text) < 0;
	if (m->unfilled)
		failed |= regions_add_note(&m->regions,
					   "Calls that were cut off while they were written (by a kill, or "
					   "longjmp out of a signal handler) and are not here: %s.",
					   units_count((double)m->unfilled).text) < 0;
	if (m->uncounted)
		failed |= regions_add_note(&m->regions,
					   "Calls that found no room, nor one for counting them by region: %s.",
					   units_count((double)m->uncounted).text) < 0;
	if (m->unnamed)
		failed |= regions_add_note(&m->regions, "Regions that have no name in the recording: %s.",
					   units_count((double)m->unnamed).text) < 0;
	return failed ? error_set(err, "out of memory for a note") : 0;
}

/* "2, 5-7"; NULL where none is missing. */
static int list_missing(const struct regions *r, uint32_t expected, char **ret, struct error *err)
{
	CLEANUP(buf_release) struct buf list;
	uint32_t next = 0;

	buf_init(&list);
	for (size_t i = 0; i <= r->rank_count && next < expected; i++) {
		uint32_t there = i < r->rank_count && r->ranks[i] < expected ? r->ranks[i] : expected;

		if (there > next)
			buf_printf(&list, "%s%u", list.length ? ", " : "", (unsigned)next);
		if (there > next + 1)
			buf_printf(&list, "-%u", (unsigned)there - 1);
		next = there + 1;
	}
	if (list.failed)
		return error_set(err, "out of memory for the list of missing ranks");
	*ret = list.length ? buf_detach(&list) : NULL;
	return 0;
}

static int copy_notes(const struct merging *m, struct region_merge_result *ret, struct error *err)
{
	ret->notes = calloc(m->regions.note_count + 1, sizeof *ret->notes);
	if (!ret->notes)
		return error_set(err, "out of memory for notes");
	for (; ret->note_count < m->regions.note_count; ret->note_count++) {
		ret->notes[ret->note_count] = strdup(m->regions.notes[ret->note_count]);
		if (!ret->notes[ret->note_count])
			return error_set(err, "out of memory for notes");
	}
	return 0;
}

int merge_result(struct merging *m, struct region_merge_result *ret, struct error *err)
{
	const struct regions *r = &m->regions;

	ret->processes = m->job.count;
	ret->ranks = (uint32_t)r->rank_count;
	ret->expected_ranks = expected_ranks(m);
	for (size_t i = 0; i < r->part_count; i++) {
		ret->calls += r->parts[i].calls;
		ret->dropped += r->parts[i].dropped;
	}
	ret->dropped += m->uncounted;
	if (list_missing(r, ret->expected_ranks, &ret->missing, err) < 0)
		return -1;
	if (ret->missing && regions_add_note(&m->regions, "Of %u ranks, %s left no recording.",
					     (unsigned)ret->expected_ranks, ret->missing) < 0)
		return error_set(err, "out of memory for a note");
	return copy_notes(m, ret, err);
}
