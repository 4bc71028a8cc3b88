/* The entries of unwind tables, as the Linux Standard Base has them in .eh_frame and .eh_frame_hdr.
 *
 * The tables may be those of a loaded module, read where they lie, or bytes of a file. Everything is read with bounds:
 * a table that is truncated or lies leads to "no answer", never to a fault or to long work. Allocates nothing and makes
 * no system call: runs inside a signal handler, too. */
#ifndef ASSAY_CFI_TABLES_H
#define ASSAY_CFI_TABLES_H

#include "cfi/bytes.h"

/* Bytes in which entries, what they have in common, and their expressions lie. */
struct cfi_section {
	const uint8_t *bytes, *end;
	uint64_t address; /* of the first byte, in the numbering of the code's addresses */
	uint64_t origin;  /* the address that rows tell the place of expressions from: within 128 MiB of all of them */
};

static inline uint64_t cfi_address_of(const struct cfi_section *s, const uint8_t *at)
{
	return s->address + (uint64_t)(at - s->bytes);
}

/* What stands at a distance from the origin, up to the section's end. */
static inline struct cfi_bytes cfi_section_bytes(const struct cfi_section *s, int32_t place)
{
	uint64_t offset = s->origin + (uint64_t)(int64_t)place - s->address;

	if (offset > (uint64_t)(s->end - s->bytes))
		return (struct cfi_bytes){s->end, s->end, true};
	return (struct cfi_bytes){s->bytes + offset, s->end, false};
}

/* An address as `encoding` says; `place` is the address of where it stands. Sets `bad` for encodings that no linker
 * writes into these tables. */
uint64_t cfi_pointer(struct cfi_bytes *b, uint8_t encoding, uint64_t place);

/* .eh_frame_hdr. */
struct cfi_head {
	uint64_t address;     /* its own */
	uint64_t frames;      /* address of .eh_frame; 0: not told */
	uint64_t count;       /* of the sorted entries; 0: there is no table that can be used */
	const uint8_t *table;
};

/* Reads from *b: all of it, or at least the first 12 bytes; then its table is not found. */
bool cfi_head_read(struct cfi_bytes *b, uint64_t address, struct cfi_head *ret);

/* The address of the entry (FDE) whose code starts last among those not behind `address`. Needs count > 0. */
uint64_t cfi_head_search(const struct cfi_head *head, uint64_t address);

/* The record at `at`, behind its length. False at the record of length 0 that ends the tables, and at what is none. */
bool cfi_record_open(const struct cfi_section *s, const uint8_t *at, struct cfi_bytes *ret);

/* What entries have in common (CIE). */
struct cfi_common {
	const uint8_t *at; /* NULL: this is empty */
	const uint8_t *program, *end;
	uint32_t code_factor;
	int32_t data_factor;
	uint8_t encoding; /* of addresses in its entries */
	bool augmented;   /* entries have augmentation data of a told length */
	bool signal_frame;
};

/* An entry (FDE): the code [start, start + size), and its program. */
struct cfi_entry {
	uint64_t start, size;
	const uint8_t *program, *end;
};

/* Reads the entry at `at`; false where there is none. *common is that of the entry that was read before, or zeroed: it
 * is read only where this entry has another. */
bool cfi_entry_read(const struct cfi_section *s, const uint8_t *at, struct cfi_common *common, struct cfi_entry *ret);

static inline bool cfi_entry_holds(const struct cfi_entry *entry, uint64_t address)
{
	return address >= entry->start && address - entry->start < entry->size;
}

#endif
