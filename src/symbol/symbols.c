#include "symbol/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/plugin.h"
#include "base/utf8.h"
#include "symbol/fenced.h"
#include "symbol/jit_map.h"
#include "symbol/kernel_names.h"
#include "symbol/symbols_plugin.h"
#include "symbol/vdso.h"

#define NAME_COLUMNS 65536u
#define EACH_BYTE UINT64_C(0x0101010101010101)

/* One module being resolved; the sink of what is found. */
struct receiving {
	struct profile *p;
	uint32_t module;
	const uint32_t *locations; /* of it, by address */
	const uint64_t *addresses;
	size_t count;
	uint32_t *functions; /* the sink's numbers as the profile's */
	size_t function_count, function_room;
	struct buf note;
	bool refused;
	struct error *err;
};

static const struct symbols_plugin *load_plugin(char *version, size_t size, struct error *err)
{
	const struct symbols_plugin *plugin =
		plugin_table(SYMBOLS_PLUGIN_FILE, SYMBOLS_PLUGIN_SYMBOL, SYMBOLS_PLUGIN_VERSION, err);

	return !plugin || plugin->start(version, size, err) < 0 ? NULL : plugin;
}

/* Printable ASCII of fewer than NAME_COLUMNS characters. Looks at eight bytes at a time: names are many and long. */
static bool is_plain(const char *text)
{
	size_t length = strlen(text), at = 0;

	for (; length - at >= 8; at += 8) {
		uint64_t eight;

		memcpy(&eight, text + at, sizeof eight);
		/* The top bit of a byte: it has it; it is 0x7f; it is below 0x20. */
		if ((eight | (eight + EACH_BYTE) | (eight - 0x20 * EACH_BYTE)) & 0x80 * EACH_BYTE)
			return false;
	}
	for (; at < length; at++)
		if (text[at] < 0x20 || text[at] >= 0x7f)
			return false;
	return length < NAME_COLUMNS;
}

/* A text that may be shown: itself where it is plain, else made in *room; NULL when out of memory. */
static const char *cleaned(const char *text, struct buf *room)
{
	if (is_plain(text))
		return text;
	utf8_append_line(room, text, NAME_COLUMNS);
	return room->failed ? NULL : room->text;
}

static int take_function(void *context, bool known, const char *name, const char *file, uint32_t line)
{
	struct receiving *r = context;
	CLEANUP(buf_release) struct buf clean_name, clean_file;
	const char *shown_name, *shown_file;

	buf_init(&clean_name), buf_init(&clean_file);
	if (r->function_count == r->function_room) {
		size_t room = r->function_room ? 2 * r->function_room : 256;
		uint32_t *functions = reallocarray(r->functions, room, sizeof *functions);

		if (!functions)
			return error_set(r->err, "out of memory for %zu functions", room);
		r->functions = functions;
		r->function_room = room;
	}
	shown_name = cleaned(name, &clean_name);
	shown_file = file ? cleaned(file, &clean_file) : NULL;
	if (!shown_name || (file && !shown_file))
		return error_set(r->err, "out of memory for a name");
	if (profile_add_function(r->p, r->module, known, shown_name, shown_file, line,
				 &r->functions[r->function_count], r->err) < 0)
		return -1;
	r->function_count++;
	return 0;
}

static int take_frames(void *context, size_t at, const struct symbols_frame *frames, size_t count)
{
	struct receiving *r = context;
	struct profile_frame taken[256];

	/* A first try that broke off may have given it already. */
	if (at >= r->count || r->p->locations[r->locations[at]].count || count > sizeof taken / sizeof *taken)
		return 0;
	for (size_t i = 0; i < count; i++)
		taken[i] = (struct profile_frame){r->functions[frames[i].function], frames[i].line};
	return profile_set_frames(r->p, r->locations[at], taken, count, r->err);
}

