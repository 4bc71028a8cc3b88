/* The separate files that names may lie in: by build-id, by .gnu_debuglink, .gnu_debugdata inside the file itself, and
 * the file that several debug files share (dwz). Each is checked to belong to the module before it is believed. */
#ifndef ASSAY_SYMBOL_ELF_DEBUG_H
#define ASSAY_SYMBOL_ELF_DEBUG_H

#include "symbol/elf_file.h"

/* The debug file of a module: 1 with *ret open, 0 where there is none. */
int elf_debug_find(const struct elf_file *module, const char *folder, struct elf_file *ret);

/* The symbols of a stripped file that its distributor left in it, compressed: 1 with *ret open, 0 where there are
 * none. */
int elf_debug_embedded(const struct elf_file *module, struct elf_file *ret);

/* The shared file with that name and build-id that `debug` refers to: 1 with *ret open, 0 where it is missing. */
int elf_debug_shared(const struct elf_file *debug, const char *folder, const char *name, const uint8_t *build_id,
		     size_t length, struct elf_file *ret);

#endif
