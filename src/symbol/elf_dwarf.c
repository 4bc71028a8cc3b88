#include "symbol/elf_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf_debug.h"
#include "symbol/elf_dwarf_names.h"

#define NONE UINT32_MAX
#define DEPTH_MAX 200		/* of entries in entries */
#define INLINED_MAX 200		/* frames at one address */
#define ENTRIES_MAX 50000000u	/* in one unit: a sibling that leads back would have no end */

/* An entry that covers asked addresses: a function, or an inlined call with what it is inlined into. */
struct place {
	Dwarf_Die die;
	uint32_t outer; /* in places[]; NONE: a function itself */
	/* Looked up for the first of its addresses: */
	struct elf_dwarf_function *function;
	uint32_t called_at; /* of an inlined call: the line of its caller; 0: not known (yet) */
};

struct elf_dwarf {
	Dwarf *dwarf, *shared;
	struct elf_file shared_file;
	struct elf_dwarf_names *names;
};

/* Reading of one unit. */
struct walk {
	const struct elf_dwarf_query *query;
	struct elf_dwarf *d;
	struct place *places;
	size_t count, room;
	uint32_t *innermost; /* of each address, in places[]; NONE */
	bool *found;         /* of each address: an earlier unit had it */
	size_t low, high;    /* where innermost[] is set at all: from low up to before high */
	unsigned entries;
	bool into_types;     /* second pass: functions inside of types, and of types inside of functions */
	struct error *err;
};

static size_t first_at_or_after(const struct elf_dwarf_query *q, uint64_t address)
{
	size_t low = 0, high = q->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (q->addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The asked addresses in [start, end) of the file: the first, and the one behind the last. Code that the linker threw
 * away is left at 0, or at 1 in lists; nothing that is loaded begins there, where the ELF header is. */
static void slice(const struct elf_dwarf_query *q, uint64_t start, uint64_t end, size_t *ret_from, size_t *ret_to)
{
	if (start <= 1 || start >= end) {
		*ret_from = *ret_to = 0;
		return;
	}
	*ret_from = first_at_or_after(q, start + q->shift);
	*ret_to = first_at_or_after(q, end + q->shift);
}

/* Whether any asked address is in the entry; *ret_has_ranges: whether it says where it is at all. */
static bool covers_any(const struct walk *w, Dwarf_Die *die, bool *ret_has_ranges)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	*ret_has_ranges = false;
	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		size_t from, to;

		*ret_has_ranges = true;
		slice(w->query, start, end, &from, &to);
		if (from < to)
			return true;
	}
	return false;
}

static int new_place(struct walk *w, const Dwarf_Die *die, uint32_t outer)
{
	if (w->count == w->room) {
		size_t room = w->room ? 2 * w->room : 1024;
		struct place *places = reallocarray(w->places, room, sizeof *places);

		if (!places)
			return error_set(w->err, "out of memory for %zu functions", room);
		w->places = places;
		w->room = room;
	}
	w->places[w->count++] = (struct place){.die = *die, .outer = outer};
	return 0;
}

/* Makes the entry the innermost at the asked addresses that it covers and `outer` was at. 1 where there are any, then
 * it is the last of places[]; 0; -1 when out of memory. */
static int cover(struct walk *w, Dwarf_Die *die, uint32_t outer)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool any = false;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		size_t from, to;

		for (slice(w->query, start, end, &from, &to); from < to; from++) {
			if (w->found[from] || w->innermost[from] != outer)
				continue;
			if (!any && new_place(w, die, outer) < 0)
				return -1;
			any = true;
			w->innermost[from] = (uint32_t)w->count - 1;
			w->low = from < w->low ? from : w->low;
			w->high = from >= w->high ? from + 1 : w->high;
		}
	}
	return any;
}

static int walk(struct walk *w, Dwarf_Die *parent, uint32_t outer, unsigned depth);

/* What stands in the entry, if it can hold asked code. */
static int visit(struct walk *w, Dwarf_Die *die, uint32_t outer, unsigned depth)
{
	bool has_ranges;
	int covered;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		covered = cover(w, die, NONE);
		if (covered > 0)
			return walk(w, die, (uint32_t)w->count - 1, depth);
		return covered < 0 || !w->into_types ? covered : walk(w, die, NONE, depth);
	case DW_TAG_inlined_subroutine:
		if (w->query->no_inlines || outer == NONE)
			return 0;
		covered = cover(w, die, outer);
		return covered <= 0 ? covered : walk(w, die, (uint32_t)w->count - 1, depth);
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return w->into_types || covers_any(w, die, &has_ranges) || !has_ranges ? walk(w, die, outer, depth) : 0;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return walk(w, die, NONE, depth);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return w->into_types ? walk(w, die, NONE, depth) : 0;
	default:
		return 0;
	}
}