static int take_note(void *context, bool refused, const char *text)
{
	struct receiving *r = context;

	buf_clear(&r->note);
	r->refused = refused;
	if (refused)
		buf_puts(&r->note, "No names: ");
	utf8_append_line(&r->note, text, NAME_COLUMNS);
	if (refused)
		buf_putc(&r->note, '.');
	return r->note.failed ? error_set(r->err, "out of memory for a note") : 0;
}

/* Where the code lies, for what has no name: "MODULE!?". */
static int put_places(struct receiving *r)
{
	CLEANUP(free_cleanup) char *name = NULL;
	struct profile_frame frame = {0};
	bool told = false;

	if (asprintf(&name, "%s!?", r->p->modules[r->module].name) < 0) {
		name = NULL;
		return error_set(r->err, "out of memory for a name");
	}
	for (size_t i = 0; i < r->count; i++) {
		if (r->p->locations[r->locations[i]].count)
			continue;
		if (!told && profile_add_function(r->p, r->module, false, name, NULL, 0, &frame.function, r->err) < 0)
			return -1;
		told = true;
		if (profile_set_frames(r->p, r->locations[i], &frame, 1, r->err) < 0)
			return -1;
	}
	return 0;
}

static int put_note(struct receiving *r)
{
	struct profile_module *m = &r->p->modules[r->module];
	char *note;

	if (!r->note.length)
		return 0;
	note = strdup(r->note.text);
	if (!note)
		return error_set(r->err, "out of memory for a note");
	free(m->note);
	m->note = note;
	return 0;
}

struct resolving {
	struct profile *p;
	const struct symbols_plugin *plugin;
	const struct symbols_options *options;
	struct warnings *warnings;
	size_t hurried; /* modules that were left out */
	struct error *err;
};

static bool in_a_hurry(const struct resolving *s)
{
	return s->options->hurry && *s->options->hurry;
}

/* Through the plug-in; where this breaks on a file's debug information, once more without. */
static int resolve_elf(struct resolving *s, struct receiving *r, int fd)
{
	const struct profile_module *m = &s->p->modules[r->module];
	const struct symbols_sink sink = {r, take_function, take_frames, take_note, NULL, NULL};
	struct symbols_request request = {
		.fd = fd,
		.path = m->path,
		.name = m->name,
		.build_id = m->build_id,
		.build_id_length = m->build_id_length,
		.device = m->device,
		.inode = m->inode,
		.size = m->size,
		.mtime_ns = m->mtime_ns,
		.debug_folder = s->options->debug_folder ? s->options->debug_folder : "/usr/lib/debug",
		.no_inlines = s->options->no_inlines,
		.addresses = r->addresses,
		.count = r->count,
	};
	enum fenced got = FENCED_BROKE;
	struct error why;

	for (int attempt = 0; attempt < 2 && got == FENCED_BROKE; attempt++) {
		request.no_dwarf = s->options->no_dwarf || attempt > 0;
		r->function_count = 0;
		got = fenced_resolve(s->plugin, &request, &sink, s->options->hurry, &why);
		if (got == FENCED_BROKE)
			warnings_add(s->warnings, "%s: %s; %s.", m->path, why.text,
				     attempt ? "its code has no names" : "its debug information was not used");
	}
	if (got == FENCED_STOPPED)
		s->hurried++;
	if (got == FENCED_BROKE)
		return take_note(r, true, why.text);
	return got == FENCED_FAILED ? error_set(s->err, "%s", why.text) : 0;
}

static int resolve_vdso(struct resolving *s, struct receiving *r)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct error why;

	if (s->p->modules[r->module].build_id_length == 0)
		return take_note(r, true, "its build-id was not recorded");
	fd = vdso_open(&why);
	return fd < 0 ? take_note(r, true, why.text) : resolve_elf(s, r, fd);
}

static int resolve_file(struct resolving *s, struct receiving *r)
{
	const struct profile_module *m = &s->p->modules[r->module];
	int fd = s->options->module_fd ? s->options->module_fd(s->options->context, r->module) : -1;

	if (resolve_elf(s, r, fd) < 0)
		return -1;
	if (r->refused)
		warnings_add(s->warnings, "%s: %s", m->path, r->note.text);
	return 0;
}

