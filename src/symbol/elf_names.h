/* Names by address from symbol tables: only inside a symbol's extent, and of several names of one place the one that
 * people know. */
#ifndef ASSAY_SYMBOL_ELF_NAMES_H
#define ASSAY_SYMBOL_ELF_NAMES_H

#include "symbol/elf_file.h"
#include "symbol/elf_frames.h"

struct elf_names_extent {
	uint64_t start, end;
	const char *name; /* mangled, perhaps with @VERSION; borrowed from the file */
};

struct elf_symbol;

struct elf_names {
	struct elf_symbol *symbols;
	size_t count, room;
	/* Made by elf_names_sort, each by start and without overlap: functions; labels that have a size; labels that
	 * have none. */
	struct elf_names_extent *extents[3];
	size_t extent_counts[3];
};

void elf_names_init(struct elf_names *n);
void elf_names_release(struct elf_names *n);

/* Adds the symbols of code in a file's table: SHT_SYMTAB or SHT_DYNSYM. The file must stay open. *ret_count grows
 * by how many there were. Fails when out of memory. */
int elf_names_read(struct elf_names *n, const struct elf_file *file, unsigned table, uint64_t shift, size_t *ret_count,
		   struct error *err);

/* After the last file and before the first look-up. A label without a size ends with its section, its entry of `frames`
 * or the next symbol, whatever comes first; outside all entries it names nothing. */
int elf_names_sort(struct elf_names *n, const struct elf_frames *frames, struct error *err);

/* The function's or assembler label's name at an address, NULL: none. `sure` finds functions only, whose extents their
 * compiler has set. */
const char *elf_names_find(const struct elf_names *n, uint64_t address, bool sure);

#endif
