#include "record/regions.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/units.h"
#include "record/begin.h"
#include "record/recordings.h"
#include "store/region_file.h"
#include "store/region_merge.h"
#include "store/region_rows.h"
#include "wire/regions.h"

#define MERGED_SUFFIX ".merged" /* of the folder, while it is being removed */
#define PROGRESS_AFTER_NS (2 * NS_PER_S)

/* Whether the user has set a variable for the command: in assay's own environment or by --env. */
static bool was_given(const struct record_options *o, const char *name)
{
	size_t length = strlen(name);

	for (const char *const *e = o->env; e && *e; e++)
		if (strncmp(*e, name, length) == 0 && (*e)[length] == '=')
			return true;
	return getenv(name);
}

/* A run inside a run: what the outer one has set is not the user's wish. */
static bool is_of_outer_run(const struct record_options *o)
{
	const char *folder = getenv("ASSAY_DIR"), *run = getenv("ASSAY_RUN_DIR");
	CLEANUP(free_cleanup) char *its = run ? fs_join(run, "segments/regions") : NULL;

	for (const char *const *e = o->env; e && *e; e++)
		if (strncmp(*e, "ASSAY_DIR=", strlen("ASSAY_DIR=")) == 0)
			return false;
	return folder && its && strcmp(folder, its) == 0;
}

static int add(char **environment, size_t *count, const char *name, const char *value)
{
	if (asprintf(&environment[*count], "%s=%s", name, value) < 0) {
		environment[*count] = NULL;
		return -1;
	}
	++*count;
	return 0;
}

char **regions_prepare(const struct rundir *dir, const struct record_options *options, const char *const *more,
		       struct warnings *warnings)
{
	bool outer = is_of_outer_run(options), ours = dir && (outer || !was_given(options, "ASSAY_DIR"));
	size_t count = 0, room = 4;
	char **environment;
	int failed = 0;

	for (const char *const *e = more; e && *e; e++)
		room++;
	environment = calloc(room, sizeof *environment);
	if (!environment)
		return NULL;
	for (const char *const *e = more; !failed && e && *e; e++)
		failed = !(environment[count++] = strdup(*e));
	if (ours && mkdir(dir->regions, 0777) < 0 && errno != EEXIST) {
		warnings_add(warnings, "Regions of the program are not recorded: %s: %s.", dir->regions,
			     strerror(errno));
		ours = false;
	}
	if (!failed && ours)
		failed = add(environment, &count, "ASSAY_DIR", dir->regions);
	/* Ranks of MPI leave it to us to put their recordings together. */
	if (!failed && ours && (outer || !was_given(options, "ASSAY_MERGE")))
		failed = add(environment, &count, "ASSAY_MERGE", "off");
	if (!failed && options->regions)
		failed = add(environment, &count, "ASSAY_REGIONS", options->regions);
	if (failed) {
		begin_environment_free(environment);
		return NULL;
	}
	return environment;
}

static bool is_recording(const char *name)
{
	return strncmp(name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) == 0;
}

bool regions_left(const struct rundir *dir)
{
	bool writing;

	return recordings_look(dir->regions, REGION_FILE_PREFIX, &writing);
}

/* Everything in the folder, and the folder. */
static int remove_folder(const char *folder, struct error *err)
{
	DIR *d = opendir(folder);
	int code = 0;

	if (!d)
		return errno == ENOENT ? 0 : error_set(err, "%s: %s", folder, strerror(errno));
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (is_recording(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) < 0)
			code = errno;
	closedir(d);
	if (rmdir(folder) < 0 && !code)
		code = errno;
	return code ? error_set(err, "%s: %s", folder, strerror(code)) : 0;
}

int regions_remove_recordings(const struct rundir *dir, struct error *err)
{
	CLEANUP(free_cleanup) char *merged = NULL;

	if (asprintf(&merged, "%s" MERGED_SUFFIX, dir->regions) < 0) {
		merged = NULL;
		return error_set(err, "%s: out of memory", dir->regions);
	}
	if (remove_folder(merged, err) < 0)
		return -1;
	if (rename(dir->regions, merged) < 0)
		return errno == ENOENT ? 0 : error_set(err, "%s: %s", dir->regions, strerror(errno));
	return remove_folder(merged, err);
}

