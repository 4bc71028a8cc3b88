#include "record/ring_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "record/ring_folder.h"
#include "record/rings.h"

#define BUCKETS 16384 /* a power of two */
#define LIST_EVERY_NS NS_PER_S

struct file {
	struct file *next;  /* of its bucket */
	struct file *later; /* of those that wait */
	int64_t due;
	bool told;
	char path[];
};

struct ring_finder {
	char *folder;
	int fd;
	int notify; /* inotify; -1: the folder is listed */
	struct file *buckets[BUCKETS];
	struct line {
		struct file *first, **last;
	} fresh, late; /* that wait */
	uint64_t seed; /* so that nobody can aim at one bucket */
	size_t count;
	bool missed; /* some files were not kept: the folder must be listed again */
	int64_t listed_at;
	size_t unread;
};

int ring_finder_new(const char *place, const char *folder, struct ring_finder **ret, struct error *err)
{
	struct ring_finder *f = calloc(1, sizeof *f);

	if (!f)
		return error_set(err, "out of memory for the files of samples");
	f->fresh.last = &f->fresh.first;
	f->late.last = &f->late.first;
	f->seed = (uint64_t)clock_mono_ns() ^ (uintptr_t)f;
	f->notify = -1;
	f->folder = strdup(folder);
	f->fd = ring_folder_open(place);
	if (!f->folder || f->fd < 0) {
		error_set(err, "%s: %s", folder, f->folder ? strerror(-f->fd) : "out of memory");
		ring_finder_free(f);
		return -1;
	}
	f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->notify >= 0 && inotify_add_watch(f->notify, folder, IN_MOVED_TO | IN_CREATE) < 0) {
		close(f->notify);
		f->notify = -1;
	}
	*ret = f;
	return 0;
}

void ring_finder_free(struct ring_finder *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (f->buckets[i]) {
			struct file *file = f->buckets[i];

			f->buckets[i] = file->next;
			free(file);
		}
	}
	fd_cleanup(&f->notify);
	fd_cleanup(&f->fd);
	free(f->folder);
	free(f);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The place of the file of that name, or where it would be put. */
static struct file **find(struct ring_finder *f, const char *name)
{
	uint64_t hash = f->seed;
	struct file **at;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	at = &f->buckets[(hash ^ hash >> 32) & (BUCKETS - 1)];
	while (*at && strcmp(name_of((*at)->path), name) != 0)
		at = &(*at)->next;
	return at;
}

static void wait_in(struct line *line, struct file *file, int64_t due)
{
	file->due = due;
	file->later = NULL;
	*line->last = file;
	line->last = &file->later;
}

/* False when no more can be kept. */
static bool note(void *context, const char *name)
{
	struct ring_finder *f = context;
	struct file **at = find(f, name), *file;
	size_t size = strlen(f->folder) + strlen(name) + 2;

	if (*at)
		return true;
	file = f->count < RING_FILES_MAX ? malloc(sizeof *file + size) : NULL;
	if (!file) {
		f->missed = true;
		return false;
	}
	*file = (struct file){0};
	snprintf(file->path, size, "%s/%s", f->folder, name);
	*at = file;
	f->count++;
	wait_in(&f->fresh, file, 0);
	return true;
}

void ring_finder_look(struct ring_finder *f, int64_t until)
{
	_Alignas(struct inotify_event) char events[16384];
	ssize_t got;

	while (f->notify >= 0 && clock_mono_ns() < until && (got = read(f->notify, events, sizeof events)) > 0) {
		for (char *at = events; at < events + got;) {
			const struct inotify_event *e = (const struct inotify_event *)at;

			at += sizeof *e + e->len;
			f->missed |= (e->mask & IN_Q_OVERFLOW) != 0;
			/* Of very many most are gone again by the time that they are told of. */
			if (e->len && ring_is_name(e->name) &&
			    faccessat(f->fd, e->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				note(f, e->name);
		}
	}
	if (f->notify >= 0 && !(f->missed && f->count < RING_FILES_MAX / 2 &&
				clock_mono_ns() - f->listed_at >= LIST_EVERY_NS))
		return;
	f->missed = false;
	f->listed_at = clock_mono_ns();
	rings_each(f->fd, note, f);
}

const char *ring_finder_next(struct ring_finder *f, int64_t now)
{
	struct line *line = f->fresh.first ? &f->fresh : &f->late;
	struct file *file = line->first;

	if (!file || file->due > now)
		return NULL;
	line->first = file->later;
	if (!line->first)
		line->last = &line->first;
	file->told = true;
	return file->path;
}

void ring_finder_defer(struct ring_finder *f, const char *path, int64_t due)
{
	struct file *file = *find(f, name_of(path));

	if (file)
		wait_in(&f->late, file, due);
}

void ring_finder_discard(struct ring_finder *f, const char *path)
{
	struct file **at = find(f, name_of(path)), *file = *at;

	if (!file)
		return;
	unlinkat(f->fd, name_of(path), 0);
	*at = file->next;
	f->count--;
	free(file);
}

static bool count_unread(void *context, const char *name)
{
	struct ring_finder *f = context;
	const struct file *file = *find(f, name);
	struct stat st;

	f->unread += (!file || !file->told) && fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     S_ISREG(st.st_mode);
	return true;
}

size_t ring_finder_unread(struct ring_finder *f)
{
	f->unread = 0;
	rings_each(f->fd, count_unread, f);
	return f->unread;
}
