#include "cfi/tables.h"

#include "cfi/row.h"

/* Encodings of addresses: the low four bits are the form, the next three what it is relative to. */
enum {
	ENCODED_FORM = 0x0f,
	ENCODED_BASE = 0x70,
	ENCODED_FROM_HERE = 0x10,
	ENCODED_INDIRECT = 0x80,
	ENCODED_OMIT = 0xff,
};
#define ENCODED_TABLE 0x3b /* relative to the header, four bytes, signed: what every linker writes */
#define FACTOR_MAX 1024
#define LETTERS_MAX 16 /* of an augmentation; real ones have up to five */

uint64_t cfi_pointer(struct cfi_bytes *b, uint8_t encoding, uint64_t place)
{
	uint64_t base = (encoding & ENCODED_BASE) == ENCODED_FROM_HERE ? place : 0;

	if (encoding & ENCODED_INDIRECT || (encoding & ENCODED_BASE && !base))
		b->bad = true;
	switch (encoding & ENCODED_FORM) {
	case 0x00:
	case 0x04:
	case 0x0c:
		return base + cfi_fixed(b, 8);
	case 0x01:
		return base + cfi_uleb(b);
	case 0x02:
		return base + cfi_fixed(b, 2);
	case 0x03:
		return base + cfi_fixed(b, 4);
	case 0x09:
		return base + (uint64_t)cfi_sleb(b);
	case 0x0a:
		return base + (uint64_t)(int16_t)cfi_fixed(b, 2);
	case 0x0b:
		return base + (uint64_t)(int32_t)cfi_fixed(b, 4);
	default:
		b->bad = true;
		return 0;
	}
}

bool cfi_head_read(struct cfi_bytes *b, uint64_t address, struct cfi_head *ret)
{
	const uint8_t *start = b->at;
	uint8_t version = cfi_byte(b), frames_encoding = cfi_byte(b);
	uint8_t count_encoding = cfi_byte(b), table_encoding = cfi_byte(b);
	uint64_t frames = 0, count = 0;

	if (frames_encoding != ENCODED_OMIT)
		frames = cfi_pointer(b, frames_encoding, address + (uint64_t)(b->at - start));
	if (b->bad || version != 1)
		return false;
	if (table_encoding == ENCODED_TABLE && count_encoding != ENCODED_OMIT)
		count = cfi_pointer(b, count_encoding, address + (uint64_t)(b->at - start));
	if (b->bad || count > (uint64_t)(b->end - b->at) / 8)
		count = 0;
	*ret = (struct cfi_head){.address = address, .frames = frames, .count = count, .table = b->at};
	return true;
}

static uint64_t table_word(const struct cfi_head *head, uint64_t index)
{
	int32_t distance;

	memcpy(&distance, head->table + 4 * index, sizeof distance);
	return head->address + (uint64_t)(int64_t)distance;
}

uint64_t cfi_head_search(const struct cfi_head *head, uint64_t address)
{
	uint64_t first = 0, behind = head->count;

	while (behind - first > 1) {
		uint64_t middle = first + (behind - first) / 2;

		if (table_word(head, 2 * middle) <= address)
			first = middle;
		else
			behind = middle;
	}
	return table_word(head, 2 * first + 1);
}

bool cfi_record_open(const struct cfi_section *s, const uint8_t *at, struct cfi_bytes *ret)
{
	struct cfi_bytes b = {at, s->end, false};
	uint64_t length = cfi_fixed(&b, 4);

	if (length == UINT32_MAX)
		length = cfi_fixed(&b, 8);
	if (b.bad || !length || length > (uint64_t)(b.end - b.at))
		return false;
	*ret = (struct cfi_bytes){b.at, b.at + length, false};
	return true;
}

static bool read_augmentation(struct cfi_bytes *b, const uint8_t *letters, struct cfi_common *ret)
{
	uint64_t size;
	struct cfi_bytes data;

	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	size = cfi_uleb(b);
	data = *b;
	cfi_skip(b, size);
	if (b->bad)
		return false;
	data.end = b->at;
	ret->augmented = true;
	for (letters++; *letters; letters++)
		if (*letters == 'R')
			ret->encoding = cfi_byte(&data);
		else if (*letters == 'L')
			cfi_byte(&data);
		else if (*letters == 'S')
			ret->signal_frame = true;
		else if (*letters == 'P') /* where the personality is: only its size matters */
			cfi_pointer(&data, cfi_byte(&data) & ENCODED_FORM, 0);
		else if (*letters != 'B') /* what stands behind it cannot be told apart */
			break;
	return !data.bad;
}

static bool read_common(const struct cfi_section *s, const uint8_t *at, struct cfi_common *ret)
{
	struct cfi_bytes b;
	const uint8_t *letters;
	uint8_t version;
	uint64_t code_factor, column;
	int64_t data_factor;

	*ret = (struct cfi_common){0};
	if (!cfi_record_open(s, at, &b) || cfi_fixed(&b, 4) != 0)
		return false;
	version = cfi_byte(&b);
	letters = b.at;
	while (b.at - letters < LETTERS_MAX && cfi_byte(&b))
		continue;
	if (b.bad || b.at[-1] || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cfi_byte(&b) != 8 || cfi_byte(&b) != 0)) /* sizes of addresses and segments */
		return false;
	code_factor = cfi_uleb(&b);
	data_factor = cfi_sleb(&b);
	column = version == 1 ? cfi_byte(&b) : cfi_uleb(&b);
	if (column != CFI_RIP || data_factor < -FACTOR_MAX || data_factor > FACTOR_MAX || code_factor > FACTOR_MAX)
		return false;
	ret->code_factor = (uint32_t)code_factor;
	ret->data_factor = (int32_t)data_factor;
	if (!read_augmentation(&b, letters, ret) || b.bad)
		return false;
	ret->program = b.at;
	ret->end = b.end;
	ret->at = at;
	return true;
}

bool cfi_entry_read(const struct cfi_section *s, const uint8_t *at, struct cfi_common *common, struct cfi_entry *ret)
{
	struct cfi_bytes b;
	const uint8_t *field;
	uint64_t back, start, size;

	if (!cfi_record_open(s, at, &b))
		return false;
	field = b.at;
	back = cfi_fixed(&b, 4);
	if (b.bad || !back || back > (uint64_t)(field - s->bytes))
		return false;
	if (common->at != field - back && !read_common(s, field - back, common))
		return false;
	start = cfi_pointer(&b, common->encoding, cfi_address_of(s, b.at));
	size = cfi_pointer(&b, common->encoding & ENCODED_FORM, 0);
	if (common->augmented)
		cfi_skip(&b, cfi_uleb(&b));
	if (b.bad || !size || size > UINT64_MAX - start)
		return false;
	*ret = (struct cfi_entry){start, size, b.at, b.end};
	return true;
}
