#include "symbol/elf_frames.h"

#include <stdlib.h>
#include <string.h>

#define AUGMENTATION_MAX 16

/* How a pointer is written (DW_EH_PE_...). */
enum { PE_ABS = 0, PE_ULEB = 1, PE_UDATA2 = 2, PE_UDATA4 = 3, PE_UDATA8 = 4, PE_SLEB = 9, PE_SDATA2 = 10 };
enum { PE_SDATA4 = 11, PE_SDATA8 = 12, PE_PCREL = 0x10, PE_INDIRECT = 0x80, PE_OMIT = 0xff };

struct reader {
	const uint8_t *bytes, *at, *end;
	uint64_t address; /* of bytes[0] */
	bool failed;      /* something was asked for that is not there */
};

void elf_frames_init(struct elf_frames *f)
{
	*f = (struct elf_frames){0};
}

void elf_frames_release(struct elf_frames *f)
{
	free(f->items);
	elf_frames_init(f);
}

static int add(struct elf_frames *f, uint64_t start, uint64_t length, struct error *err)
{
	if (length == 0 || start + length < start)
		return 0;
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 1024;
		struct elf_range *items = reallocarray(f->items, room, sizeof *items);

		if (!items)
			return error_set(err, "out of memory for %zu unwind entries", room);
		f->items = items;
		f->room = room;
	}
	f->items[f->count++] = (struct elf_range){start, start + length};
	return 0;
}

static uint64_t fixed(struct reader *r, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < size) {
		r->failed = true;
		return 0;
	}
	memcpy(&value, r->at, size); /* little-endian, as elf_file_open has checked */
	r->at += size;
	return value;
}

static uint64_t leb(struct reader *r, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (;; shift += 7) {
		uint64_t byte = fixed(r, 1);

		if (r->failed || shift > 63) {
			r->failed = true;
			return 0;
		}
		value |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && (byte & 0x40) && shift + 7 < 64)
			value |= ~UINT64_C(0) << (shift + 7);
		return value;
	}
}

static uint64_t number(struct reader *r, unsigned format)
{
	switch (format & 0x0f) {
	case PE_ULEB:
		return leb(r, false);
	case PE_SLEB:
		return leb(r, true);
	case PE_UDATA2:
		return fixed(r, 2);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)fixed(r, 2);
	case PE_UDATA4:
		return fixed(r, 4);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)fixed(r, 4);
	case PE_ABS:
	case PE_UDATA8:
	case PE_SDATA8:
		return fixed(r, 8);
	default:
		r->failed = true;
		return 0;
	}
}

/* A pointer to code. Those relative to anything but their own place do not occur there. */
static uint64_t pointer(struct reader *r, unsigned encoding)
{
	uint64_t place = r->address + (uint64_t)(r->at - r->bytes);
	uint64_t value = number(r, encoding);

	if (encoding == PE_OMIT || (encoding & PE_INDIRECT) || (encoding & 0x70) > PE_PCREL)
		r->failed = true;
	return (encoding & 0x70) == PE_PCREL ? value + place : value;
}

/* How a CIE's entries write their addresses. The reader stands behind its id. */
static unsigned encoding_of(struct reader r, bool is_eh, bool *ret_known)
{
	char augmentation[AUGMENTATION_MAX] = {0};
	unsigned version = (unsigned)fixed(&r, 1), encoding = PE_ABS;
	size_t length = 0;

	for (char c; (c = (char)fixed(&r, 1)) != 0 && !r.failed; length++) {
		if (length == AUGMENTATION_MAX - 1)
			r.failed = true;
		else
			augmentation[length] = c;
	}
	if (!is_eh && version >= 4)
		r.failed |= fixed(&r, 1) != 8 || fixed(&r, 1) != 0; /* sizes of an address and of a segment */
	leb(&r, false);
	leb(&r, true);
	if (version == 1)
		fixed(&r, 1);
	else
		leb(&r, false);
	*ret_known = !r.failed && (augmentation[0] == 'z' || augmentation[0] == '\0');
	if (augmentation[0] != 'z')
		return encoding;
	leb(&r, false);
	for (const char *c = augmentation + 1; *c && !r.failed; c++) {
		if (*c == 'R')
			return (unsigned)fixed(&r, 1);
		if (*c == 'L')
			fixed(&r, 1);
		else if (*c == 'P') {
			unsigned how = (unsigned)fixed(&r, 1);

			number(&r, how);
		} else if (*c != 'S' && *c != 'B' && *c != 'G') {
			r.failed = true;
		}
	}
	*ret_known = !r.failed;
	return encoding;
}

/* The CIE last met, since entries of one come in a row. */
struct cie {
	size_t offset;
	unsigned encoding;
	bool known;
};

