#include "record/markers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

#define LINE_MAX_BYTES 4096
#define DAY_NS (86400 * NS_PER_S)
#define REPLACED_AT_ONCE 4 /* how often one call follows a file that is replaced again and again */

/* A mark cannot lie after the moment it was seen. */
static enum marker_time judge_time(int64_t *t, int64_t seen, int64_t wall_offset)
{
	int64_t wall = seen + wall_offset;

	if (*t <= seen)
		return MARKER_NAMED;
	if (wall_offset && *t >= wall - DAY_NS && *t <= wall + DAY_NS) {
		*t -= wall_offset;
		if (*t > seen)
			*t = seen;
		return MARKER_WALL;
	}
	*t = seen;
	return MARKER_FUTURE;
}

bool marker_parse(const char *line, size_t length, int64_t seen, int64_t wall_offset, int64_t *ret_t,
		  const char **ret_name, size_t *ret_length, enum marker_time *ret_from)
{
	size_t digits = 0;

	while (length && isspace((unsigned char)line[length - 1]))
		length--;
	while (length && isspace((unsigned char)*line)) {
		line++;
		length--;
	}
	if (!length)
		return false;
	*ret_t = seen;
	*ret_from = MARKER_SEEN;
	while (digits < length && isdigit((unsigned char)line[digits]))
		digits++;
	/* A number alone is a name; a number before a name is its time. */
	if (digits && digits < 20 && digits < length && (line[digits] == ' ' || line[digits] == '\t')) {
		char number[20];

		memcpy(number, line, digits);
		number[digits] = '\0';
		if (parse_i64(number, ret_t)) {
			*ret_from = judge_time(ret_t, seen, wall_offset);
			line += digits;
			length -= digits;
			while (isspace((unsigned char)*line)) {
				line++;
				length--;
			}
		}
	}
	*ret_name = line;
	*ret_length = length;
	return true;
}

