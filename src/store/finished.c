/* run.json tells the times of phases in seconds since the command's start; when that was in the clock of the records,
 * the helper's segment tells to the nanosecond, and run.json itself to the millisecond. */
#include "store/finished.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "store/segments.h"

#define SECONDS_MAX 3e9 /* beyond, no time of a run can be: some hundred years */

void finished_init(struct finished_run *f)
{
	*f = (struct finished_run){.wall_s = NAN, .cpu_s = NAN};
	phases_init(&f->phases);
}

void finished_release(struct finished_run *f)
{
	phases_release(&f->phases);
	free(f->label);
	free(f->command);
	finished_init(f);
}

/* 0 where the segment does not tell. */
static int64_t start_in_segment(const char *path)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	struct segment_record record;
	const void *payload;

	if (segment_reader_open(path, SEGMENT_KIND_OUTPUT, &reader, NULL) < 0)
		return 0;
	while (segment_reader_next(reader, &record, &payload, NULL) > 0)
		if (record.type == WIRE_START && record.used >= sizeof(struct wire_start))
			return ((const struct wire_start *)payload)->t;
	return 0;
}

/* "2026-11-29T17:15:41.123Z" less the offset of the wall clock; 0 where either is missing. */
static int64_t start_in_json(const json_t *root)
{
	double offset = json_get_number(root, "wall_offset_ns", NAN);
	struct tm tm = {0};
	int ms;

	if (sscanf(json_get_text(root, "started_at", ""), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon,
		   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
		return 0;
	if (!(fabs(offset) < SECONDS_MAX * 1e9))
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return (int64_t)timegm(&tm) * NS_PER_S + ms * NS_PER_MS - (int64_t)offset;
}

/* False where that is no time. */
static bool take_time(const json_t *phase, const char *key, int64_t start, int64_t *ret)
{
	double s = json_get_number(phase, key, NAN);

	if (!(fabs(s) < SECONDS_MAX))
		return false;
	*ret = start + llround(s * 1e9);
	return true;
}

static int take_phases(const json_t *root, struct finished_run *f, const char *path, struct error *err)
{
	const json_t *list = json_object_get(root, "phases"), *row;
	size_t i, n = json_array_size(list);

	f->phases.items = calloc(n ? n : 1, sizeof *f->phases.items);
	if (!f->phases.items)
		return error_set(err, "%s: out of memory for %zu phases", path, n);
	f->phases.room = n ? n : 1;
	json_array_foreach(list, i, row) {
		struct phase *p = &f->phases.items[f->phases.count];
		const struct phase *before = f->phases.count ? p - 1 : NULL;
		const char *name = json_get_text(row, "name", NULL);

		if (!name || !take_time(row, "start_s", f->start, &p->start) ||
		    !take_time(row, "end_s", f->start, &p->end))
			continue;
		if (p->end < p->start || (before && p->start < before->start))
			continue;
		snprintf(p->name, sizeof p->name, "%s", name);
		p->group = phase_group_of(json_get_text(row, "group", name));
		f->phases.count++;
	}
	return 0;
}

static char *copy_text(const json_t *root, const char *key)
{
	const char *text = json_get_text(root, key, NULL);

	return text ? strdup(text) : NULL;
}

int finished_read(const struct rundir *dir, struct finished_run *ret, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = json_read_file(dir->run_json, err);

	if (!root)
		return -1;
	if (!json_is_object(root))
		return error_set(err, "%s: it is no run.json: it holds no object", dir->run_json);
	ret->wall_s = json_get_number(root, "wall_s", NAN);
	/* Where the recording ended before the run did, what is known of it is less than what was used. */
	if (strcmp(json_get_text(root, "status", ""), "partial") != 0)
		ret->cpu_s = json_get_number(root, "cpu_s", NAN);
	ret->label = copy_text(root, "label");
	ret->command = copy_text(root, "command");
	ret->start = start_in_segment(dir->output_seg);
	if (!ret->start)
		ret->start = start_in_json(root);
	if (take_phases(root, ret, dir->run_json, err) < 0)
		return -1;
	ret->end = ret->phases.count ? ret->phases.items[ret->phases.count - 1].end : ret->start;
	if (fabs(ret->wall_s) < SECONDS_MAX && ret->start + llround(ret->wall_s * 1e9) > ret->end)
		ret->end = ret->start + llround(ret->wall_s * 1e9);
	return 0;
}
