#include "symbol/kernel_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/procfs.h"

struct symbol {
	uint64_t address;
	size_t name; /* offset in the texts */
	bool code;
};

struct table {
	struct symbol *items;
	size_t count, room;
	struct buf texts;
};

static void table_release(struct table *t)
{
	free(t->items);
	buf_release(&t->texts);
}

/* "ffffffff81000000 T _text", of modules with "\t[name]" behind it. */
static int take_line(struct table *t, const char *line, struct error *err)
{
	char *end;
	uint64_t address = strtoull(line, &end, 16);
	size_t length;

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || address == 0)
		return 0;
	length = strcspn(end + 3, "\t\n");
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 65536;
		struct symbol *items = reallocarray(t->items, room, sizeof *items);

		if (!items)
			return error_set(err, "out of memory for %zu kernel symbols", room);
		t->items = items;
		t->room = room;
	}
	t->items[t->count++] = (struct symbol){address, t->texts.length, strchr("tTwW", end[1]) != NULL};
	buf_append(&t->texts, end + 3, length);
	buf_putc(&t->texts, '\0');
	return t->texts.failed ? error_set(err, "out of memory for names of the kernel") : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Of several names at one address the first in the table. */
static int tell(const struct table *t, const uint64_t *addresses, size_t count, const struct symbols_sink *sink)
{
	uint32_t functions = 0;
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		struct symbols_frame frame = {0};
		size_t before = at;

		while (at < t->count && t->items[at].address <= addresses[i])
			at++;
		/* Behind the last symbol anything may lie. */
		if (at == 0 || at == t->count)
			continue;
		if (at != before || functions == 0) {
			size_t first = at - 1;

			while (first && t->items[first - 1].address == t->items[first].address)
				first--;
			if (sink->function(sink->context, t->items[first].code,
					   t->items[first].code ? t->texts.text + t->items[first].name : "[kernel]!?",
					   NULL, 0) < 0)
				return -1;
			functions++;
		}
		frame.function = functions - 1;
		if (sink->frames(sink->context, i, &frame, 1) < 0)
			return -1;
	}
	return 0;
}

int kernel_names_resolve(const uint64_t *addresses, size_t count, const struct symbols_sink *sink, struct error *err)
{
	CLEANUP(table_release) struct table table = {0};
	int fd = procfs_open("kallsyms"), result = 0;
	FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[1024];

	buf_init(&table.texts);
	while (in && result == 0 && fgets(line, sizeof line, in))
		result = take_line(&table, line, err);
	if (in)
		fclose(in);
	else
		fd_cleanup(&fd);
	if (result < 0)
		return -1;
	if (table.count == 0)
		result = sink->note(sink->context, true,
				    "the kernel shows its addresses in /proc/kallsyms to root only");
	else {
		qsort(table.items, table.count, sizeof *table.items, by_address);
		result = tell(&table, addresses, count, sink);
		if (result == 0)
			result = sink->note(sink->context, false, "Names are from /proc/kallsyms.");
	}
	return result < 0 ? error_set(err, "stopped") : 0;
}
