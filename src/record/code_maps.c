#include "record/code_maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/procfs.h"

#define TEXT_BYTES_MAX ((size_t)8 << 20)
#define MAPS_MAX 65536u

void code_maps_init(struct code_maps *m)
{
	*m = (struct code_maps){0};
}

void code_maps_release(struct code_maps *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->items[i].path);
	free(m->items);
	code_maps_init(m);
}

static int add(struct code_maps *m, const struct code_map *map, const char *path)
{
	if (m->count == m->room) {
		size_t room = m->room ? 2 * m->room : 32;
		struct code_map *items = reallocarray(m->items, room, sizeof *items);

		if (!items)
			return -1;
		m->items = items;
		m->room = room;
	}
	m->items[m->count] = *map;
	m->items[m->count].path = strdup(path);
	if (!m->items[m->count].path)
		return -1;
	m->count++;
	return 0;
}

/* "START-END PERMS OFFSET DEVICE INODE   PATH"; a line of another form is passed over. */
static int parse_line(struct code_maps *m, char *line)
{
	struct code_map map = {0};
	char permissions[5];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n", &map.start, &map.end,
		   permissions, &map.offset, &map.inode, &path) < 5 ||
	    !path || permissions[2] != 'x' || map.start >= map.end)
		return 0;
	return add(m, &map, line + path);
}

int code_maps_parse(struct code_maps *m, char *text)
{
	char *save;

	code_maps_release(m);
	for (char *line = strtok_r(text, "\n", &save); line && m->count < MAPS_MAX; line = strtok_r(NULL, "\n", &save))
		if (parse_line(m, line) < 0)
			return -1;
	return 0;
}

static int read_text(int pid, struct buf *text)
{
	CLEANUP(fd_cleanup) int fd = procfs_open("%d/maps", pid);

	if (fd < 0)
		return -1;
	while (text->length < TEXT_BYTES_MAX) {
		char *to = buf_reserve(text, 65536);
		ssize_t got = to ? read(fd, to, 65536) : -1;

		if (got < 0)
			return -1;
		if (got == 0)
			break;
		text->length += (size_t)got;
	}
	text->text[text->length] = '\0';
	return 0;
}

int code_maps_read(struct code_maps *m, int pid)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	code_maps_release(m);
	return read_text(pid, &text) < 0 ? -1 : code_maps_parse(m, text.text);
}

int code_maps_read_of(struct code_maps *m, int pid, const char *name)
{
	CLEANUP(buf_release) struct buf text;
	const char *at;
	size_t length = strlen(name);

	buf_init(&text);
	code_maps_release(m);
	if (read_text(pid, &text) < 0)
		return -1;
	/* A line may go on with " (deleted)". */
	for (at = strstr(text.text, name); at; at = strstr(at + 1, name))
		if (at > text.text && at[-1] == '/' && (at[length] == '\n' || at[length] == ' '))
			return code_maps_parse(m, text.text);
	return -1;
}

struct code_map *code_maps_find(const struct code_maps *m, uint64_t address)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct code_map *map = &m->items[middle];

		if (address >= map->start && address < map->end)
			return map;
		if (map->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
