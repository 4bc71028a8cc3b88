/* Functions, what was inlined into them, and lines, from DWARF. Only units that contain an asked address are read. */
#ifndef ASSAY_SYMBOL_ELF_DWARF_H
#define ASSAY_SYMBOL_ELF_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

/* A function as its source has it; lives as long as the reader. */
struct elf_dwarf_function {
	char *name;       /* as linked (mangled), else as written, qualified; NULL: it has none */
	const char *file; /* NULL: not known */
	uint32_t line;    /* where it begins; 0: not known */
};

struct elf_dwarf_frame {
	const struct elf_dwarf_function *function;
	uint32_t line; /* in the function's own file; 0: not known, or in another file */
};

struct elf_dwarf_query {
	const uint64_t *addresses; /* ascending, each once */
	size_t count;
	uint64_t shift; /* module's address = file's address + shift */
	bool no_inlines;
	const char *debug_folder; /* of shared debug files */
	void *context;
	/* What stands at addresses[at], innermost first, the function itself last; 0 or -1, which ends the reading. */
	int (*found)(void *context, size_t at, const struct elf_dwarf_frame *frames, size_t count);
	int (*alive)(void *context); /* called now and then; the same */
};

struct elf_dwarf;

/* Reads a file's DWARF; what it found stays valid until elf_dwarf_free. 1; 0 where there is none that can be used, and
 * *why (a sentence) says so if it is there but lacks something; -1 with *err when out of memory or stopped. */
int elf_dwarf_read(const struct elf_file *file, const struct elf_dwarf_query *query, struct elf_dwarf **ret,
		   struct error *why, struct error *err);
void elf_dwarf_free(struct elf_dwarf *d);

#endif