/* The map lies in the /tmp of the program, which may have its own; once it has ended only ours can be looked at. */
static int resolve_jit(struct resolving *s, struct receiving *r)
{
	const struct symbols_sink sink = {r, take_function, take_frames, take_note, NULL, NULL};
	const char *folder = s->options->map_folder ? s->options->map_folder : "/tmp";

	return jit_map_resolve(folder, s->p->images[s->p->modules[r->module].image].pid, r->addresses, r->count, &sink,
			       s->err);
}

static int resolve_module(struct resolving *s, struct receiving *r)
{
	const struct symbols_sink sink = {r, take_function, take_frames, take_note, NULL, NULL};
	enum profile_module_kind kind = s->p->modules[r->module].kind;

	if (in_a_hurry(s)) {
		s->hurried++;
		return 0;
	}
	if (kind == PROFILE_ANON)
		return resolve_jit(s, r);
	if (kind == PROFILE_KERNEL)
		return kernel_names_resolve(r->addresses, r->count, &sink, s->err);
	if (kind == PROFILE_UNKNOWN || !s->plugin)
		return 0;
	return kind == PROFILE_VDSO ? resolve_vdso(s, r) : resolve_file(s, r);
}

static int by_module(const void *a, const void *b, void *context)
{
	const struct profile_location *locations = context;
	const struct profile_location *x = &locations[*(const uint32_t *)a], *y = &locations[*(const uint32_t *)b];

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Modules one after the other, each with its addresses in order. */
static int resolve_sorted(struct resolving *s, uint32_t *locations, uint64_t *addresses, size_t count)
{
	int result = 0;

	qsort_r(locations, count, sizeof *locations, by_module, s->p->locations);
	for (size_t i = 0; i < count; i++)
		addresses[i] = s->p->locations[locations[i]].address;
	for (size_t from = 0, to; from < count && result == 0; from = to) {
		struct receiving r = {.p = s->p, .err = s->err};

		r.module = s->p->locations[locations[from]].module;
		for (to = from; to < count && s->p->locations[locations[to]].module == r.module; to++)
			;
		r.locations = locations + from;
		r.addresses = addresses + from;
		r.count = to - from;
		buf_init(&r.note);
		result = resolve_module(s, &r);
		if (result == 0)
			result = put_places(&r);
		if (result == 0)
			result = put_note(&r);
		buf_release(&r.note);
		free(r.functions);
	}
	return result;
}

int symbols_resolve(struct profile *p, const struct symbols_options *options, struct warnings *warnings,
		    struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *locations = calloc(p->location_count + 1, sizeof *locations);
	CLEANUP(free_cleanup) uint64_t *addresses = calloc(p->location_count + 1, sizeof *addresses);
	struct resolving s = {.p = p, .options = options, .warnings = warnings, .err = err};
	struct error why = {""};
	char version[64];
	size_t count = 0;

	if (!locations || !addresses)
		return error_set(err, "out of memory for %zu addresses", p->location_count);
	for (uint32_t i = 0; i < p->location_count; i++)
		if (!p->locations[i].count)
			locations[count++] = i;
	s.plugin = load_plugin(version, sizeof version, &why);
	if (resolve_sorted(&s, locations, addresses, count) < 0)
		return -1;
	if (s.hurried)
		warnings_add(warnings, "Interrupted: the code of %zu files was given no names.", s.hurried);
	return s.plugin ? 0 : error_set(err, "no names of functions: %s", why.text);
}

int symbols_available(char *version, unsigned long size, struct error *err)
{
	return load_plugin(version, size, err) ? 0 : -1;
}

char *symbols_demangle(const char *name)
{
	char version[64];
	const struct symbols_plugin *plugin = load_plugin(version, sizeof version, NULL);

	return plugin ? plugin->demangle(name) : NULL;
}
