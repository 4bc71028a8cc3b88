/* Names and makes run directories. Making the folder is also the lock: of several runs that start in the same second,
 * each gets the folder that its own mkdir made. */
#include "store/rundir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"

#define PARENT "assay-runs"
#define TAG_MAX 60
#define SAME_NAME_MAX 10000 /* runs of one label in one second, before something else must be wrong */

void rundir_init(struct rundir *d)
{
	*d = (struct rundir){0};
}

void rundir_release(struct rundir *d)
{
	free(d->path);
	free(d->run_json);
	free(d->begin_json);
	free(d->timeline_h5);
	free(d->summary_md);
	free(d->stdout_log);
	free(d->stderr_log);
	free(d->terminal_log);
	free(d->markers_log);
	free(d->segments);
	free(d->monitor_seg);
	free(d->output_seg);
	free(d->samples_seg);
	free(d->rings);
	free(d->profile_json);
	free(d->regions);
	free(d->regions_h5);
	free(d->calls);
	free(d->calls_graph);
	rundir_init(d);
}

/* Fills in every name below `path`. */
static int name_files(struct rundir *d, const char *path, struct error *err)
{
	struct rundir named;

	rundir_init(&named);
	named.path = fs_absolute(path);
	if (!named.path)
		return error_set(err, "%s: its absolute path cannot be found: %s", path, strerror(errno));
	named.run_json = fs_join(named.path, "run.json");
	named.begin_json = fs_join(named.path, "begin.json");
	named.timeline_h5 = fs_join(named.path, "timeline.h5");
	named.summary_md = fs_join(named.path, "summary.md");
	named.stdout_log = fs_join(named.path, "stdout.log");
	named.stderr_log = fs_join(named.path, "stderr.log");
	named.terminal_log = fs_join(named.path, "terminal.log");
	named.markers_log = fs_join(named.path, "markers.log");
	named.segments = fs_join(named.path, "segments");
	named.monitor_seg = fs_join(named.path, "segments/monitor.seg");
	named.output_seg = fs_join(named.path, "segments/output.seg");
	named.samples_seg = fs_join(named.path, "segments/samples.seg");
	named.rings = fs_join(named.path, "segments/rings");
	named.profile_json = fs_join(named.path, "profile.json");
	named.regions = fs_join(named.path, "segments/regions");
	named.regions_h5 = fs_join(named.path, "regions.h5");
	named.calls = fs_join(named.path, "segments/calls");
	named.calls_graph = fs_join(named.path, "calls.graph");
	if (!named.run_json || !named.begin_json || !named.timeline_h5 || !named.summary_md || !named.stdout_log ||
	    !named.stderr_log || !named.terminal_log || !named.markers_log || !named.segments || !named.monitor_seg ||
	    !named.output_seg || !named.samples_seg || !named.rings || !named.profile_json || !named.regions ||
	    !named.regions_h5 || !named.calls || !named.calls_graph) {
		rundir_release(&named);
		return error_set(err, "%s: out of memory", path);
	}
	*d = named;
	return 0;
}

char *rundir_tag(const char *label)
{
	size_t length = strlen(label), used = 0;
	char *tag = malloc((length < TAG_MAX ? length : TAG_MAX) + 1);

	if (!tag)
		return NULL;
	for (const char *c = label; *c && used < TAG_MAX; c++) {
		/* Not isalnum: what counts as a letter must not hang on the locale. */
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			     *c == '.' || *c == '_' || *c == '-';

		if (plain)
			tag[used++] = *c;
		else if (used == 0 || tag[used - 1] != '_')
			tag[used++] = '_';
	}
	tag[used] = '\0';
	return tag;
}

