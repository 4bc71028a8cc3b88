/* Names, files and first lines of DWARF's functions, each worked out once. */
#ifndef ASSAY_SYMBOL_ELF_DWARF_NAMES_H
#define ASSAY_SYMBOL_ELF_DWARF_NAMES_H

#include <elfutils/libdw.h>

#include "symbol/elf_dwarf.h"

struct elf_dwarf_names;

struct elf_dwarf_names *elf_dwarf_names_new(void); /* NULL when out of memory */
void elf_dwarf_names_free(struct elf_dwarf_names *n);

/* Which unit the entries that follow are of: its language tells how a name is qualified. */
void elf_dwarf_names_language(struct elf_dwarf_names *n, Dwarf_Die *unit);

/* The function of an entry (one that was inlined: its origin). NULL when out of memory. */
struct elf_dwarf_function *elf_dwarf_names_get(struct elf_dwarf_names *n, Dwarf_Die *die);

/* A nameless function, one per unit, for lines without a function. NULL when out of memory. */
struct elf_dwarf_function *elf_dwarf_names_unit(struct elf_dwarf_names *n, Dwarf_Die *unit);

#endif
