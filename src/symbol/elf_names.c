#include "symbol/elf_names.h"

#include <stdlib.h>
#include <string.h>

enum kind { FUNCTION, SIZED_LABEL, BARE_LABEL, KINDS };

struct elf_symbol {
	uint64_t start, end; /* of a bare label: the end of its section, until elf_names_sort */
	const char *name;
	uint8_t kind;
	uint8_t rank; /* among names of one place: the lowest is shown */
};

void elf_names_init(struct elf_names *n)
{
	*n = (struct elf_names){0};
}

void elf_names_release(struct elf_names *n)
{
	free(n->symbols);
	for (int kind = 0; kind < KINDS; kind++)
		free(n->extents[kind]);
	elf_names_init(n);
}

/* malloc before __libc_malloc, global before weak, both before local, which is the author's own name for it; a function
 * before the one that chooses it at load. */
static uint8_t rank_of(const GElf_Sym *s, const char *name)
{
	static const uint8_t by_binding[] = {[STB_LOCAL] = 9, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
	unsigned binding = GELF_ST_BIND(s->st_info), underscores = 0, rank;

	while (name[underscores] == '_' && underscores < 3)
		underscores++;
	if (underscores && (name[underscores] == 'Z' || name[underscores] == 'R')) /* mangled: _Z, __Z, _R */
		underscores = 0;
	rank = 4 * underscores + (binding < sizeof by_binding ? by_binding[binding] : 0);
	if (GELF_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
		rank += 32;
	return (uint8_t)rank;
}

/* Not a place in code that a person wrote: the assembler's and linker's own marks. */
static bool is_mark(const char *name)
{
	return name[0] == '\0' || name[0] == '$' || strncmp(name, ".L", 2) == 0 || strncmp(name, ".annobin", 8) == 0 ||
	       strncmp(name, "__start_", 8) == 0 || strncmp(name, "__stop_", 7) == 0 || strcmp(name, "_etext") == 0 ||
	       strcmp(name, "etext") == 0 || strcmp(name, "__etext") == 0;
}

/* The section last met, since symbols of one come in a row. */
struct section {
	unsigned index; /* SHN_UNDEF: none yet */
	bool found;
	GElf_Shdr header;
};

static const GElf_Shdr *section_of(const struct elf_file *file, unsigned index, struct section *last)
{
	if (index != last->index) {
		last->index = index;
		last->found = gelf_getshdr(elf_getscn(file->elf, index), &last->header);
	}
	return last->found ? &last->header : NULL;
}

/* Whether the symbol names code at all; then *ret lacks its name only. */
static bool take(const struct elf_file *file, const GElf_Sym *s, struct section *last, struct elf_symbol *ret)
{
	unsigned type = GELF_ST_TYPE(s->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	const GElf_Shdr *section;
	uint64_t room;

	if ((!function && type != STT_NOTYPE) || s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE)
		return false;
	/* In a debug file the code's section has no bytes, but still its place and its flags. */
	section = section_of(file, s->st_shndx, last);
	if (!section || !(section->sh_flags & SHF_EXECINSTR) || s->st_value < section->sh_addr ||
	    s->st_value - section->sh_addr >= section->sh_size)
		return false;
	room = section->sh_size - (s->st_value - section->sh_addr);
	*ret = (struct elf_symbol){.start = s->st_value};
	ret->end = s->st_value + (s->st_size && s->st_size < room ? s->st_size : room);
	ret->kind = s->st_size == 0 ? BARE_LABEL : function ? FUNCTION : SIZED_LABEL;
	return ret->end > ret->start;
}

static int add(struct elf_names *n, const struct elf_symbol *symbol, struct error *err)
{
	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 1024;
		struct elf_symbol *symbols = reallocarray(n->symbols, room, sizeof *symbols);

		if (!symbols)
			return error_set(err, "out of memory for %zu symbols", room);
		n->symbols = symbols;
		n->room = room;
	}
	n->symbols[n->count++] = *symbol;
	return 0;
}

/* More sections than 16 bits can count: the real index of a symbol's section stands in a table of its own. */
static Elf_Data *wide_indices(const struct elf_file *file, const Elf_Scn *table)
{
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s; s = elf_nextscn(file->elf, s)) {
		GElf_Shdr header;

		if (gelf_getshdr(s, &header) && header.sh_type == SHT_SYMTAB_SHNDX &&
		    header.sh_link == elf_ndxscn((Elf_Scn *)table))
			return elf_getdata(s, NULL);
	}
	return NULL;
}

static int read_table(struct elf_names *n, const struct elf_file *file, Elf_Scn *section, uint64_t shift,
		      size_t *ret_count, struct error *err)
{
	Elf_Data *data = elf_getdata(section, NULL), *wide = wide_indices(file, section);
	struct section last = {.index = SHN_UNDEF};
	GElf_Shdr header;

	if (!data || !data->d_buf || !gelf_getshdr(section, &header) || header.sh_entsize == 0)
		return 0;
	for (size_t i = 1; i < data->d_size / sizeof(Elf64_Sym) && i <= INT32_MAX; i++) {
		struct elf_symbol symbol;
		Elf32_Word index;
		GElf_Sym s;

		if (!gelf_getsymshndx(data, wide, (int)i, &s, &index))
			return 0;
		if (s.st_shndx == SHN_XINDEX && wide && index < SHN_LORESERVE)
			s.st_shndx = (uint16_t)index;
		if (!take(file, &s, &last, &symbol))
			continue;
		symbol.name = elf_strptr(file->elf, header.sh_link, s.st_name);
		if (!symbol.name || is_mark(symbol.name))
			continue;
		symbol.rank = rank_of(&s, symbol.name);
		symbol.start += shift;
		symbol.end += shift;
		if (add(n, &symbol, err) < 0)
			return -1;
		(*ret_count)++;
	}
	return 0;
}

int elf_names_read(struct elf_names *n, const struct elf_file *file, unsigned table, uint64_t shift, size_t *ret_count,
		   struct error *err)
{
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s; s = elf_nextscn(file->elf, s)) {
		GElf_Shdr header;

		if (gelf_getshdr(s, &header) && header.sh_type == table)
			return read_table(n, file, s, shift, ret_count, err);
	}
	return 0;
}

