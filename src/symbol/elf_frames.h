/* Where functions begin and end as the unwind data knows: the entries of .eh_frame and .debug_frame.
 *
 * They outlive stripping, so they tell one nameless function from the next. Only their ranges are read. */
#ifndef ASSAY_SYMBOL_ELF_FRAMES_H
#define ASSAY_SYMBOL_ELF_FRAMES_H

#include "symbol/elf_file.h"

struct elf_range {
	uint64_t start, end;
};

struct elf_frames {
	struct elf_range *items; /* by start */
	size_t count, room;
};

void elf_frames_init(struct elf_frames *f);
void elf_frames_release(struct elf_frames *f);

/* Adds the entries of a file's .eh_frame and .debug_frame; what is damaged is left out. `shift` is added to every
 * address (of a debug file that was laid out elsewhere). Fails when out of memory. */
int elf_frames_read(struct elf_frames *f, const struct elf_file *file, uint64_t shift, struct error *err);

/* After the last file and before the first look-up. */
void elf_frames_sort(struct elf_frames *f);

/* The entry that contains the address; NULL: none. */
const struct elf_range *elf_frames_find(const struct elf_frames *f, uint64_t address);

/* The entries in a section's bytes at `address`; for tests with made-up bytes. */
int elf_frames_parse(struct elf_frames *f, const uint8_t *bytes, size_t length, uint64_t address, bool is_eh,
		     uint64_t shift, struct error *err);

#endif
