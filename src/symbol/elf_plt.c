#include "symbol/elf_plt.h"

#include <stdlib.h>
#include <string.h>

#define SECTIONS_MAX 8

struct section {
	uint64_t start;
	size_t length, stub; /* bytes; of one stub */
	const uint8_t *bytes;
};

struct slot {
	uint64_t address;
	const char *name;
};

struct elf_plt {
	struct section sections[SECTIONS_MAX];
	size_t section_count;
	struct slot *slots; /* by address: what the loader puts where */
	size_t count, room;
	struct slot *lazy; /* the relocations of .rela.plt in their own order: a lazy stub pushes its number in there */
	size_t lazy_count;
};

void elf_plt_free(struct elf_plt *p)
{
	if (!p)
		return;
	free(p->slots);
	free(p->lazy);
	free(p);
}

static void take_section(struct elf_plt *p, Elf_Scn *scn, const GElf_Shdr *header, const char *name)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t stub = strcmp(name, ".plt.got") == 0 && header->sh_entsize != 16 ? 8 : 16;

	if (p->section_count == SECTIONS_MAX || !data || !data->d_buf || !(header->sh_flags & SHF_EXECINSTR))
		return;
	p->sections[p->section_count++] = (struct section){header->sh_addr, data->d_size, stub, data->d_buf};
}

static int add_slot(struct elf_plt *p, uint64_t address, const char *name, struct error *err)
{
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 256;
		struct slot *slots = reallocarray(p->slots, room, sizeof *slots);

		if (!slots)
			return error_set(err, "out of memory for %zu relocations", room);
		p->slots = slots;
		p->room = room;
	}
	p->slots[p->count++] = (struct slot){address, name};
	return 0;
}

/* Relocations that put a function's address into a slot; with `all`, others too, nameless, so that they keep their
 * numbers. */
static int take_relocations(struct elf_plt *p, const struct elf_file *file, Elf_Scn *scn, const GElf_Shdr *header,
			    bool all, struct error *err)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symbols;
	Elf_Scn *table = elf_getscn(file->elf, header->sh_link);
	GElf_Shdr table_header;

	if (!data || !data->d_buf || !gelf_getshdr(table, &table_header) || table_header.sh_type != SHT_DYNSYM)
		return 0;
	symbols = elf_getdata(table, NULL);
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela) && i < INT32_MAX; i++) {
		GElf_Rela rela;
		GElf_Sym s;
		const char *name = NULL;

		if (!gelf_getrela(data, (int)i, &rela))
			return 0;
		if ((GELF_R_TYPE(rela.r_info) == R_X86_64_JUMP_SLOT || GELF_R_TYPE(rela.r_info) == R_X86_64_GLOB_DAT) &&
		    symbols && gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &s))
			name = elf_strptr(file->elf, table_header.sh_link, s.st_name);
		if (name && name[0] == '\0')
			name = NULL;
		if ((name || all) && add_slot(p, rela.r_offset, name, err) < 0)
			return -1;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int keep_lazy_order(struct elf_plt *p, size_t first, struct error *err)
{
	p->lazy_count = p->count - first;
	if (p->lazy_count == 0)
		return 0;
	free(p->lazy);
	p->lazy = calloc(p->lazy_count, sizeof *p->lazy);
	if (!p->lazy)
		return error_set(err, "out of memory for %zu relocations", p->lazy_count);
	memcpy(p->lazy, p->slots + first, p->lazy_count * sizeof *p->lazy);
	return 0;
}

static int take_all(struct elf_plt *p, const struct elf_file *file, struct error *err)
{
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return 0;
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s; s = elf_nextscn(file->elf, s)) {
		size_t first = p->count;
		GElf_Shdr header;
		const char *name;
		bool lazy;

		if (!gelf_getshdr(s, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		if (!name)
			continue;
		if (header.sh_type == SHT_PROGBITS && (strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0))
			take_section(p, s, &header, name);
		lazy = strcmp(name, ".rela.plt") == 0;
		if (header.sh_type == SHT_RELA && (take_relocations(p, file, s, &header, lazy, err) < 0 ||
						   (lazy && keep_lazy_order(p, first, err) < 0)))
			return -1;
	}
	return 0;
}

int elf_plt_new(const struct elf_file *file, struct elf_plt **ret, struct error *err)
{
	struct elf_plt *p = calloc(1, sizeof *p);

	if (!p)
		return error_set(err, "out of memory");
	if (take_all(p, file, err) < 0) {
		elf_plt_free(p);
		return -1;
	}
	if (p->section_count == 0) {
		elf_plt_free(p);
		p = NULL;
	} else if (p->count) {
		qsort(p->slots, p->count, sizeof *p->slots, by_address);
	}
	*ret = p;
	return 0;
}

/* The slot at an address; several relocations of one slot, or none, tell nothing. */
static const char *name_of_slot(const struct elf_plt *p, uint64_t address)
{
	const struct slot key = {address, NULL};
	const struct slot *s = p->count ? bsearch(&key, p->slots, p->count, sizeof *s, by_address) : NULL;

	if (!s || (s > p->slots && s[-1].address == address) ||
	    (s + 1 < p->slots + p->count && s[1].address == address))
		return NULL;
	return s->name;
}

/* x86-64: [endbr64] [bnd] jmp *SLOT(%rip), or [endbr64] push $NUMBER ... of a stub whose jump stands in .plt.sec. */
static const char *name_of_stub(const struct elf_plt *p, const struct section *s, size_t offset)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *code = s->bytes + offset;
	size_t at = 0;
	int32_t value;

	if (memcmp(code, endbr64, sizeof endbr64) == 0)
		at = sizeof endbr64;
	if (code[at] == 0x68 && at + 5 <= s->stub) {
		memcpy(&value, code + at + 1, sizeof value);
		return value >= 0 && (size_t)value < p->lazy_count ? p->lazy[value].name : NULL;
	}
	if (code[at] == 0xf2 && at + 1 < s->stub)
		at++;
	if (at + 6 > s->stub || code[at] != 0xff || code[at + 1] != 0x25)
		return NULL;
	memcpy(&value, code + at + 2, sizeof value);
	return name_of_slot(p, s->start + offset + at + 6 + (uint64_t)(int64_t)value);
}

bool elf_plt_find(const struct elf_plt *p, uint64_t address, const char **ret_name)
{
	for (size_t i = 0; p && i < p->section_count; i++) {
		const struct section *s = &p->sections[i];
		size_t offset = (size_t)(address - s->start);

		if (address < s->start || address - s->start >= s->length)
			continue;
		offset -= offset % s->stub;
		*ret_name = s->length - offset >= s->stub ? name_of_stub(p, s, offset) : NULL;
		return true;
	}
	return false;
}
