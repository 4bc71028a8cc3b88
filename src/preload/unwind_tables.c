/* Finding the entry (FDE) for an address, and what its common part (CIE) says: the formats of the Linux Standard Base's
 * .eh_frame_hdr and .eh_frame. The programs in them are run by unwind_program.c. */
#include "preload/unwind_tables.h"

#include "preload/unwind_program.h"
#include "preload/unwind_reader.h"

/* Pointer encodings: the low four bits are the format, the next three what it is relative to. */
enum { ENC_OMIT = 0xff, ENC_INDIRECT = 0x80, ENC_RELATIVE = 0x70, ENC_PCREL = 0x10, ENC_DATAREL = 0x30 };
#define ENC_TABLE 0x3b /* relative to the header, four bytes, signed: what every linker writes */

uintptr_t unwind_image_limit(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_low)
{
	for (unsigned i = 0; i < image->segments; i++)
		if (at - image->base >= image->low[i] && at - image->base < image->high[i]) {
			*ret_low = image->base + image->low[i];
			return image->base + image->high[i];
		}
	return 0;
}

bool unwind_image_is_code(const struct unwind_image *image, uintptr_t at)
{
	for (unsigned i = 0; i < image->segments; i++)
		if (image->code >> i & 1 && at - image->base >= image->low[i] && at - image->base < image->high[i])
			return true;
	return false;
}

/* A reader from `at` to the end of its segment; one that is bad where there is none. */
static struct unwind_reader reader_at(const struct unwind_image *image, uintptr_t at)
{
	uintptr_t low, limit = unwind_image_limit(image, at, &low);

	return (struct unwind_reader){(const uint8_t *)at, (const uint8_t *)(limit ? limit : at), !limit};
}

static uint64_t read_pointer(struct unwind_reader *r, uint8_t encoding, uintptr_t header)
{
	uint64_t base = 0, value;

	if ((encoding & ENC_RELATIVE) == ENC_PCREL)
		base = (uintptr_t)r->at;
	else if ((encoding & ENC_RELATIVE) == ENC_DATAREL)
		base = header;
	else if (encoding & ENC_RELATIVE)
		r->bad = true;
	switch (encoding & 0x0f) {
	case 0x01:
		value = unwind_read_uleb(r);
		break;
	case 0x02:
		value = unwind_read_bytes(r, 2);
		break;
	case 0x03:
		value = unwind_read_bytes(r, 4);
		break;
	case 0x09:
		value = (uint64_t)unwind_read_sleb(r);
		break;
	case 0x0a:
		value = (uint64_t)(int16_t)unwind_read_bytes(r, 2);
		break;
	case 0x0b:
		value = (uint64_t)(int32_t)unwind_read_bytes(r, 4);
		break;
	case 0x00:
	case 0x04:
	case 0x0c:
		value = unwind_read_bytes(r, 8);
		break;
	default:
		r->bad = true;
		return 0;
	}
	return base + value;
}

/* Puts r behind the length of an entry and its end at the entry's. */
static bool enter(struct unwind_reader *r)
{
	uint64_t length = unwind_read_bytes(r, 4);

	if (length == UINT32_MAX)
		length = unwind_read_bytes(r, 8);
	if (r->bad || length < 4 || length > (uint64_t)(r->end - r->at))
		return false;
	r->end = r->at + length;
	return true;
}

static bool read_augmentation(struct unwind_reader *r, const uint8_t *text, struct unwind_cie *cie)
{
	uint64_t size;
	struct unwind_reader data;

	if (!*text)
		return true;
	if (*text != 'z')
		return false;
	size = unwind_read_uleb(r);
	data = *r;
	unwind_skip(r, size);
	if (r->bad)
		return false;
	data.end = r->at;
	cie->has_augmentation = true;
	for (text++; *text; text++)
		if (*text == 'R')
			cie->pointer_encoding = unwind_read_u8(&data);
		else if (*text == 'L')
			unwind_read_u8(&data);
		else if (*text == 'S')
			cie->signal_frame = true;
		else if (*text == 'P') /* where the personality is: only its size matters */
			read_pointer(&data, unwind_read_u8(&data) & 0x0f, 0);
		else if (*text != 'B')
			return false;
	return !data.bad;
}