/* "assay-runs/2026-11-29T17-15-41-LABEL": local time, without the colons that other systems' file names cannot have. */
static char *default_name(const char *label, int64_t wall_ns)
{
	CLEANUP(free_cleanup) char *tag = rundir_tag(label ? label : "");
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	char date[64] = "undated";
	struct tm tm;
	char *name;

	if (!tag)
		return NULL;
	if (localtime_r(&seconds, &tm))
		snprintf(date, sizeof date, "%04d-%02d-%02dT%02d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1,
			 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	return asprintf(&name, PARENT "/%s%s%s", date, *tag ? "-" : "", tag) < 0 ? NULL : name;
}

static int unusable(const char *path, int code, struct error *err)
{
	error_set(err, "%s: the run directory cannot be made there: %s", path, strerror(code));
	return RUNDIR_UNUSABLE;
}

/* Makes NAME, NAME-2, NAME-3, ...: the first one that is not there yet; *ret_path is owned. */
static int make_next(const char *name, char **ret_path, struct error *err)
{
	struct error cause;

	if (fs_make_dirs(PARENT, &cause) < 0) {
		error_set(err, "%s", cause.text);
		return RUNDIR_UNUSABLE;
	}
	for (int number = 1; number <= SAME_NAME_MAX; number++) {
		char *path = NULL;
		int length = number == 1 ? asprintf(&path, "%s", name) : asprintf(&path, "%s-%d", name, number);
		int code;

		if (length < 0)
			return unusable(name, ENOMEM, err);
		if (mkdir(path, 0777) == 0) {
			*ret_path = path;
			return RUNDIR_OK;
		}
		code = errno;
		free(path);
		if (code != EEXIST)
			return unusable(name, code, err);
	}
	error_set(err, "%s: there are %d runs of that name already", name, SAME_NAME_MAX);
	return RUNDIR_UNUSABLE;
}

int rundir_make_default(const char *label, int64_t wall_ns, char **ret_path, struct error *err)
{
	CLEANUP(free_cleanup) char *name = default_name(label, wall_ns);

	return name ? make_next(name, ret_path, err) : unusable(PARENT, ENOMEM, err);
}

/* Makes the folder that the user named, or takes an empty one. */
static int make_named(const char *out, struct error *err)
{
	struct error cause;
	int empty;

	if (*out == '\0') {
		error_set(err, "the run directory's name is empty");
		return RUNDIR_IN_USE;
	}
	if (fs_exists(out)) {
		if (!fs_is_dir(out)) {
			error_set(err, "%s: exists and is not a folder; a run directory is never written over it", out);
			return RUNDIR_IN_USE;
		}
		empty = fs_dir_is_empty(out, &cause);
		if (empty == 0) {
			error_set(err, "%s: exists and is not empty; a run directory is never overwritten", out);
			return RUNDIR_IN_USE;
		}
		if (empty < 0) {
			error_set(err, "%s", cause.text);
			return RUNDIR_UNUSABLE;
		}
		return RUNDIR_OK;
	}
	if (fs_make_dirs(out, &cause) < 0) {
		error_set(err, "%s", cause.text);
		return RUNDIR_UNUSABLE;
	}
	return RUNDIR_OK;
}

int rundir_create(struct rundir *d, const char *out, const char *label, int64_t wall_ns, struct error *err)
{
	CLEANUP(free_cleanup) char *path = NULL;
	struct rundir named;
	int problem;

	if (out) {
		problem = make_named(out, err);
	} else {
		problem = rundir_make_default(label, wall_ns, &path, err);
	}
	if (problem)
		return problem;
	if (name_files(&named, out ? out : path, err) < 0)
		return RUNDIR_UNUSABLE;
	/* The folder may be there and yet not be ours to write. For two runs that were given the same empty folder this
	 * is the lock: the second one finds it made. */
	if (mkdir(named.segments, 0777) < 0) {
		int code = errno;

		rundir_release(&named);
		if (path)
			rmdir(path);
		if (code != EEXIST)
			return unusable(out ? out : path, code, err);
		error_set(err, "%s: another run has just taken this folder", out ? out : path);
		return RUNDIR_IN_USE;
	}
	*d = named;
	return RUNDIR_OK;
}

int rundir_open(struct rundir *d, const char *path, struct error *err)
{
	CLEANUP(free_cleanup) char *folder = strdup(path);
	struct stat st;

	if (!folder)
		return error_set(err, "%s: out of memory", path);
	if (stat(path, &st) < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode)) {
		char *slash = strrchr(folder, '/');
		const char *file = slash ? slash + 1 : folder;

		if (strcmp(file, "run.json") != 0)
			return error_set(err, "%s: neither a run directory nor its run.json", path);
		if (!slash)
			strcpy(folder, ".");
		else if (slash == folder)
			slash[1] = '\0';
		else
			*slash = '\0';
	}
	return name_files(d, folder, err);
}

void rundir_discard(const struct rundir *d)
{
	const char *const files[] = {d->begin_json,   d->markers_log, d->stdout_log,  d->stderr_log,
				     d->terminal_log, d->monitor_seg, d->output_seg,  d->samples_seg};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlink(files[i]);
	/* A folder that holds anything else stays. */
	rmdir(d->regions);
	rmdir(d->calls);
	rmdir(d->segments);
	rmdir(d->path);
}

void rundir_clear_way(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && unlink(path) < 0)
		rmdir(path);
}
