/* Finds the recordings of calls in a folder and reads the text of each process; graph_recording_thread.c reads the
 * threads. */
#include "store/graph_recording.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "store/graph_recording_thread.h"
#include "wire/graph.h"

#define PROCESS_FILE_MAX ((size_t)64 << 20)
#define MODULES_MAX 100000u

void calls_recording_init(struct calls_recording *r)
{
	*r = (struct calls_recording){0};
}

static void process_release(struct calls_process *p)
{
	for (size_t i = 0; i < p->module_count; i++)
		free(p->modules[i].path);
	free(p->modules);
	free(p->sums);
	*p = (struct calls_process){0};
}

void calls_recording_release(struct calls_recording *r)
{
	for (size_t i = 0; i < r->count; i++)
		process_release(&r->processes[i]);
	free(r->processes);
	calls_recording_init(r);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

/* --- The text of a process. --- */

struct pairs {
	double first_clock, first_ns, last_clock, last_ns;
	bool any;
};

static int take_module(struct calls_process *p, const char *line, struct error *err)
{
	struct calls_module m = {0}, *modules;
	int at = 0;

	if (sscanf(line,
		   "module %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %n",
		   &m.start, &m.end, &m.offset, &m.device, &m.inode, &m.size, &m.mtime_ns, &at) < 7 ||
	    at == 0 || m.start >= m.end || p->module_count >= MODULES_MAX)
		return 1;
	modules = reallocarray(p->modules, p->module_count + 1, sizeof *modules);
	if (!modules)
		return error_set(err, "out of memory for modules");
	p->modules = modules;
	m.path = strdup(line + at);
	if (!m.path)
		return error_set(err, "out of memory for modules");
	modules[p->module_count++] = m;
	return 0;
}

static bool take_pair(struct pairs *pairs, const char *line)
{
	uint64_t clock;
	int64_t ns;

	if (sscanf(line, "pair %" SCNu64 " %" SCNd64, &clock, &ns) != 2)
		return false;
	if (!pairs->any) {
		pairs->first_clock = (double)clock;
		pairs->first_ns = (double)ns;
	}
	pairs->any = true;
	pairs->last_clock = (double)clock;
	pairs->last_ns = (double)ns;
	return true;
}

/* 0, 1 for a line that is none of ours, or -1. */
static int take_line(struct calls_process *p, struct pairs *pairs, uint64_t *end, const char *path, const char *line,
		     struct warnings *notes, struct error *err)
{
	int refused;

	if (strncmp(line, "module ", 7) == 0)
		return take_module(p, line, err);
	if (strncmp(line, "pair ", 5) == 0)
		return !take_pair(pairs, line);
	if (sscanf(line, "end %" SCNu64, end) == 1) {
		p->ended = true;
		return 0;
	}
	if (sscanf(line, "refused %d", &refused) == 1) {
		warnings_add(notes, "%s: threads were not recorded, since their files could not be made: %s.", path,
			     strerror(refused));
		return 0;
	}
	return 1;
}

static int take_lines(struct calls_process *p, char *text, struct pairs *pairs, uint64_t *end, const char *path,
		      struct warnings *notes, struct error *err)
{
	size_t wrong = 0;
	char *line = strchr(text, '\n'), *stop;

	/* What the last line lacks was not written before the end. */
	for (line = line ? line + 1 : text; (stop = strchr(line, '\n')); line = stop + 1) {
		int got;

		*stop = '\0';
		got = take_line(p, pairs, end, path, line, notes, err);
		if (got < 0)
			return -1;
		wrong += (size_t)got;
	}
	if (wrong)
		warnings_add(notes, "%s: lines that cannot be understood, and were left out: %zu.", path, wrong);
	return 0;
}

/* Nanoseconds per step of the clock; 0: not known. */
static double scale_of(const struct pairs *pairs, bool tsc)
{
	double scale;

	if (!tsc)
		return 1;
	if (!pairs->any || pairs->last_ns - pairs->first_ns < 1e6) {
		struct pairs now = *pairs;

		/* It was killed before its clock could be told: that of this machine, if it has not been restarted. */
		if (!pairs->any || !calls_clock_now(&now.last_clock, &now.last_ns))
			return 0;
		pairs = &now;
		scale = (now.last_ns - now.first_ns) / (now.last_clock - now.first_clock);
	} else {
		scale = (pairs->last_ns - pairs->first_ns) / (pairs->last_clock - pairs->first_clock);
	}
	return scale > 0.01 && scale < 100 ? scale : 0;
}

/* --- A process with its threads. --- */

static int read_threads(struct calls_process *p, const char *folder, const char *name, double scale, uint64_t end,
			struct warnings *notes, struct error *err)
{
	CLEANUP(calls_sums_release) struct calls_sums sums;
	int stem = (int)(strlen(name) - strlen(CALLS_PROCESS_SUFFIX));

	calls_sums_init(&sums, scale);
	for (unsigned i = 0;; i++) {
		CLEANUP(free_cleanup) char *path = NULL;

		if (asprintf(&path, "%s/%.*s.%u", folder, stem, name, i) < 0) {
			path = NULL;
			return error_set(err, "out of memory for a path");
		}
		if (!fs_exists(path))
			break;
		if (calls_sums_open(&sums, path, notes, err) < 0)
			return -1;
	}
	return calls_sums_finish(&sums, end, p, err);
}

static int read_process(const char *folder, const char *name, struct calls_process *p, struct warnings *notes,
			struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(folder, name);
	CLEANUP(buf_release) struct buf text;
	struct pairs pairs = {0};
	uint64_t end = 0;
	char clock[8] = "";
	double scale;
	struct error why;

	buf_init(&text);
	if (!path)
		return error_set(err, "out of memory for a path");
	if (fs_read_file(path, PROCESS_FILE_MAX, &text, &why) < 0) {
		warnings_add(notes, "%s.", why.text);
		return 0;
	}
	if (sscanf(text.text, CALLS_PROCESS_FIRST "%d %7s", &p->pid, clock) != 2 ||
	    (strcmp(clock, "tsc") != 0 && strcmp(clock, "ns") != 0)) {
		warnings_add(notes, "%s: it is no recording of calls of a version that this program reads.", path);
		return 0;
	}
	if (take_lines(p, text.text, &pairs, &end, path, notes, err) < 0)
		return -1;
	scale = scale_of(&pairs, strcmp(clock, "tsc") == 0);
	if (!(scale > 0)) /* not known */
		warnings_add(notes, "%s: the program was killed before its clock could be told: times are 0.", path);
	return read_threads(p, folder, name, scale, end, notes, err);
}

static int is_process_file(const struct dirent *entry)
{
	return strncmp(entry->d_name, CALLS_FILE_PREFIX, strlen(CALLS_FILE_PREFIX)) == 0 &&
	       has_suffix(entry->d_name, CALLS_PROCESS_SUFFIX);
}

static int is_recording_file(const struct dirent *entry)
{
	return strncmp(entry->d_name, CALLS_FILE_PREFIX, strlen(CALLS_FILE_PREFIX)) == 0;
}

int calls_recording_read(const char *folder, struct calls_recording *ret, struct warnings *notes, struct error *err)
{
	struct dirent **names = NULL;
	int count = scandir(folder, &names, is_process_file, alphasort), result = 0;

	if (count < 0)
		return error_set(err, "%s: the folder cannot be read: %s", folder, strerror(errno));
	ret->processes = calloc((size_t)count + 1, sizeof *ret->processes);
	if (!ret->processes)
		result = error_set(err, "out of memory for %d recordings of calls", count);
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = read_process(folder, names[i]->d_name, &ret->processes[ret->count++], notes, err);
		free(names[i]);
	}
	free(names);
	return result;
}

int calls_recording_remove(const char *folder, struct error *err)
{
	struct dirent **names = NULL;
	int count = scandir(folder, &names, is_recording_file, alphasort), failed = 0;

	if (count < 0)
		return error_set(err, "%s: the folder cannot be read: %s", folder, strerror(errno));
	for (int i = 0; i < count; i++) {
		CLEANUP(free_cleanup) char *path = fs_join(folder, names[i]->d_name);

		if (!path || unlink(path) < 0)
			failed = errno;
		free(names[i]);
	}
	free(names);
	return failed ? error_set(err, "%s: the recordings of calls cannot be removed: %s", folder, strerror(failed))
		      : 0;
}
