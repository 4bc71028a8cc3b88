#include "record/perf_tables.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "cfi/program.h"
#include "record/elf_headers.h"

#define TABLES_MAX ((uint64_t)64 << 20) /* bytes of .eh_frame; a browser has some 10 MiB */
#define STATES_MAX 8u
#define HEAD_BYTES 12 /* of .eh_frame_hdr, before its table */

struct place {
	uint64_t start, size;
	uint32_t offset; /* of the entry in the tables */
};

struct perf_tables {
	uint8_t *bytes;
	struct cfi_section section; /* the bytes; address: p_vaddr */
	struct place *places;
	size_t count, room;
};

static int by_start(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool add_place(struct perf_tables *t, const struct cfi_entry *entry, size_t offset)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct place *places = reallocarray(t->places, room, sizeof *places);

		if (!places)
			return false;
		t->places = places;
		t->room = room;
	}
	t->places[t->count++] = (struct place){entry->start, entry->size, (uint32_t)offset};
	return true;
}

/* One pass over the tables, up to the record of length 0 that ends them. */
static bool make_index(struct perf_tables *t)
{
	struct cfi_common common = {.at = NULL};
	struct cfi_bytes record;
	const uint8_t *at = t->bytes;
	bool sorted = true;

	for (; cfi_record_open(&t->section, at, &record); at = record.end) {
		struct cfi_entry entry;

		if (!cfi_entry_read(&t->section, at, &common, &entry))
			continue;
		sorted = sorted && (!t->count || t->places[t->count - 1].start <= entry.start);
		if (!add_place(t, &entry, (size_t)(at - t->bytes)))
			return false;
	}
	if (!sorted)
		qsort(t->places, t->count, sizeof *t->places, by_start);
	return t->count > 0;
}

/* Takes over `bytes`. */
static struct perf_tables *take_tables(uint8_t *bytes, size_t size, uint64_t address)
{
	struct perf_tables *t = bytes ? calloc(1, sizeof *t) : NULL;

	if (!t) {
		free(bytes);
		return NULL;
	}
	t->bytes = bytes;
	t->section = (struct cfi_section){bytes, bytes + size, address, address};
	if (!make_index(t)) {
		perf_tables_free(t);
		return NULL;
	}
	return t;
}

struct perf_tables *perf_tables_of_bytes(const void *bytes, size_t size, uint64_t address)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy)
		memcpy(copy, bytes, size);
	return take_tables(copy, size, address);
}

/* .eh_frame_hdr begins with its version, three encodings, and where .eh_frame is. */
static bool find_tables(const uint8_t bytes[HEAD_BYTES], uint64_t address, uint64_t *ret)
{
	struct cfi_bytes b = {bytes, bytes + HEAD_BYTES, false};
	struct cfi_head head;

	if (!cfi_head_read(&b, address, &head) || !head.frames)
		return false;
	*ret = head.frames;
	return true;
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
	uint8_t head[HEAD_BYTES];

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

struct perf_tables *perf_tables_read(int fd)
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

struct perf_tables *perf_tables_of_image(const void *image, size_t size)
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
	if (!at || at->p_offset > size || size - at->p_offset < HEAD_BYTES ||
	    !find_tables(bytes + at->p_offset, at->p_vaddr, &address) ||
	    !elf_headers_find(&h, address, &offset, &left) || offset > size)
		return NULL;
	return perf_tables_of_bytes(bytes + offset, left < size - offset ? left : size - offset, address);
}

void perf_tables_free(struct perf_tables *t)
{
	if (!t)
		return;
	free(t->bytes);
	free(t->places);
	free(t);
}

size_t perf_tables_size(const struct perf_tables *t)
{
	return sizeof *t + (size_t)(t->section.end - t->section.bytes) + t->room * sizeof *t->places;
}

bool perf_tables_find(const struct perf_tables *t, uint64_t address, struct cfi_row *row)
{
	struct cfi_row remembered[STATES_MAX];
	struct cfi_states states = {remembered, STATES_MAX};
	struct cfi_common common = {.at = NULL};
	struct cfi_entry entry;
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->places[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && cfi_entry_read(&t->section, t->bytes + t->places[low - 1].offset, &common, &entry) &&
	       cfi_entry_holds(&entry, address) && cfi_run(&t->section, &common, &entry, address, &states, row);
}

const struct cfi_section *perf_tables_section(const struct perf_tables *t)
{
	return &t->section;
}
