#include "symbol/jit_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define MAP_MAX ((size_t)256 << 20) /* of a longer one the last part counts */
#define NAME_MAX_BYTES 4096u

/* Addresses that still have no name: of each, the next such one at or after it. Found by halving paths, so that a map
 * whose entries all cover everything costs no more than its length. */
static size_t next_open(size_t *next, size_t at)
{
	while (next[at] != at) {
		next[at] = next[next[at]];
		at = next[at];
	}
	return at;
}

static bool hexadecimal(const char **at, const char *end, uint64_t *ret)
{
	const char *c = *at;
	uint64_t value = 0;
	int digits = 0;

	if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (; c < end && digits <= 16; c++, digits++) {
		unsigned char d = (unsigned char)*c;

		if (d >= '0' && d <= '9')
			value = value << 4 | (uint64_t)(d - '0');
		else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
			value = value << 4 | (uint64_t)((d | 0x20) - 'a' + 10);
		else
			break;
	}
	if (digits == 0 || digits > 16 || c == end || *c != ' ')
		return false;
	*at = c + 1;
	*ret = value;
	return true;
}

static size_t first_at_or_after(const uint64_t *addresses, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct parsing {
	const uint64_t *addresses;
	size_t count, *next;
	const struct symbols_sink *sink;
	uint32_t functions;
};

/* "START SIZE name" */
static int take_line(struct parsing *p, const char *line, const char *end)
{
	char name[NAME_MAX_BYTES];
	uint64_t start, size;
	size_t at, length;
	bool told = false;

	if (!hexadecimal(&line, end, &start) || !hexadecimal(&line, end, &size) || line == end)
		return 0;
	length = (size_t)(end - line) < sizeof name ? (size_t)(end - line) : sizeof name - 1;
	for (at = next_open(p->next, first_at_or_after(p->addresses, p->count, start));
	     at < p->count && p->addresses[at] - start < size; at = next_open(p->next, at)) {
		struct symbols_frame frame = {.function = p->functions};

		if (!told) {
			memcpy(name, line, length);
			name[length] = '\0';
			if (p->sink->function(p->sink->context, true, name, NULL, 0) < 0)
				return -1;
			told = true;
		}
		if (p->sink->frames(p->sink->context, at, &frame, 1) < 0)
			return -1;
		p->next[at] = at + 1;
	}
	p->functions += told;
	return 0;
}

int jit_map_parse(const char *text, size_t length, const uint64_t *addresses, size_t count,
		  const struct symbols_sink *sink, struct error *err)
{
	struct parsing p = {.addresses = addresses, .count = count, .sink = sink};
	const char *end = text + length;
	int result = 0;

	p.next = calloc(count + 1, sizeof *p.next);
	if (!p.next)
		return error_set(err, "out of memory for %zu addresses", count);
	for (size_t i = 0; i <= count; i++)
		p.next[i] = i;
	/* From the end: where memory was used again, the last entry tells what stood there at last. What follows the
	 * last newline was being written when the program ended. */
	while (end > text && end[-1] != '\n')
		end--;
	while (end > text && result == 0) {
		const char *line = --end;

		while (line > text && line[-1] != '\n')
			line--;
		result = take_line(&p, line, end);
		end = line;
	}
	free(p.next);
	return result < 0 ? error_set(err, "stopped") : 0;
}

/* Of a longer file the end; the line that it begins in is blotted out, since half a number is another number. */
static int read_end(int fd, off_t size, struct buf *ret)
{
	off_t from = size > (off_t)MAP_MAX ? size - (off_t)MAP_MAX : 0;
	bool cut = from > 0;
	char *room = buf_reserve(ret, (size_t)(size - from));

	while (room && from < size) {
		ssize_t got = pread(fd, room + ret->length, (size_t)(size - from), from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		ret->length += (size_t)got;
		from += got;
	}
	for (size_t i = 0; cut && i < ret->length && ret->text[i] != '\n'; i++)
		ret->text[i] = '?';
	return room ? 0 : -1;
}

static int open_map(const char *folder, int pid, off_t *ret_size, struct error *why)
{
	CLEANUP(free_cleanup) char *path = NULL;
	struct stat st;
	int fd;

	if (asprintf(&path, "%s/perf-%d.map", folder, pid) < 0) {
		path = NULL;
		return error_set(why, "out of memory");
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? error_set(why, "its runtime wrote no %s (node --perf-basic-prof, "
							"java -XX:+DumpPerfMapAtExit and others write one)", path)
				       : error_set(why, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		close(fd);
		return error_set(why, "%s is no regular file of this user", path);
	}
	*ret_size = st.st_size;
	return fd;
}

int jit_map_resolve(const char *folder, int pid, const uint64_t *addresses, size_t count,
		    const struct symbols_sink *sink, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = -1;
	CLEANUP(buf_release) struct buf text;
	struct error why;
	char note[64];
	off_t size = 0;

	buf_init(&text);
	fd = open_map(folder, pid, &size, &why);
	if (fd < 0)
		return sink->note(sink->context, true, why.text) < 0 ? error_set(err, "stopped") : 0;
	if (size && read_end(fd, size, &text) < 0)
		return error_set(err, "out of memory for perf-%d.map", pid);
	if (jit_map_parse(text.text, text.length, addresses, count, sink, err) < 0)
		return -1;
	snprintf(note, sizeof note, "Names are from perf-%d.map.", pid);
	return sink->note(sink->context, false, note) < 0 ? error_set(err, "stopped") : 0;
}