/* What stands at the path, if that is a file: a pipe would wait for its writer. -1 where it is not. */
static int open_file(const char *path, int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

/* Of the file that is open, whatever its name is by now. */
static void watch_file(struct markers_watch *m)
{
	char name[40];

	if (m->notify < 0)
		return;
	if (m->file_watch >= 0)
		inotify_rm_watch(m->notify, m->file_watch);
	snprintf(name, sizeof name, "/proc/self/fd/%d", m->fd);
	m->file_watch = inotify_add_watch(m->notify, name, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
	if (m->file_watch < 0) /* without /proc */
		m->file_watch = inotify_add_watch(m->notify, m->path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF);
}

/* Where the folder cannot be watched, a file that takes this one's place is found at the end. */
static void watch_folder(struct markers_watch *m)
{
	const char *slash = strrchr(m->path, '/');
	CLEANUP(free_cleanup) char *folder = slash ? strndup(m->path, (size_t)(slash - m->path) + 1) : strdup(".");

	if (folder)
		inotify_add_watch(m->notify, folder, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

int markers_open(struct markers_watch *m, const char *path,
		 marker_handler *each, void *context, struct error *err)
{
	*m = (struct markers_watch){
		.path = path,
		.notify = -1,
		.file_watch = -1,
		.each = each,
		.context = context,
	};
	buf_init(&m->partial);
	m->fd = open_file(path, O_CREAT);
	if (m->fd < 0)
		return error_set(err, "%s: %s", path, errno == EINVAL ? "not a regular file" : strerror(errno));
	m->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (m->notify >= 0)
		watch_folder(m);
	watch_file(m);
	/* Not later: the caller polls it. */
	if (m->notify >= 0 && m->file_watch < 0) {
		close(m->notify);
		m->notify = -1;
	}
	return 0;
}

static void take_line(struct markers_watch *m, int64_t now)
{
	const char *line = m->partial.text, *name;
	size_t length;
	int64_t t;
	enum marker_time from;

	if (marker_parse(line, m->partial.length, now, m->wall_offset, &t, &name, &length, &from)) {
		/* It may have been written after the caller looked at the clock. */
		if (from == MARKER_FUTURE)
			marker_parse(line, m->partial.length, clock_mono_ns(), m->wall_offset, &t, &name, &length,
				     &from);
		if (from == MARKER_FUTURE)
			t = now;
		m->future += from == MARKER_FUTURE;
		m->wall_clock += from == MARKER_WALL;
		m->each(m->context, t, from == MARKER_NAMED || from == MARKER_WALL, name, length, m->offset);
	}
	buf_clear(&m->partial);
}

static void keep_tail(struct markers_watch *m, const char *bytes, size_t length)
{
	size_t kept = m->tail_length;

	if (length > MARKERS_TAIL) {
		bytes += length - MARKERS_TAIL;
		length = MARKERS_TAIL;
	}
	if (kept > MARKERS_TAIL - length)
		kept = MARKERS_TAIL - length;
	memmove(m->tail, m->tail + m->tail_length - kept, kept);
	memcpy(m->tail + kept, bytes, length);
	m->tail_length = kept + length;
}

static void take_bytes(struct markers_watch *m, const char *bytes, size_t length, int64_t now)
{
	keep_tail(m, bytes, length);
	for (size_t i = 0; i < length; i++) {
		m->offset++;
		if (bytes[i] == '\n') {
			take_line(m, now);
		} else if (m->partial.length < LINE_MAX_BYTES) {
			buf_putc(&m->partial, bytes[i]);
			m->cut += m->partial.length == LINE_MAX_BYTES;
		}
	}
}

/* From the file's start again. What was read of a line without end is a mark that was written over. */
static void start_again(struct markers_watch *m, int64_t now)
{
	if (m->partial.length)
		take_line(m, now);
	m->offset = 0;
	m->tail_length = 0;
}

/* Reads to `bytes` from where the tail begins. Returns how much of that is new, or -1 where the tail is another one. */
static ssize_t read_behind_tail(struct markers_watch *m, int fd, char *bytes, size_t size)
{
	ssize_t got;

	do
		got = pread(fd, bytes, size, (off_t)(m->offset - m->tail_length));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return 0;
	if ((size_t)got < m->tail_length || memcmp(bytes, m->tail, m->tail_length) != 0)
		return -1;
	return got - (ssize_t)m->tail_length;
}

/* Returns whether there was anything. */
static bool take_new(struct markers_watch *m, int64_t now)
{
	bool any = false;
	char bytes[8192];
	ssize_t got;

	while ((got = read_behind_tail(m, m->fd, bytes, sizeof bytes)) != 0) {
		any = true;
		if (got > 0) {
			take_bytes(m, bytes + m->tail_length, (size_t)got, now);
		} else {
			m->truncated = true;
			start_again(m, now);
		}
	}
	return any;
}

/* Empties the queue. Returns whether somebody wrote to the file. */
static bool take_events(struct markers_watch *m)
{
	_Alignas(struct inotify_event) char events[4096];
	bool written = false;
	ssize_t got;

	while (m->notify >= 0 && (got = read(m->notify, events, sizeof events)) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const struct inotify_event *)(events + at);

			written |= event->wd == m->file_watch && (event->mask & IN_MODIFY);
			at += (ssize_t)(sizeof *event + event->len);
		}
	}
	return written;
}

/* Goes over to the file that stands at the path now, if that is another one than is open. What is left in the old one
 * is taken first. A copy that goes on as the old one did (sed -i, cp and mv) is not read twice. */
static bool follow(struct markers_watch *m, int64_t now)
{
	char bytes[MARKERS_TAIL];
	struct stat here, there;
	int fd;

	if (fstat(m->fd, &here) < 0 || stat(m->path, &there) < 0)
		return false;
	if (here.st_ino == there.st_ino && here.st_dev == there.st_dev)
		return false;
	m->replaced = true;
	fd = S_ISREG(there.st_mode) ? open_file(m->path, 0) : -1;
	if (fd < 0)
		return false;
	take_new(m, now);
	close(m->fd);
	m->fd = fd;
	if (read_behind_tail(m, fd, bytes, m->tail_length) < 0)
		start_again(m, now);
	watch_file(m);
	return true;
}

/* The same bytes once more, written with >: only the time of the file tells. A write that is going on has perhaps set
 * that already, and shows its bytes later; a change of mode, even to what it is, has to wait for such a write. */
static bool written_over_alike(struct markers_watch *m, const struct stat *st)
{
	char bytes[MARKERS_TAIL + 1];

	if (m->offset == 0 || (uint64_t)st->st_size != m->offset)
		return false;
	if (st->st_mtim.tv_sec == m->modified.tv_sec && st->st_mtim.tv_nsec == m->modified.tv_nsec)
		return false;
	if (fchmod(m->fd, st->st_mode & 07777) < 0)
		return false;
	return read_behind_tail(m, m->fd, bytes, sizeof bytes) == 0;
}

void markers_read(struct markers_watch *m, int64_t now)
{
	struct stat st;
	bool written;

	if (m->fd < 0)
		return;
	written = take_events(m);
	m->wall_offset = clock_wall_offset_ns();
	written &= !take_new(m, now);
	for (int i = 0; i < REPLACED_AT_ONCE && follow(m, now); i++) {
		take_new(m, now);
		written = false;
	}
	if (fstat(m->fd, &st) < 0)
		return;
	if (written && written_over_alike(m, &st)) {
		m->truncated = true;
		start_again(m, now);
		take_new(m, now);
	}
	m->modified = st.st_mtim;
}

void markers_close(struct markers_watch *m, int64_t now)
{
	if (m->fd < 0)
		return;
	markers_read(m, now);
	if (m->partial.length)
		take_line(m, now);
	close(m->fd);
	if (m->notify >= 0)
		close(m->notify);
	m->fd = m->notify = -1;
	buf_release(&m->partial);
}