static int walk(struct walk *w, Dwarf_Die *parent, uint32_t outer, unsigned depth)
{
	Dwarf_Die die;

	if (depth >= DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return 0;
	do {
		if (++w->entries > ENTRIES_MAX)
			return 0;
		if (visit(w, &die, outer, depth + 1) < 0)
			return -1;
	} while (dwarf_siblingof(&die, &die) == 0);
	return 0;
}

/* A line number, where it is one of the function's own file. */
static uint32_t line_if_same(const char *file, int line, const struct elf_dwarf_function *function)
{
	if (!file || !function->file || line <= 0)
		return 0;
	return file == function->file || strcmp(file, function->file) == 0 ? (uint32_t)line : 0;
}

/* The line of the code itself. A function whose entry names no file (assembler, lambdas) is in that of its first line.
 */
static uint32_t own_line(Dwarf_Line *line, struct elf_dwarf_function *function)
{
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	int number = 0;

	if (!file || dwarf_lineno(line, &number) != 0)
		return 0;
	if (!function->file)
		function->file = file;
	return line_if_same(file, number, function);
}

/* Where an inlined function was called from, as a line of `caller`. */
static uint32_t call_line(Dwarf_Die *inlined, Dwarf_Files *files, size_t file_count,
			  const struct elf_dwarf_function *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0 || file >= file_count ||
	    line > INT32_MAX)
		return 0;
	return line_if_same(dwarf_filesrc(files, file, NULL, NULL), (int)line, caller);
}

/* Looks up the place's function and those around it; *ret_depth: how many these are. -1 when out of memory. */
static int look_up(struct walk *w, uint32_t place, Dwarf_Files *files, size_t file_count, size_t *ret_depth)
{
	struct place *inner = NULL;

	*ret_depth = 0;
	for (uint32_t i = place; i != NONE; i = w->places[i].outer) {
		struct place *p = &w->places[i];
		bool known = p->function && p->called_at;

		if (!p->function)
			p->function = elf_dwarf_names_get(w->d->names, &p->die);
		if (!p->function)
			return error_set(w->err, "out of memory for names");
		if (inner)
			inner->called_at = call_line(&inner->die, files, file_count, p->function);
		inner = known ? NULL : p;
		++*ret_depth;
	}
	return 0;
}

/* Hands over the frames at one address; `unit` has the lines, `tree` the entries (another where DWARF is split). */
static int report(struct walk *w, size_t at, Dwarf_Die *unit, Dwarf_Files *files, size_t file_count)
{
	struct elf_dwarf_frame frames[INLINED_MAX];
	Dwarf_Line *line = dwarf_getsrc_die(unit, w->query->addresses[at] - w->query->shift);
	const struct place *inner = NULL;
	size_t count;

	if (look_up(w, w->innermost[at], files, file_count, &count) < 0)
		return -1;
	if (count > INLINED_MAX)
		return 0;
	count = 0;
	for (uint32_t i = w->innermost[at]; i != NONE; i = w->places[i].outer) {
		const struct place *p = &w->places[i];

		frames[count++] = (struct elf_dwarf_frame){
			p->function, inner ? inner->called_at : own_line(line, p->function)};
		inner = p;
	}
	w->found[at] = true;
	return w->query->found(w->query->context, at, frames, count) < 0 ? error_set(w->err, "stopped") : 0;
}

static int report_unit(struct walk *w, Dwarf_Die *unit, Dwarf_Die *tree)
{
	Dwarf_Files *files = NULL;
	size_t file_count = 0;

	if (dwarf_getsrcfiles(tree, &files, &file_count) != 0)
		file_count = 0;
	for (size_t at = w->low; at < w->high; at++) {
		if (w->innermost[at] == NONE)
			continue;
		if (report(w, at, unit, files, file_count) < 0)
			return -1;
		w->innermost[at] = NONE;
	}
	return 0;
}

/* How many asked addresses of the unit have no function yet. */
static size_t missing_in(const struct walk *w, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	size_t missing = 0;

	while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		size_t from, to;

		for (slice(w->query, start, end, &from, &to); from < to; from++)
			missing += !w->found[from] && w->innermost[from] == NONE;
	}
	return missing;
}