/* Of those with one start the name to show comes last. */
static int by_start(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;
	size_t one, other;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	one = strlen(x->name);
	other = strlen(y->name);
	if (one != other)
		return one > other ? -1 : 1;
	return -strcmp(x->name, y->name);
}

/* Lays the extents of one kind side by side: where some overlap, the one that began last counts, as an inner label
 * does. `open` has room for as many symbols as there are. */
static int lay_out(struct elf_names *n, enum kind kind, size_t *open, struct error *err)
{
	struct elf_names_extent *out = calloc(2 * n->count + 1, sizeof *out);
	size_t count = 0, depth = 0;
	uint64_t at = 0;

	if (!out)
		return error_set(err, "out of memory for %zu symbols", n->count);
	for (size_t i = 0; i <= n->count; i++) {
		uint64_t start = i < n->count ? n->symbols[i].start : UINT64_MAX;

		if (i < n->count && n->symbols[i].kind != kind)
			continue;
		while (depth) {
			const struct elf_symbol *top = &n->symbols[open[depth - 1]];
			uint64_t from = at > top->start ? at : top->start, to = top->end < start ? top->end : start;

			if (from < to)
				out[count++] = (struct elf_names_extent){from, to, top->name};
			at = to > at ? to : at;
			if (top->end > start)
				break;
			depth--;
		}
		if (i < n->count)
			open[depth++] = i;
	}
	n->extents[kind] = out;
	n->extent_counts[kind] = count;
	return 0;
}

/* Bare labels end where their unwind entry does, at the latest where another symbol begins. */
static void end_labels(struct elf_names *n, const struct elf_frames *frames)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = n->count; i-- > 0;) {
		struct elf_symbol *s = &n->symbols[i];

		if (i + 1 < n->count && n->symbols[i + 1].start != s->start)
			next = n->symbols[i + 1].start;
		if (s->kind == BARE_LABEL) {
			const struct elf_range *frame = elf_frames_find(frames, s->start);
			uint64_t limit = frame ? frame->end : s->start;

			if (limit > next)
				limit = next;
			if (s->end > limit)
				s->end = limit;
		}
	}
}

int elf_names_sort(struct elf_names *n, const struct elf_frames *frames, struct error *err)
{
	size_t *open = calloc(n->count + 1, sizeof *open);
	int result = open ? 0 : error_set(err, "out of memory for %zu symbols", n->count);

	if (n->count)
		qsort(n->symbols, n->count, sizeof *n->symbols, by_start);
	end_labels(n, frames);
	for (int kind = 0; kind < KINDS && result == 0; kind++)
		result = lay_out(n, (enum kind)kind, open, err);
	free(open);
	return result;
}

static const char *find_extent(const struct elf_names_extent *extents, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (extents[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < extents[low - 1].end ? extents[low - 1].name : NULL;
}

const char *elf_names_find(const struct elf_names *n, uint64_t address, bool sure)
{
	const char *name = NULL;

	for (int kind = 0; kind < (sure ? SIZED_LABEL : KINDS) && !name; kind++)
		name = find_extent(n->extents[kind], n->extent_counts[kind], address);
	return name;
}