static int by_total(const void *left, const void *right)
{
	const struct region_row *a = left, *b = right;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int take_rows(struct region_table *t, struct run_regions *ret, struct error *err)
{
	qsort(t->rows, t->count, sizeof *t->rows, by_total);
	ret->regions = t->count;
	for (size_t i = 0; i < t->count; i++) {
		const struct region_row *row = &t->rows[i];
		struct run_region *shown = &ret->top[ret->top_count];

		ret->calls += row->calls;
		ret->dropped += row->dropped;
		if (i >= RUN_REGIONS_SHOWN)
			continue;
		*shown = (struct run_region){
			.name = strdup(row->name),
			.calls = row->calls,
			.total_s = row->timed ? (double)row->total / 1e9 : NAN,
			.exclusive_s = row->timed ? row->exclusive / 1e9 : NAN,
			.mean_s = row->timed ? row->avg / 1e9 : NAN,
			.share = row->timed ? row->share : NAN,
		};
		if (!shown->name)
			return error_set(err, "out of memory for names of regions");
		ret->top_count++;
	}
	return 0;
}

int regions_describe(const char *path, struct run_regions *ret, struct error *err)
{
	CLEANUP(region_file_cleanup) struct region_file *file = NULL;
	CLEANUP(region_table_release) struct region_table table;
	CLEANUP(region_query_release) struct region_query all;
	const struct regions *r;

	region_table_init(&table);
	region_query_init(&all);
	if (region_file_open(path, &file, err) < 0 || region_rows(file, &all, REGION_ROWS_BY_REGION, &table, err) < 0)
		return -1;
	r = region_file_regions(file);
	ret->ranks = r->rank_count;
	for (size_t i = 0; i < r->trouble_count; i++)
		if (r->troubles[i].kind < RUN_REGION_TROUBLES)
			ret->troubles[r->troubles[i].kind] += r->troubles[i].count;
	return take_rows(&table, ret, err);
}

static bool is_empty(const struct run_regions *r)
{
	uint64_t troubles = 0;

	for (uint32_t kind = 0; kind < RUN_REGION_TROUBLES; kind++)
		troubles += r->troubles[kind];
	return !r->regions && !r->dropped && !troubles;
}

static void warn_of_troubles(const struct run_regions *r, struct warnings *w)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	for (uint32_t kind = 0; kind < RUN_REGION_TROUBLES; kind++)
		if (r->troubles[kind])
			buf_printf(&text, "%s%s %s", text.length ? ", " : "",
				   units_count((double)r->troubles[kind]).text, region_trouble_text(kind));
	if (text.length)
		warnings_add(
			w, "Calls of regions that were not used as they should be: %s; `assay inspect` tells of which.",
			text.text);
}

void regions_tell(const struct rundir *dir, struct run *run)
{
	struct run_regions *r = calloc(1, sizeof *r);
	struct error err;

	if (!r) {
		warnings_add(&run->warnings, "The regions are not told: out of memory.");
		return;
	}
	run_regions_init(r);
	if (regions_describe(dir->regions_h5, r, &err) < 0) {
		warnings_add(&run->warnings, "The regions are not told: %s.", err.text);
		run_regions_release(r);
		free(r);
		return;
	}
	if (is_empty(r)) { /* a program that has the library, and used no region, or none was recorded */
		unlink(dir->regions_h5);
		run_regions_release(r);
		free(r);
		return;
	}
	if (r->dropped)
		warnings_add(&run->warnings,
			     "Calls of regions that found no room, and are only counted: %s (ASSAY_LIMIT, or a full "
			     "disk).", units_count((double)r->dropped).text);
	warn_of_troubles(r, &run->warnings);
	run->regions = r;
}

struct telling {
	const struct regions_finishing *f;
	int64_t begun;
	bool told;
};

static void on_progress(void *context, uint64_t done, uint64_t all)
{
	struct telling *t = context;

	(void)done, (void)all;
	if (t->told || !t->f->progress || clock_mono_ns() - t->begun < PROGRESS_AFTER_NS)
		return;
	t->told = true;
	t->f->progress(t->f->context, "putting the regions into one file");
}

static void warn_of_merge(const struct region_merge_result *m, struct warnings *w)
{
	for (size_t i = 0; i < m->note_count; i++)
		warnings_add(w, "%s", m->notes[i]);
	if (m->missing)
		warnings_add(w, "Ranks that left no recording of regions: %s (of %" PRIu32 ").", m->missing,
			     m->expected_ranks);
}

/* Returns 0; 1 where there is no recording after all; -1 where it cannot be, which is told. */
static int merge(const struct rundir *dir, const struct regions_finishing *f, struct run *run)
{
	const char *folder = dir->regions;
	struct telling telling = {.f = f, .begun = clock_mono_ns()};
	struct region_merge_options options = {.folders = &folder,
					       .folder_count = 1,
					       .out = dir->regions_h5,
					       .stop = f->hurry,
					       .progress = on_progress,
					       .context = &telling};
	CLEANUP(region_merge_result_release) struct region_merge_result result;
	struct error err;
	int got;

	region_merge_result_init(&result);
	rundir_clear_way(dir->regions_h5);
	got = region_merge(&options, &result, &err);
	if (got < 0)
		warnings_add(
			&run->warnings,
			"The regions were not put into one file (%s); `assay recover --force` on the run directory "
			"tries again.",
			err.text);
	if (got == 0)
		warn_of_merge(&result, &run->warnings);
	return got;
}

void regions_finish(const struct rundir *dir, const struct regions_finishing *f, struct run *run)
{
	bool writing, found = recordings_look(dir->regions, REGION_FILE_PREFIX, &writing);
	struct error err;

	if (found) {
		int got = merge(dir, f, run);

		if (got < 0)
			return;
		if (got == 0 && (f->survivors || writing))
			warnings_add(&run->warnings,
				     "Processes of the run may still record regions: `assay recover` on the run "
				     "directory adds what they record from now on.");
		else if (got == 0 && regions_remove_recordings(dir, &err) < 0)
			warnings_add(&run->warnings, "The recordings that regions.h5 was made of are still there: %s.",
				     err.text);
	} else if (!f->survivors) {
		rmdir(dir->regions); /* where it is not empty, or not there, that is no matter */
	}
	if (fs_exists(dir->regions_h5))
		regions_tell(dir, run);
}