static bool find_cie(const struct reader *section, size_t offset, bool is_eh, struct cie *cie)
{
	struct reader r = *section;
	uint64_t length, id;
	bool wide;

	if (offset == cie->offset)
		return cie->known;
	*cie = (struct cie){.offset = offset};
	if (offset >= (size_t)(r.end - r.bytes))
		return false;
	r.at = r.bytes + offset;
	r.failed = false;
	length = fixed(&r, 4);
	wide = length == UINT32_MAX;
	if (wide)
		length = fixed(&r, 8);
	if (r.failed || length > (uint64_t)(r.end - r.at))
		return false;
	r.end = r.at + length;
	id = fixed(&r, wide && !is_eh ? 8 : 4);
	if (r.failed || id != (is_eh ? 0 : wide ? UINT64_MAX : UINT32_MAX))
		return false;
	cie->encoding = encoding_of(r, is_eh, &cie->known);
	return cie->known;
}

/* Reads the entry behind its length; the reader ends where the entry does. */
static int parse_entry(struct elf_frames *f, const struct reader *section, struct reader r, bool is_eh, bool wide,
		       uint64_t shift, struct cie *cie, struct error *err)
{
	size_t here = (size_t)(r.at - r.bytes);
	uint64_t id = fixed(&r, wide && !is_eh ? 8 : 4), start, length;

	if (r.failed || id == (is_eh ? 0 : wide ? UINT64_MAX : UINT32_MAX) || (is_eh && id > here))
		return 0;
	if (!find_cie(section, is_eh ? here - id : id, is_eh, cie))
		return 0;
	start = pointer(&r, cie->encoding);
	length = number(&r, cie->encoding);
	/* A function that the linker threw away stays as an entry at 0. */
	if (r.failed || start == 0)
		return 0;
	return add(f, start + shift, length, err);
}

int elf_frames_parse(struct elf_frames *f, const uint8_t *bytes, size_t length, uint64_t address, bool is_eh,
		     uint64_t shift, struct error *err)
{
	struct reader section = {.bytes = bytes, .at = bytes, .end = bytes + length, .address = address};
	struct cie cie = {.offset = SIZE_MAX};

	while (section.at < section.end) {
		uint64_t size = fixed(&section, 4);
		bool wide = size == UINT32_MAX;
		struct reader entry;

		if (wide)
			size = fixed(&section, 8);
		if (section.failed || size > (uint64_t)(section.end - section.at))
			return 0;
		if (size == 0 && is_eh) /* the end; what follows in the segment is something else */
			return 0;
		entry = section;
		entry.end = section.at + size;
		if (size && parse_entry(f, &section, entry, is_eh, wide, shift, &cie, err) < 0)
			return -1;
		section.at += size;
	}
	return 0;
}

/* Without section headers the loader's own table tells where .eh_frame is. */
static const uint8_t *eh_frame_by_segment(const struct elf_file *file, uint64_t *ret_address, size_t *ret_length)
{
	size_t count, length;

	if (elf_getphdrnum(file->elf, &count) < 0)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *table;
		struct reader r;
		GElf_Phdr p;

		if (!gelf_getphdr(file->elf, (int)i, &p) || p.p_type != PT_GNU_EH_FRAME)
			continue;
		table = elf_file_at(file, p.p_vaddr, &length);
		if (!table || length < 4 || table[0] != 1)
			return NULL;
		r = (struct reader){.bytes = table, .at = table + 4, .end = table + length, .address = p.p_vaddr};
		*ret_address = pointer(&r, table[1]);
		return r.failed ? NULL : elf_file_at(file, *ret_address, ret_length);
	}
	return NULL;
}

static int read_section(struct elf_frames *f, const struct elf_file *file, const char *name, bool is_eh,
			uint64_t shift, struct error *err)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(file, name, &header);
	Elf_Data *data;

	if (!section || header.sh_type == SHT_NOBITS)
		return 0;
	if ((header.sh_flags & SHF_COMPRESSED) && elf_compress(section, 0, 0) < 0)
		return 0;
	data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return 0;
	return elf_frames_parse(f, data->d_buf, data->d_size, header.sh_addr, is_eh, shift, err);
}

int elf_frames_read(struct elf_frames *f, const struct elf_file *file, uint64_t shift, struct error *err)
{
	size_t before = f->count, length;
	const uint8_t *bytes;
	uint64_t address;

	if (read_section(f, file, ".eh_frame", true, shift, err) < 0)
		return -1;
	if (f->count == before) {
		bytes = eh_frame_by_segment(file, &address, &length);
		if (bytes && elf_frames_parse(f, bytes, length, address, true, shift, err) < 0)
			return -1;
	}
	return read_section(f, file, ".debug_frame", false, shift, err);
}

static int by_start(const void *a, const void *b)
{
	const struct elf_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

void elf_frames_sort(struct elf_frames *f)
{
	if (f->count)
		qsort(f->items, f->count, sizeof *f->items, by_start);
}

const struct elf_range *elf_frames_find(const struct elf_frames *f, uint64_t address)
{
	size_t low = 0, high = f->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < f->items[low - 1].end ? &f->items[low - 1] : NULL;
}
