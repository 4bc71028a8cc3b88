#include "record/cfi.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "record/cfi_tables.h"
#include "record/elf_headers.h"

#define TABLES_MAX ((uint64_t)64 << 20) /* bytes of .eh_frame; a browser has some 10 MiB */

/* Encodings of addresses (DW_EH_PE_...). */
#define ENCODED_FORM 0x0f
#define ENCODED_BASE 0x70
#define ENCODED_FROM_HERE 0x10
#define ENCODED_INDIRECT 0x80
#define ENCODED_OMITTED 0xff

struct place {
	uint64_t start, length;
	uint32_t offset; /* of the entry in the tables */
};

struct cfi {
	uint8_t *bytes;
	size_t size;
	uint64_t address; /* p_vaddr of the first byte */
	struct place *places;
	size_t count, room;
};

uint64_t cfi_pointer(struct cfi_bytes *b, uint8_t encoding, uint64_t at)
{
	uint64_t value;

	switch (encoding & ENCODED_FORM) {
	case 0x00:
	case 0x04:
	case 0x0c:
		value = cfi_fixed(b, 8);
		break;
	case 0x02:
		value = cfi_fixed(b, 2);
		break;
	case 0x03:
		value = cfi_fixed(b, 4);
		break;
	case 0x0a:
		value = (uint64_t)cfi_signed(b, 2);
		break;
	case 0x0b:
		value = (uint64_t)cfi_signed(b, 4);
		break;
	default:
		b->bad = true;
		return 0;
	}
	if (encoding & ENCODED_INDIRECT)
		b->bad = true;
	if ((encoding & ENCODED_BASE) == ENCODED_FROM_HERE)
		return value + at;
	if (encoding & ENCODED_BASE)
		b->bad = true;
	return value;
}

static uint64_t address_of(const struct cfi *c, const uint8_t *at)
{
	return c->address + (uint64_t)(at - c->bytes);
}

/* The record at `offset`: its bytes behind the length. False at the end of the tables, and for records of 4 GiB. */
static bool open_record(const struct cfi *c, size_t offset, struct cfi_bytes *ret)
{
	struct cfi_bytes all = {.at = c->bytes + offset, .end = c->bytes + c->size};
	uint64_t length = cfi_fixed(&all, 4);

	if (all.bad || length == 0 || length == UINT32_MAX || length > (uint64_t)(all.end - all.at))
		return false;
	*ret = (struct cfi_bytes){.at = all.at, .end = all.at + length};
	return true;
}

static void read_augmentation(const char *letters, struct cfi_bytes *data, struct cfi_common *ret)
{
	for (; *letters && !data->bad; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'L':
			cfi_skip(data, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_fixed(data, 1);
			/* Who handles exceptions does not matter here, wherever its address is to be found. */
			cfi_pointer(data, encoding & ENCODED_FORM, 0);
			break;
		case 'R':
			ret->encoding = (uint8_t)cfi_fixed(data, 1);
			break;
		case 'S':
			ret->signal = true;
			break;
		case 'B':
			break;
		default:
			return;
		}
	}
}

static bool read_common(const struct cfi *c, size_t offset, struct cfi_common *ret)
{
	struct cfi_bytes b, data;
	const char *letters;
	uint64_t length;
	uint8_t version;

	*ret = (struct cfi_common){0};
	if (!open_record(c, offset, &b) || cfi_fixed(&b, 4) != 0)
		return false;
	version = (uint8_t)cfi_fixed(&b, 1);
	letters = (const char *)b.at;
	if ((version != 1 && version != 3) || !memchr(b.at, 0, (size_t)(b.end - b.at)))
		return false;
	cfi_skip(&b, strlen(letters) + 1);
	ret->code_unit = cfi_uleb(&b);
	ret->data_unit = cfi_sleb(&b);
	ret->return_register = version == 1 ? cfi_fixed(&b, 1) : cfi_uleb(&b);
	ret->augmented = *letters == 'z';
	if (ret->augmented) {
		length = cfi_uleb(&b);
		data = b;
		cfi_skip(&b, length);
		data.end = b.at;
		read_augmentation(letters + 1, &data, ret);
		b.bad |= data.bad;
	} else if (*letters) {
		return false;
	}
	ret->program = b;
	return !b.bad && ret->return_register == CFI_RIP;
}

/* `last` and *common remember the entry before, as most have the same common part. */
static bool read_entry(const struct cfi *c, size_t offset, size_t *last, struct cfi_common *common,
		       struct cfi_entry *ret)
{
	struct cfi_bytes b;
	const uint8_t *id_at;
	uint64_t id;
	size_t at;

	if (!open_record(c, offset, &b))
		return false;
	id_at = b.at;
	id = cfi_fixed(&b, 4);
	if (b.bad || id == 0 || id > (uint64_t)(id_at - c->bytes))
		return false;
	at = (size_t)(id_at - c->bytes) - (size_t)id;
	if (at != *last) {
		*last = SIZE_MAX;
		if (!read_common(c, at, common))
			return false;
		*last = at;
	}
	ret->common = *common;
	ret->start = cfi_pointer(&b, common->encoding, address_of(c, b.at));
	ret->length = cfi_pointer(&b, common->encoding & ENCODED_FORM, 0);
	if (common->augmented)
		cfi_skip(&b, cfi_uleb(&b));
	ret->program = b;
	return !b.bad && ret->length > 0 && ret->length <= UINT64_MAX - ret->start;
}

