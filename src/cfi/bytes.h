/* A cursor over bytes of an unwind table that never passes their end: after a read past it, everything reads as 0 and
 * `bad` stays set. */
#ifndef ASSAY_CFI_BYTES_H
#define ASSAY_CFI_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* Little-endian, as the machine is. */
static inline uint64_t cfi_fixed(struct cfi_bytes *b, unsigned size)
{
	uint64_t value = 0;

	if (b->bad || (uintptr_t)(b->end - b->at) < size) {
		b->bad = true;
		return 0;
	}
	switch (size) { /* constant sizes, so that no function is called */
	case 1:
		value = *b->at;
		break;
	case 2:
		memcpy(&value, b->at, 2);
		break;
	case 4:
		memcpy(&value, b->at, 4);
		break;
	default:
		memcpy(&value, b->at, 8);
		break;
	}
	b->at += size;
	return value;
}

static inline uint8_t cfi_byte(struct cfi_bytes *b)
{
	return (uint8_t)cfi_fixed(b, 1);
}

#define CFI_NUMBER_BITS 112u /* of 16 bytes: more than anyone writes */

/* DWARF's numbers of any length, 7 bits a byte; bits beyond the 64th are lost. */
static inline uint64_t cfi_uleb(struct cfi_bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < CFI_NUMBER_BITS; shift += 7) {
		uint8_t byte = cfi_byte(b);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	b->bad = true;
	return 0;
}

static inline int64_t cfi_sleb(struct cfi_bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < CFI_NUMBER_BITS; shift += 7) {
		uint8_t byte = cfi_byte(b);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift + 7 < 64 && byte & 0x40)
			value |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)value;
	}
	b->bad = true;
	return 0;
}

static inline void cfi_skip(struct cfi_bytes *b, uint64_t size)
{
	if (b->bad || (uint64_t)(b->end - b->at) < size)
		b->bad = true;
	else
		b->at += size;
}

#endif
