/* An ELF file opened for reading: is it the one that was loaded, and where in it is what.
 *
 * Everything in it is hostile: sizes and offsets are checked by libelf or here before they are used. */
#ifndef ASSAY_SYMBOL_ELF_FILE_H
#define ASSAY_SYMBOL_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "symbol/symbols_plugin.h"

struct elf_file {
	int fd;    /* owned */
	Elf *elf;
	char *path; /* owned; where it was found, NULL: nowhere in particular */
	GElf_Ehdr header;
};

void elf_file_init(struct elf_file *f);
void elf_file_release(struct elf_file *f);

/* Takes the descriptor over, also on failure. Refuses what is no 64-bit ELF file of this machine's kind. */
int elf_file_open(struct elf_file *f, int fd, const char *path, struct error *err);

/* The module that the request is about. Fails, with a sentence for the module's note, where it cannot be read or is not
 * the file that was loaded. */
int elf_file_open_module(struct elf_file *f, const struct symbols_request *request, struct error *err);

/* Opens a regular file for reading; -1 with errno for anything else. */
int elf_file_regular(const char *path);

/* The build-id, inside the file's memory; 0: none. */
size_t elf_file_build_id(const struct elf_file *f, const uint8_t **ret);

/* A section by name, NULL: none. Sections without bytes in the file (SHT_NOBITS) are none. */
Elf_Scn *elf_file_section(const struct elf_file *f, const char *name, GElf_Shdr *ret);

/* The address of the first loaded segment; false: none is loaded. */
bool elf_file_base(const struct elf_file *f, uint64_t *ret);

/* The bytes in the file from an address on, up to the end of its segment; NULL: there are none. */
const uint8_t *elf_file_at(const struct elf_file *f, uint64_t address, size_t *ret_length);

#endif
