/* The plug-in assay-elf.so: names of the code in one ELF file, put together from its symbols, its DWARF, its stubs and
 * its unwind entries. Called through symbols_plugin.h; knows no profile. */
#include "symbol/symbols_plugin.h"

#include <elfutils/version.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbol/elf_debug.h"
#include "symbol/elf_demangle.h"
#include "symbol/elf_dwarf.h"
#include "symbol/elf_file.h"
#include "symbol/elf_frames.h"
#include "symbol/elf_names.h"
#include "symbol/elf_plt.h"

#define FRAMES_MAX 256

/* What the sink has been told of, by what it was made from. */
struct told {
	const void *function; /* struct elf_dwarf_function, NULL: without DWARF */
	const char *symbol;   /* NULL: by DWARF alone, or a place */
	uint64_t place;	      /* start of an unwind entry, or PLT or NOWHERE */
	uint32_t id;
	bool used;
};

enum { PLT = 1, NOWHERE = 2 }; /* no unwind entry begins there */

struct resolving {
	const struct symbols_request *request;
	const struct symbols_sink *sink;
	struct error *err;
	struct elf_file module, debug, embedded;
	struct elf_names names;
	struct elf_frames frames;
	struct elf_plt *plt;
	struct elf_dwarf *dwarf;
	bool *done; /* of each address */
	struct told *told;
	size_t told_count, told_room;
	uint32_t functions;
};

static uint64_t hash_of(const struct told *t)
{
	uint64_t hash = (uintptr_t)t->function * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)t->symbol;

	hash = (hash ^ t->place) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 32;
}

static struct told *place_of(struct told *table, size_t room, const struct told *key)
{
	size_t at = hash_of(key) & (room - 1);

	while (table[at].used && (table[at].function != key->function || table[at].symbol != key->symbol ||
				  table[at].place != key->place))
		at = (at + 1) & (room - 1);
	return &table[at];
}

static int grow_told(struct resolving *r)
{
	size_t room = r->told_room ? 2 * r->told_room : 1024;
	struct told *table;

	if (2 * (r->told_count + 1) < r->told_room)
		return 0;
	table = calloc(room, sizeof *table);
	if (!table)
		return error_set(r->err, "out of memory for %zu functions", room);
	for (size_t i = 0; i < r->told_room; i++)
		if (r->told[i].used)
			*place_of(table, room, &r->told[i]) = r->told[i];
	free(r->told);
	r->told = table;
	r->told_room = room;
	return 0;
}

/* The name to show. Owned, NULL when out of memory. */
static char *name_of(const struct resolving *r, const struct told *t)
{
	const struct elf_dwarf_function *f = t->function;
	const char *module = r->request->name;
	CLEANUP(free_cleanup) char *symbol = NULL;
	char *text;
	int length;

	if (t->symbol || f) {
		text = elf_demangle_symbol(t->symbol ? t->symbol : f->name);
		if (!text || t->place != PLT)
			return text;
		symbol = text;
		length = asprintf(&text, "%s@plt", symbol);
	} else if (t->place == PLT) {
		length = asprintf(&text, "%s!?plt", module);
	} else if (t->place == NOWHERE) {
		length = asprintf(&text, "%s!?", module);
	} else {
		length = asprintf(&text, "%s!?+0x%" PRIx64, module, t->place);
	}
	return length < 0 ? NULL : text;
}

/* The sink's number of a function, which is told of it when it comes up first. */
static int number_of(struct resolving *r, const struct told *key, uint32_t *ret)
{
	const struct elf_dwarf_function *f = key->function;
	CLEANUP(free_cleanup) char *name = NULL;
	struct told *t;

	if (grow_told(r) < 0)
		return -1;
	t = place_of(r->told, r->told_room, key);
	if (!t->used) {
		name = name_of(r, key);
		if (!name)
			return error_set(r->err, "out of memory for a name");
		if (r->sink->function(r->sink->context, key->symbol || f, name, f ? f->file : NULL, f ? f->line : 0) <
		    0)
			return error_set(r->err, "stopped");
		*t = *key;
		t->used = true;
		t->id = r->functions++;
		r->told_count++;
	}
	*ret = t->id;
	return 0;
}