static int by_start(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool add_place(struct cfi *c, const struct cfi_entry *entry, size_t offset)
{
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 256;
		struct place *places = reallocarray(c->places, room, sizeof *places);

		if (!places)
			return false;
		c->places = places;
		c->room = room;
	}
	c->places[c->count++] = (struct place){entry->start, entry->length, (uint32_t)offset};
	return true;
}

/* One pass over the tables, up to the record of length 0 that ends them. */
static bool make_index(struct cfi *c)
{
	struct cfi_common common = {0};
	struct cfi_bytes record;
	size_t offset = 0, last = SIZE_MAX;
	bool sorted = true;

	while (open_record(c, offset, &record)) {
		struct cfi_entry entry;

		if (read_entry(c, offset, &last, &common, &entry)) {
			sorted = sorted && (!c->count || c->places[c->count - 1].start <= entry.start);
			if (!add_place(c, &entry, offset))
				return false;
		}
		offset = (size_t)(record.end - c->bytes);
	}
	if (!sorted)
		qsort(c->places, c->count, sizeof *c->places, by_start);
	return c->count > 0;
}

/* Takes over `bytes`. */
static struct cfi *take_tables(uint8_t *bytes, size_t size, uint64_t address)
{
	struct cfi *c = bytes ? calloc(1, sizeof *c) : NULL;

	if (!c) {
		free(bytes);
		return NULL;
	}
	c->bytes = bytes;
	c->size = size;
	c->address = address;
	if (!make_index(c)) {
		cfi_free(c);
		return NULL;
	}
	return c;
}

struct cfi *cfi_of_tables(const void *bytes, size_t size, uint64_t address)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy)
		memcpy(copy, bytes, size);
	return take_tables(copy, size, address);
}

/* .eh_frame_hdr begins with its version, three encodings, and where .eh_frame is. */
static bool find_tables(const uint8_t head[12], uint64_t address, uint64_t *ret)
{
	struct cfi_bytes b = {.at = head + 4, .end = head + 12};

	*ret = cfi_pointer(&b, head[1], address + 4);
	return head[0] == 1 && head[1] != ENCODED_OMITTED && !b.bad;
}

static const Elf64_Phdr *find_head(const struct elf_headers *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->items[i].p_type == PT_GNU_EH_FRAME)
			return &h->items[i];
	return NULL;
}

/* By the program headers, which no stripping removes; by the section where a linker made no .eh_frame_hdr, as for
 * static programs. */
static bool locate_tables(int fd, const struct elf_headers *h, uint64_t *address, uint64_t *offset, uint64_t *size)
{
	const Elf64_Phdr *at = find_head(h);
	Elf64_Shdr section;
	uint8_t head[12];

	if (at)
		return elf_read_at(fd, at->p_offset, head, sizeof head) && find_tables(head, at->p_vaddr, address) &&
		       elf_headers_find(h, *address, offset, size);
	if (!elf_section_find(fd, ".eh_frame", &section) || section.sh_type == SHT_NOBITS)
		return false;
	*address = section.sh_addr;
	*offset = section.sh_offset;
	*size = section.sh_size;
	return true;
}

struct cfi *cfi_read(int fd)
{
	struct elf_headers h;
	uint64_t address, offset, size;
	struct stat file;
	uint8_t *bytes;

	if (!elf_headers_read(fd, &h) || !h.wide || h.machine != EM_X86_64 || fstat(fd, &file) < 0 ||
	    !locate_tables(fd, &h, &address, &offset, &size) || offset > (uint64_t)file.st_size)
		return NULL;
	/* No more than is there, so that a lying header costs no memory. */
	if (size > (uint64_t)file.st_size - offset)
		size = (uint64_t)file.st_size - offset;
	if (size > TABLES_MAX)
		size = TABLES_MAX;
	bytes = malloc(size ? size : 1);
	if (bytes && !elf_read_at(fd, offset, bytes, size)) {
		free(bytes);
		return NULL;
	}
	return take_tables(bytes, size, address);
}

struct cfi *cfi_of_image(const void *image, size_t size)
{
	const uint8_t *bytes = image;
	const Elf64_Ehdr *head = image;
	struct elf_headers h = {.wide = true};
	const Elf64_Phdr *at;
	uint64_t address, offset, left;

	if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phoff > size ||
	    head->e_phnum > ELF_HEADERS_MAX || head->e_phnum * sizeof *h.items > size - head->e_phoff)
		return NULL;
	h.machine = head->e_machine;
	h.count = head->e_phnum;
	memcpy(h.items, bytes + head->e_phoff, h.count * sizeof *h.items);
	at = h.machine == EM_X86_64 ? find_head(&h) : NULL;
	if (!at || at->p_offset > size || size - at->p_offset < 12 ||
	    !find_tables(bytes + at->p_offset, at->p_vaddr, &address) ||
	    !elf_headers_find(&h, address, &offset, &left) || offset > size)
		return NULL;
	return cfi_of_tables(bytes + offset, left < size - offset ? left : size - offset, address);
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	free(c->bytes);
	free(c->places);
	free(c);
}

size_t cfi_size(const struct cfi *c)
{
	return sizeof *c + c->size + c->room * sizeof *c->places;
}

bool cfi_find(const struct cfi *c, uint64_t address, struct cfi_row *ret)
{
	size_t low = 0, high = c->count, last = SIZE_MAX;
	struct cfi_common common = {0};
	struct cfi_entry entry;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->places[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - c->places[low - 1].start >= c->places[low - 1].length)
		return false;
	return read_entry(c, c->places[low - 1].offset, &last, &common, &entry) &&
	       cfi_run(&entry, address, c->bytes, c->address, ret);
}
