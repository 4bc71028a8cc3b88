/* A cursor over bytes of an unwind table that never passes their end: after a read past it, everything reads as 0 and
 * `bad` stays set. */
#ifndef ASSAY_PRELOAD_UNWIND_READER_H
#define ASSAY_PRELOAD_UNWIND_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct unwind_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline uint64_t unwind_read_bytes(struct unwind_reader *r, unsigned size)
{
	uint64_t value = 0;

	if (r->bad || (uintptr_t)(r->end - r->at) < size) {
		r->bad = true;
		return 0;
	}
	switch (size) { /* constant sizes, so that no function is called */
	case 1:
		value = *r->at;
		break;
	case 2:
		memcpy(&value, r->at, 2);
		break;
	case 4:
		memcpy(&value, r->at, 4);
		break;
	default:
		memcpy(&value, r->at, 8);
		break;
	}
	r->at += size;
	return value;
}

static inline uint8_t unwind_read_u8(struct unwind_reader *r)
{
	return (uint8_t)unwind_read_bytes(r, 1);
}

/* Bits beyond the 64th are lost. */
static inline uint64_t unwind_read_uleb(struct unwind_reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = unwind_read_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static inline int64_t unwind_read_sleb(struct unwind_reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = unwind_read_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift + 7 < 64 && byte & 0x40)
			value |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)value;
	}
}

static inline void unwind_skip(struct unwind_reader *r, uint64_t size)
{
	if (r->bad || (uint64_t)(r->end - r->at) < size)
		r->bad = true;
	else
		r->at += size;
}

#endif