static int put_frames(struct resolving *r, size_t at, const struct symbols_frame *frames, size_t count)
{
	r->done[at] = true;
	return r->sink->frames(r->sink->context, at, frames, count) < 0 ? error_set(r->err, "stopped") : 0;
}

/* Without DWARF: the symbol, else the stub, else the unwind entry. */
static int put_symbol(struct resolving *r, size_t at)
{
	uint64_t address = r->request->addresses[at];
	const struct elf_range *range;
	struct symbols_frame frame = {0};
	struct told key = {0};

	if (elf_plt_find(r->plt, address, &key.symbol)) {
		key.place = PLT;
	} else {
		key.symbol = elf_names_find(&r->names, address, false);
		range = key.symbol ? NULL : elf_frames_find(&r->frames, address);
		key.place = key.symbol ? 0 : range && range->start > NOWHERE ? range->start : NOWHERE;
	}
	return number_of(r, &key, &frame.function) < 0 ? -1 : put_frames(r, at, &frame, 1);
}

/* With DWARF. The outermost function is named by its symbol, where that is one that a compiler made: of several names
 * of one place DWARF has another one than people use. */
static int put_dwarf(void *context, size_t at, const struct elf_dwarf_frame *from, size_t count)
{
	struct resolving *r = context;
	struct symbols_frame frames[FRAMES_MAX];
	bool nameless = !from[count - 1].function->name;
	const char *symbol = elf_names_find(&r->names, r->request->addresses[at], !nameless);
	size_t first = 0;

	if (count > FRAMES_MAX || (!symbol && nameless))
		return 0; /* put_symbol will say what can be said */
	/* Inside of what has no name, nothing can be placed. */
	for (size_t i = 0; i + 1 < count; i++)
		if (!from[i].function->name)
			first = i + 1;
	for (size_t i = first; i < count; i++) {
		struct told key = {.function = from[i].function, .symbol = i + 1 == count ? symbol : NULL};

		if (number_of(r, &key, &frames[i - first].function) < 0)
			return -1;
		frames[i - first].line = from[i].line;
	}
	return put_frames(r, at, frames, count - first);
}

static int still_alive(void *context)
{
	const struct resolving *r = context;

	return r->sink->alive(r->sink->context);
}

static bool has_dwarf(const struct elf_file *f)
{
	GElf_Shdr header;

	return elf_file_section(f, ".debug_info", &header) || elf_file_section(f, ".zdebug_info", &header);
}

/* What must be added to a debug file's addresses: it may have been laid out before the module was moved (prelink). */
static uint64_t shift_of(const struct resolving *r, const struct elf_file *f)
{
	uint64_t here, there;

	return elf_file_base(&r->module, &here) && elf_file_base(f, &there) ? here - there : 0;
}

/* Symbols and unwind entries from all files. *ret_where: a phrase for the note. */
static int read_tables(struct resolving *r, const char **ret_where)
{
	size_t own = 0, separate = 0, embedded = 0, exported = 0;

	if (elf_names_read(&r->names, &r->module, SHT_SYMTAB, 0, &own, r->err) < 0 ||
	    elf_frames_read(&r->frames, &r->module, 0, r->err) < 0)
		return -1;
	if ((!own || !has_dwarf(&r->module)) && elf_debug_find(&r->module, r->request->debug_folder, &r->debug)) {
		uint64_t shift = shift_of(r, &r->debug);

		if ((!own && elf_names_read(&r->names, &r->debug, SHT_SYMTAB, shift, &separate, r->err) < 0) ||
		    elf_frames_read(&r->frames, &r->debug, shift, r->err) < 0)
			return -1;
	}
	if (!own && !separate && elf_debug_embedded(&r->module, &r->embedded) &&
	    elf_names_read(&r->names, &r->embedded, SHT_SYMTAB, shift_of(r, &r->embedded), &embedded, r->err) < 0)
		return -1;
	if (!own && elf_names_read(&r->names, &r->module, SHT_DYNSYM, 0, &exported, r->err) < 0)
		return -1;
	*ret_where = own	? "its own symbol table"
		     : separate ? "the symbol table of its debug file"
		     : embedded ? "the symbol table packed into it"
		     : exported ? "its exported symbols only, since it is stripped"
				: NULL;
	elf_frames_sort(&r->frames);
	return elf_names_sort(&r->names, &r->frames, r->err);
}

