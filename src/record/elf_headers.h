/* The program headers of an ELF file of either class, read without trusting it.
 *
 * Mostly what the kernel itself looks at when it runs a program; no symbols. Little-endian files only. */
#ifndef ASSAY_RECORD_ELF_HEADERS_H
#define ASSAY_RECORD_ELF_HEADERS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_HEADERS_MAX 64 /* more segments than any linker makes; those behind are left out */

struct elf_headers {
	bool wide; /* 64 bits */
	uint16_t machine, type;
	size_t count;
	Elf64_Phdr items[ELF_HEADERS_MAX]; /* those of 32 bits widened */
};

/* false: it is no such file, or cannot be read. */
bool elf_headers_read(int fd, struct elf_headers *ret);

/* pread until `size` bytes have come; false where they do not. */
bool elf_read_at(int fd, uint64_t offset, void *to, size_t size);

/* The build-id in the file's notes, cut to `room` bytes; returns how long it is in all, 0: it has none. */
size_t elf_build_id(int fd, const struct elf_headers *h, uint8_t *ret, size_t room);

/* Where the bytes at p_vaddr `address` lie in the file, and how many follow in their segment. */
bool elf_headers_find(const struct elf_headers *h, uint64_t address, uint64_t *ret_offset, uint64_t *ret_size);

/* A section of a 64-bit file by its name; false where it has none, as a stripped file may. */
bool elf_section_find(int fd, const char *name, Elf64_Shdr *ret);

#endif
