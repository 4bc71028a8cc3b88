/* Taking numbers out of unwind tables, never past their end. For the files cfi*.c only. */
#ifndef ASSAY_RECORD_CFI_BYTES_H
#define ASSAY_RECORD_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad; /* something was asked for that is not there; what was given for it is 0 */
};

static inline uint64_t cfi_fixed(struct cfi_bytes *b, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->bad = true;
		b->at = b->end;
		return 0;
	}
	memcpy(&value, b->at, size); /* little-endian, as the machine is */
	b->at += size;
	return value;
}

static inline int64_t cfi_signed(struct cfi_bytes *b, size_t size)
{
	unsigned unused = 64 - 8 * (unsigned)size;

	return (int64_t)(cfi_fixed(b, size) << unused) >> unused;
}

/* DWARF's numbers of any length, 7 bits a byte; bits past the 64th are dropped. */
static inline uint64_t cfi_uleb(struct cfi_bytes *b)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = cfi_fixed(b, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	return value;
}

static inline int64_t cfi_sleb(struct cfi_bytes *b)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = cfi_fixed(b, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

static inline void cfi_skip(struct cfi_bytes *b, uint64_t size)
{
	if (size > (uint64_t)(b->end - b->at)) {
		b->bad = true;
		size = (uint64_t)(b->end - b->at);
	}
	b->at += size;
}

#endif