/* Whether the language can have functions inside of types. */
static bool has_methods(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* C17, which elfutils 0.188 has no name for */
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

/* Lines of assembler that has no entries for functions. */
static int report_lines(struct walk *w, Dwarf_Die *unit)
{
	struct elf_dwarf_function *nameless = elf_dwarf_names_unit(w->d->names, unit);
	struct elf_dwarf_frame frame = {.function = nameless};
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	if (!nameless)
		return error_set(w->err, "out of memory for names");
	while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		size_t from, to;

		for (slice(w->query, start, end, &from, &to); from < to; from++) {
			if (w->found[from])
				continue;
			frame.line = own_line(dwarf_getsrc_die(unit, w->query->addresses[from] - w->query->shift),
					      nameless);
			w->found[from] = true;
			if (w->query->found(w->query->context, from, &frame, 1) < 0)
				return error_set(w->err, "stopped");
		}
	}
	return 0;
}

static int read_unit(struct walk *w, Dwarf_Die *unit, Dwarf_Die *tree)
{
	if (missing_in(w, unit) == 0)
		return 0;
	if (w->query->alive(w->query->context) < 0)
		return error_set(w->err, "stopped");
	w->count = 0;
	w->low = w->query->count;
	w->high = 0;
	for (int pass = 0; pass < 2; pass++) {
		w->into_types = pass == 1;
		w->entries = 0;
		if (pass == 1 && (!has_methods(unit) || missing_in(w, unit) == 0))
			break;
		if (walk(w, tree, NONE, 0) < 0)
			return -1;
	}
	if (report_unit(w, unit, tree) < 0)
		return -1;
	return dwarf_srclang(unit) == DW_LANG_Mips_Assembler ? report_lines(w, unit) : 0;
}

static int read_units(struct walk *w)
{
	Dwarf_Die unit, split;
	Dwarf_CU *cu = NULL;
	uint8_t type;

	while (dwarf_get_units(w->d->dwarf, cu, &cu, NULL, &type, &unit, &split) == 0) {
		Dwarf_Die *tree = type == DW_UT_skeleton && split.addr ? &split : &unit;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		elf_dwarf_names_language(w->d->names, tree);
		if (read_unit(w, &unit, tree) < 0)
			return -1;
	}
	return 0;
}

/* Entries of several debug files may lie in a file that these share; elfutils would take any file of its name. */
static int join_shared(struct elf_dwarf *d, const struct elf_file *file, const char *folder, struct error *why)
{
	const void *id;
	const char *name;
	ssize_t length = dwelf_dwarf_gnu_debugaltlink(d->dwarf, &name, &id);

	if (length == 0)
		return 1;
	if (length > 0 && elf_debug_shared(file, folder, name, id, (size_t)length, &d->shared_file))
		d->shared = dwarf_begin_elf(d->shared_file.elf, DWARF_C_READ, NULL);
	if (!d->shared) {
		error_set(why, "the file %s that its debug information refers to is missing",
			  length > 0 ? name : "(damaged name)");
		return 0;
	}
	dwarf_setalt(d->dwarf, d->shared);
	return 1;
}

static int read_all(struct elf_dwarf *d, const struct elf_dwarf_query *query, struct error *err)
{
	struct walk w = {.query = query, .d = d, .err = err};
	int result = -1;

	w.innermost = calloc(query->count + 1, sizeof *w.innermost);
	w.found = calloc(query->count + 1, sizeof *w.found);
	if (w.innermost && w.found) {
		memset(w.innermost, 0xff, query->count * sizeof *w.innermost);
		result = read_units(&w);
	} else {
		error_set(err, "out of memory for %zu addresses", query->count);
	}
	free(w.innermost);
	free(w.found);
	free(w.places);
	return result;
}

int elf_dwarf_read(const struct elf_file *file, const struct elf_dwarf_query *query, struct elf_dwarf **ret,
		   struct error *why, struct error *err)
{
	struct elf_dwarf *d = calloc(1, sizeof *d);
	int result = 0;

	if (!d)
		return error_set(err, "out of memory");
	elf_file_init(&d->shared_file);
	d->names = elf_dwarf_names_new();
	d->dwarf = d->names ? dwarf_begin_elf(file->elf, DWARF_C_READ, NULL) : NULL;
	if (!d->names)
		result = error_set(err, "out of memory");
	else if (d->dwarf && join_shared(d, file, query->debug_folder, why))
		result = read_all(d, query, err) < 0 ? -1 : 1;
	*ret = result > 0 ? d : NULL;
	if (result <= 0)
		elf_dwarf_free(d);
	return result;
}

void elf_dwarf_free(struct elf_dwarf *d)
{
	if (!d)
		return;
	elf_dwarf_names_free(d->names);
	dwarf_end(d->dwarf);
	dwarf_end(d->shared);
	elf_file_release(&d->shared_file);
	free(d);
}