static bool read_cie(const struct unwind_image *image, uintptr_t at, struct unwind_cie *cie)
{
	struct unwind_reader r = reader_at(image, at);
	const uint8_t *text;
	uint8_t version;
	uint64_t column;

	*cie = (struct unwind_cie){.pointer_encoding = 0};
	if (!enter(&r) || unwind_read_bytes(&r, 4) != 0)
		return false;
	version = unwind_read_u8(&r);
	text = r.at;
	while (unwind_read_u8(&r))
		continue;
	if (r.bad)
		return false;
	if (version == 4 && (unwind_read_u8(&r) != 8 || unwind_read_u8(&r) != 0))
		return false;
	cie->code_factor = unwind_read_uleb(&r);
	cie->data_factor = unwind_read_sleb(&r);
	column = version == 1 ? unwind_read_u8(&r) : unwind_read_uleb(&r);
	if ((version != 1 && version != 3 && version != 4) || column != UNWIND_RIP)
		return false;
	if (cie->data_factor < -1024 || cie->data_factor > 1024 || cie->code_factor > 1024)
		return false;
	if (!read_augmentation(&r, text, cie) || r.bad)
		return false;
	cie->program = r.at;
	cie->end = r.end;
	return true;
}

/* Reads the entry at `at`. Returns false where it is not one, or does not cover pc. */
static bool read_entry(const struct unwind_image *image, uintptr_t at, uintptr_t pc, struct unwind_entry *entry,
		       struct unwind_cie *cie, struct unwind_reader *program)
{
	struct unwind_reader r = reader_at(image, at);
	uintptr_t field;
	uint64_t back, start, size;

	if (!enter(&r))
		return false;
	field = (uintptr_t)r.at;
	back = unwind_read_bytes(&r, 4);
	if (r.bad || !back || back > field || !read_cie(image, field - back, cie))
		return false;
	if (cie->pointer_encoding & ENC_INDIRECT)
		return false;
	start = read_pointer(&r, cie->pointer_encoding, image->header);
	size = read_pointer(&r, cie->pointer_encoding & 0x0f, 0);
	if (r.bad || pc < start || pc - start >= size || size > UINTPTR_MAX - start)
		return false;
	if (cie->has_augmentation)
		unwind_skip(&r, unwind_read_uleb(&r));
	if (r.bad)
		return false;
	*entry = (struct unwind_entry){start, start + size, image->header};
	*program = r;
	return true;
}

/* The place of the entry whose start is the last one not above pc, by the sorted table; 0 where there is none. */
static uintptr_t search(const struct unwind_image *image, uintptr_t pc)
{
	struct unwind_reader r = reader_at(image, image->header);
	uint8_t version = unwind_read_u8(&r), frame_encoding = unwind_read_u8(&r);
	uint8_t count_encoding = unwind_read_u8(&r), table_encoding = unwind_read_u8(&r);
	uint64_t count, first = 0, behind;

	if (r.bad || version != 1 || table_encoding != ENC_TABLE || count_encoding == ENC_OMIT)
		return 0;
	if (frame_encoding != ENC_OMIT)
		read_pointer(&r, frame_encoding, image->header);
	count = read_pointer(&r, count_encoding, image->header);
	if (r.bad || !count || count > (uint64_t)(r.end - r.at) / 8)
		return 0;
	for (behind = count; behind - first > 1;) {
		uint64_t middle = first + (behind - first) / 2;
		int32_t start;

		memcpy(&start, r.at + 8 * middle, sizeof start);
		if (image->header + (uintptr_t)(intptr_t)start <= pc)
			first = middle;
		else
			behind = middle;
	}
	r.at += 8 * first + 4;
	return image->header + (uintptr_t)(intptr_t)(int32_t)unwind_read_bytes(&r, 4);
}

bool unwind_tables_find(const struct unwind_image *image, uintptr_t pc, struct unwind_entry *ret_entry,
			struct unwind_row *ret_row)
{
	struct unwind_entry entry;
	struct unwind_cie cie;
	struct unwind_reader program;
	uintptr_t at = image->header ? search(image, pc) : 0;

	if (!at || !read_entry(image, at, pc, &entry, &cie, &program))
		return false;
	if (!unwind_program_run(&cie, &program, pc, &entry, ret_row))
		return false;
	*ret_entry = entry;
	return true;
}
