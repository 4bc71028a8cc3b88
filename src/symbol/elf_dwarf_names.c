#include "symbol/elf_dwarf_names.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define ORIGINS_MAX 16 /* steps from an inlined function to what declares it */

struct known {
	const void *origin; /* where its entry lies in memory; NULL: a free place */
	struct elf_dwarf_function *function;
};

struct elf_dwarf_names {
	struct known *known; /* hashed by origin */
	size_t count, room;  /* room: a power of two */
	bool qualified;	     /* names of the unit have scopes: C++ and Rust */
};

struct elf_dwarf_names *elf_dwarf_names_new(void)
{
	struct elf_dwarf_names *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->room = 1024;
	n->known = calloc(n->room, sizeof *n->known);
	if (n->known)
		return n;
	free(n);
	return NULL;
}

void elf_dwarf_names_free(struct elf_dwarf_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->room; i++) {
		if (n->known[i].function)
			free(n->known[i].function->name);
		free(n->known[i].function);
	}
	free(n->known);
	free(n);
}

void elf_dwarf_names_language(struct elf_dwarf_names *n, Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2a: /* C++17 and C++20, which elfutils 0.188 has no names for */
	case 0x2b:
	case DW_LANG_Rust:
	case DW_LANG_D:
		n->qualified = true;
		break;
	default:
		n->qualified = false;
	}
}

static struct known *place_of(struct known *known, size_t room, const void *origin)
{
	size_t at = (uintptr_t)origin * (size_t)UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);

	while (known[at].origin && known[at].origin != origin)
		at = (at + 1) & (room - 1);
	return &known[at];
}

static bool grow(struct elf_dwarf_names *n)
{
	size_t room = 2 * n->room;
	struct known *known;

	if (2 * n->count < n->room)
		return true;
	known = calloc(room, sizeof *known);
	if (!known)
		return false;
	for (size_t i = 0; i < n->room; i++)
		if (n->known[i].origin)
			*place_of(known, room, n->known[i].origin) = n->known[i];
	free(n->known);
	n->known = known;
	n->room = room;
	return true;
}

/* Follows one attribute that refers to another entry. */
static bool follow(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Die next;

	if (!dwarf_attr(die, name, &attribute) || !dwarf_formref_die(&attribute, &next))
		return false;
	*die = next;
	return true;
}

/* A class without a name. Compilers number lambdas; the tables only have the line where one stands. */
static void put_unnamed(struct buf *out, Dwarf_Die *scope, const char *function)
{
	int line;

	if (function && strcmp(function, "operator()") == 0 && dwarf_decl_line(scope, &line) == 0 && line > 0)
		buf_printf(out, "{lambda at line %d}::", line);
	else
		buf_puts(out, "(unnamed)::");
}

/* The scopes around the declaration of a function, outermost first, as "outer::inner::". */
static void put_scopes(struct buf *out, const Dwarf_Die *of)
{
	Dwarf_Die die = *of, *scopes = NULL;
	int count;

	for (int step = 0; step < ORIGINS_MAX; step++)
		if (!follow(&die, DW_AT_abstract_origin) && !follow(&die, DW_AT_specification))
			break;
	count = dwarf_getscopes_die(&die, &scopes);
	for (int i = count - 1; i > 0; i--) {
		const char *name = dwarf_diename(&scopes[i]);

		switch (dwarf_tag(&scopes[i])) {
		case DW_TAG_namespace:
			buf_printf(out, "%s::", name ? name : "(anonymous namespace)");
			break;
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			if (name)
				buf_printf(out, "%s::", name);
			else
				put_unnamed(out, &scopes[i], dwarf_diename(&die));
			break;
		case DW_TAG_subprogram: /* around a class of its own */
			if (name)
				buf_printf(out, "%s::", name);
			break;
		default:
			break;
		}
	}
	free(scopes);
}

/* The file that declares the function. Not dwarf_decl_file, which in elfutils up to 0.188 takes the first file of
 * DWARF 5, number 0, for none. */
static const char *file_of(const Dwarf_Die *of)
{
	Dwarf_Die die = *of, unit;
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	for (int step = 0; step < ORIGINS_MAX && !dwarf_hasattr(&die, DW_AT_decl_file); step++)
		if (!follow(&die, DW_AT_abstract_origin) && !follow(&die, DW_AT_specification))
			return NULL;
	if (dwarf_formudata(dwarf_attr(&die, DW_AT_decl_file, &attribute), &number) != 0 ||
	    !dwarf_diecu(&die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, &count) != 0 || number >= count)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

	return name ? name : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
}

static struct elf_dwarf_function *describe(const struct elf_dwarf_names *n, Dwarf_Die *die)
{
	struct elf_dwarf_function *f = calloc(1, sizeof *f);
	const char *name = linkage_name(die), *file = file_of(die);
	struct buf text;
	int line;

	if (!f)
		return NULL;
	buf_init(&text);
	if (!name || !name[0]) {
		name = dwarf_diename(die);
		if (name && name[0] && n->qualified)
			put_scopes(&text, die);
	}
	if (name && name[0]) {
		buf_puts(&text, name);
		f->name = buf_detach(&text);
		if (!f->name) {
			buf_release(&text);
			free(f);
			return NULL;
		}
	}
	buf_release(&text);
	f->file = file && file[0] && strcmp(file, "???") != 0 ? file : NULL;
	f->line = f->file && dwarf_decl_line(die, &line) == 0 && line > 0 ? (uint32_t)line : 0;
	return f;
}

/* The function of an entry, or of a unit. */
static struct elf_dwarf_function *known_of(struct elf_dwarf_names *n, Dwarf_Die *origin, bool is_unit)
{
	struct elf_dwarf_function *f;
	struct known *place;

	if (!grow(n))
		return NULL;
	place = place_of(n->known, n->room, origin->addr);
	if (place->origin)
		return place->function;
	f = is_unit ? calloc(1, sizeof *f) : describe(n, origin);
	if (!f)
		return NULL;
	*place = (struct known){origin->addr, f};
	n->count++;
	return f;
}

struct elf_dwarf_function *elf_dwarf_names_unit(struct elf_dwarf_names *n, Dwarf_Die *unit)
{
	return known_of(n, unit, true);
}

struct elf_dwarf_function *elf_dwarf_names_get(struct elf_dwarf_names *n, Dwarf_Die *die)
{
	Dwarf_Die origin = *die;

	/* What all copies of an inlined function have in common. */
	for (int step = 0; step < ORIGINS_MAX && follow(&origin, DW_AT_abstract_origin); step++)
		;
	return known_of(n, &origin, false);
}
