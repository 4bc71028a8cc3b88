/* Which processes a folder holds. A table tells of a process; files of calls without a table are named in a note, since
 * nothing says what their numbers mean. */
#include "store/region_segments.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "store/region_log.h"

#define NONCE_DIGITS 16
#define NOTES_MAX 50
#define FILE_NUMBER_MAX 1000000 /* far above what threads a process may have at a time */

/* A file of a folder: of which process, and what. */
struct found {
	char *process;
	int64_t number; /* -1: the table */
};

struct listing {
	struct found *files;
	size_t count, room;
};

void region_job_init(struct region_job *j)
{
	*j = (struct region_job){0};
}

static void release_log(struct region_log *l)
{
	free(l->folder);
	free(l->name);
	free(l->host);
	free(l->command);
	free(l->offsets);
	free(l->pairs);
	free(l->files);
	free(l->damage);
	*l = (struct region_log){0};
}

void region_job_release(struct region_job *j)
{
	for (size_t i = 0; i < j->count; i++)
		release_log(&j->logs[i]);
	for (size_t i = 0; i < j->note_count; i++)
		free(j->notes[i]);
	free(j->logs);
	free(j->notes);
	region_job_init(j);
}

int region_job_note(struct region_job *j, struct error *err, const char *format, ...)
{
	char **notes;
	va_list args;
	int got;

	if (j->note_count == NOTES_MAX) {
		j->unnoted++;
		return 0;
	}
	notes = reallocarray(j->notes, j->note_count + 1, sizeof *notes);
	if (!notes)
		return error_set(err, "out of memory for a note");
	j->notes = notes;
	va_start(args, format);
	got = vasprintf(&notes[j->note_count], format, args);
	va_end(args);
	if (got < 0)
		return error_set(err, "out of memory for a note");
	j->note_count++;
	return 0;
}

static void listing_release(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->files[i].process);
	free(l->files);
	*l = (struct listing){0};
}

/* "regions-123-0123456789abcdef.table" or ".7": the length of the process' part, and *ret_number (-1: the table). 0
 * for any other name. */
static size_t understand(const char *name, int64_t *ret_number)
{
	const char *at = name + strlen(REGION_FILE_PREFIX), *dash;
	size_t length;
	int64_t number;

	if (strncmp(name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) != 0)
		return 0;
	dash = at + strspn(at, "0123456789");
	if (dash == at || *dash != '-' || strspn(dash + 1, "0123456789abcdef") != NONCE_DIGITS)
		return 0;
	length = (size_t)(dash + 1 + NONCE_DIGITS - name);
	if (strcmp(name + length, REGION_TABLE_SUFFIX) == 0)
		*ret_number = -1;
	else if (name[length] == '.' && parse_i64(name + length + 1, &number) && number >= 0 &&
		 number <= FILE_NUMBER_MAX)
		*ret_number = number;
	else
		return 0;
	return length;
}

static int list(struct listing *l, const char *name, struct error *err)
{
	int64_t number;
	size_t length = understand(name, &number);

	if (length == 0)
		return 0;
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct found *files = reallocarray(l->files, room, sizeof *files);

		if (!files)
			return error_set(err, "out of memory for %zu names of files", room);
		l->files = files;
		l->room = room;
	}
	l->files[l->count] = (struct found){strndup(name, length), number};
	if (!l->files[l->count].process)
		return error_set(err, "out of memory for the name of a file");
	l->count++;
	return 0;
}

static int by_process(const void *a, const void *b)
{
	const struct found *one = a, *other = b;
	int names = strcmp(one->process, other->process);

	return names ? names : (one->number > other->number) - (one->number < other->number);
}

static int list_folder(const char *folder, struct listing *l, struct error *err)
{
	DIR *open = opendir(folder);
	int failed = 0;

	if (!open)
		return error_set(err, "%s: %s", folder, strerror(errno));
	for (;;) {
		struct dirent *entry;

		errno = 0;
		entry = readdir(open);
		if (!entry && errno)
			failed = error_set(err, "%s: %s", folder, strerror(errno));
		if (!entry || failed < 0)
			break;
		failed = list(l, entry->d_name, err);
		if (failed < 0)
			break;
	}
	closedir(open);
	if (l->count)
		qsort(l->files, l->count, sizeof *l->files, by_process);
	return failed;
}

/* The files of one process, count of them, the table first where there is one. */
static int add_process(struct region_job *j, const char *folder, const struct found *files, size_t count,
		       struct error *err)
{
	struct region_log *l;
	struct error reason;

	if (files[0].number != -1)
		return region_job_note(j, err, "%s/%s.*: calls without their table, which cannot be read.", folder,
				       files[0].process);
	if ((j->count & (j->count - 1)) == 0) { /* their room is always a power of two */
		struct region_log *logs = reallocarray(j->logs, j->count ? 2 * j->count : 1, sizeof *logs);

		if (!logs)
			return error_set(err, "out of memory for %zu processes", j->count + 1);
		j->logs = logs;
	}
	l = &j->logs[j->count];
	*l = (struct region_log){.folder = strdup(folder), .name = strdup(files[0].process)};
	l->files = calloc(count, sizeof *l->files);
	if (!l->folder || !l->name || !l->files) {
		release_log(l);
		return error_set(err, "out of memory for %zu processes", j->count + 1);
	}
	for (size_t i = 1; i < count; i++)
		l->files[l->file_count++] = (uint32_t)files[i].number;
	if (region_log_read(l, &reason) < 0) {
		release_log(l);
		return region_job_note(j, err, "%s.", reason.text);
	}
	j->count++;
	return 0;
}

int region_job_add_folder(struct region_job *j, const char *folder, struct error *err)
{
	CLEANUP(listing_release) struct listing l = {0};

	if (list_folder(folder, &l, err) < 0)
		return -1;
	for (size_t i = 0, end; i < l.count; i = end) {
		for (end = i + 1; end < l.count && strcmp(l.files[end].process, l.files[i].process) == 0;)
			end++;
		if (add_process(j, folder, l.files + i, end - i, err) < 0)
			return -1;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct region_log *one = a, *other = b;

	return strcmp(one->name, other->name);
}

static int by_start(const void *a, const void *b)
{
	const struct region_log *one = a, *other = b;
	int64_t x = one->process.mono_ns, y = other->process.mono_ns;

	return x != y ? (x > y) - (x < y) : strcmp(one->name, other->name);
}

void region_job_finish(struct region_job *j)
{
	size_t kept = 0;

	if (j->count == 0)
		return;
	qsort(j->logs, j->count, sizeof *j->logs, by_name);
	for (size_t i = 0; i < j->count; i++) {
		/* A nonce is one process: a second file of the name is the same one, found by another path. */
		if (kept && strcmp(j->logs[kept - 1].name, j->logs[i].name) == 0)
			release_log(&j->logs[i]);
		else
			j->logs[kept++] = j->logs[i];
	}
	j->count = kept;
	qsort(j->logs, j->count, sizeof *j->logs, by_start);
}

char *region_log_table_path(const struct region_log *l)
{
	char *path;

	return asprintf(&path, "%s/%s" REGION_TABLE_SUFFIX, l->folder, l->name) < 0 ? NULL : path;
}

char *region_log_file_path(const struct region_log *l, uint32_t number)
{
	char *path;

	return asprintf(&path, "%s/%s.%u", l->folder, l->name, (unsigned)number) < 0 ? NULL : path;
}
