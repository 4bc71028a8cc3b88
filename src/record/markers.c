#include "record/markers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

#define LINE_MAX_BYTES 4096

bool marker_parse(const char *line, size_t length, int64_t seen, int64_t *ret_t, const char **ret_name,
		  size_t *ret_length, bool *ret_has_time)
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
	*ret_has_time = false;
	while (digits < length && isdigit((unsigned char)line[digits]))
		digits++;
	/* A number alone is a name; a number before a name is its time. */
	if (digits && digits < 20 && digits < length && (line[digits] == ' ' || line[digits] == '\t')) {
		char number[20];

		memcpy(number, line, digits);
		number[digits] = '\0';
		if (parse_i64(number, ret_t)) {
			*ret_has_time = true;
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

int markers_open(struct markers_watch *m, const char *path,
		 marker_handler *each, void *context, struct error *err)
{
	*m = (struct markers_watch){.path = path, .notify = -1, .each = each, .context = context};
	buf_init(&m->partial);
	m->fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
	if (m->fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	m->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (m->notify >= 0 && inotify_add_watch(m->notify, path, IN_MODIFY) < 0) {
		close(m->notify);
		m->notify = -1;
	}
	return 0;
}

static void take_line(struct markers_watch *m, int64_t now)
{
	const char *name;
	size_t length;
	int64_t t;
	bool has_time;

	if (marker_parse(m->partial.text, m->partial.length, now, &t, &name, &length, &has_time))
		m->each(m->context, t, has_time, name, length, m->offset);
	buf_clear(&m->partial);
}

static void take_bytes(struct markers_watch *m, const char *bytes, size_t length, int64_t now)
{
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

void markers_read(struct markers_watch *m, int64_t now)
{
	char bytes[8192];
	struct stat st;

	if (m->fd < 0)
		return;
	while (m->notify >= 0 && read(m->notify, bytes, sizeof bytes) > 0)
		;
	if (fstat(m->fd, &st) == 0 && (uint64_t)st.st_size < m->offset) {
		m->truncated = true;
		m->offset = 0;
		buf_clear(&m->partial);
	}
	for (;;) {
		ssize_t got = pread(m->fd, bytes, sizeof bytes, (off_t)m->offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		take_bytes(m, bytes, (size_t)got, now);
	}
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