static int put_note(struct resolving *r, const char *where, const char *lines, const char *why)
{
	CLEANUP(buf_release) struct buf note;

	buf_init(&note);
	if (where)
		buf_printf(&note, "Names are from %s", where);
	else if (lines)
		buf_puts(&note, "Names are from debug information alone");
	else
		buf_puts(&note, "It has no symbols");
	if (lines)
		buf_printf(&note, "; lines and inlined functions from %s", lines);
	if (why[0])
		buf_printf(&note, "; no lines: %s", why);
	buf_putc(&note, '.');
	if (note.failed)
		return error_set(r->err, "out of memory");
	return r->sink->note(r->sink->context, false, note.text) < 0 ? error_set(r->err, "stopped") : 0;
}

static int resolve_with(struct resolving *r)
{
	struct elf_dwarf_query query = {.addresses = r->request->addresses, .count = r->request->count, .context = r};
	const struct elf_file *file = NULL;
	struct error why = {""};
	const char *where = NULL;
	int result = read_tables(r, &where);

	if (result == 0)
		result = elf_plt_new(&r->module, &r->plt, r->err);
	if (!r->request->no_dwarf && result == 0)
		file = has_dwarf(&r->module) ? &r->module : r->debug.elf && has_dwarf(&r->debug) ? &r->debug : NULL;
	if (file) {
		query.shift = file == &r->debug ? shift_of(r, file) : 0;
		query.no_inlines = r->request->no_inlines;
		query.debug_folder = r->request->debug_folder;
		query.found = put_dwarf;
		query.alive = still_alive;
		result = elf_dwarf_read(file, &query, &r->dwarf, &why, r->err);
	}
	if (result >= 0)
		result = put_note(r, where, !r->dwarf ? NULL : file == &r->module ? "itself" : file->path, why.text);
	for (size_t at = 0; at < r->request->count && result == 0; at++)
		if (!r->done[at])
			result = put_symbol(r, at);
	return result;
}

static int resolve(const struct symbols_request *request, const struct symbols_sink *sink, struct error *err)
{
	struct resolving r = {.request = request, .sink = sink, .err = err};
	struct error trouble;
	int result;

	elf_file_init(&r.module);
	elf_file_init(&r.debug);
	elf_file_init(&r.embedded);
	elf_names_init(&r.names);
	elf_frames_init(&r.frames);
	r.done = calloc(request->count + 1, sizeof *r.done);
	if (!r.done)
		result = error_set(err, "out of memory");
	else if (elf_file_open_module(&r.module, request, &trouble) < 0)
		result = sink->note(sink->context, true, trouble.text);
	else
		result = resolve_with(&r);
	if (result == 0 && sink->done)
		result = sink->done(sink->context) < 0 ? error_set(err, "stopped") : 0;
	elf_dwarf_free(r.dwarf);
	free(r.told);
	free(r.done);
	elf_plt_free(r.plt);
	elf_frames_release(&r.frames);
	elf_names_release(&r.names);
	elf_file_release(&r.embedded);
	elf_file_release(&r.debug);
	elf_file_release(&r.module);
	return result;
}

static int start(char *text, size_t size, struct error *err)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_set(err, "libelf is older than this program");
	snprintf(text, size, "elfutils, built with %d.%d", _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000);
	return 0;
}

extern const struct symbols_plugin assay_symbols_plugin;

const struct symbols_plugin assay_symbols_plugin = {
	.version = SYMBOLS_PLUGIN_VERSION,
	.start = start,
	.resolve = resolve,
	.demangle = elf_demangle,
};
