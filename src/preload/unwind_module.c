/* Asks the loader, then the module's headers in memory: see unwind_module.h. */
#include "preload/unwind_module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#define HEADERS_MAX 4096u /* of a file that are looked at: its first page */
#define NOTES_MAX 64u

/* Absent before glibc 2.35: then no module is ever found. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

/* Of the program itself, as the kernel told it. */
static struct {
	uintptr_t headers;
	uint16_t count;
} program;

void unwind_module_init(void)
{
	program.headers = getauxval(AT_PHDR);
	program.count = (uint16_t)getauxval(AT_PHNUM);
}

/* The program headers, which the linker puts behind the ELF header into the first page, if that is at `start`. */
static bool headers_behind(uintptr_t start, uintptr_t end, struct unwind_image *image)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)start;

	if (end < start || end - start < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    header->e_phoff > HEADERS_MAX || header->e_phoff % 8 ||
	    header->e_phnum > (HEADERS_MAX - header->e_phoff) / sizeof(Elf64_Phdr) ||
	    header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > end - start)
		return false;
	image->headers = start + header->e_phoff;
	image->headers_count = header->e_phnum;
	return true;
}

/* Where a module's segments do not adjoin, the loader answers with the one that was asked for: the headers are in
 * another, where the file's first byte is mapped. */
static void find_headers(const struct dl_find_object *found, struct unwind_image *image)
{
	struct dl_find_object first;
	uintptr_t base = found->dlfo_link_map->l_addr;

	image->headers_count = 0;
	if (headers_behind((uintptr_t)found->dlfo_map_start, (uintptr_t)found->dlfo_map_end, image))
		return;
	if (!*found->dlfo_link_map->l_name) {
		image->headers = program.headers;
		image->headers_count = program.count;
	} else if (_dl_find_object((void *)base, &first) == 0 && first.dlfo_link_map == found->dlfo_link_map) {
		headers_behind(base, (uintptr_t)first.dlfo_map_end, image);
	}
}

static void add_segment(struct unwind_image *image, struct unwind_module *module, const Elf64_Phdr *segment)
{
	uintptr_t low = module->bias + segment->p_vaddr, high = low + segment->p_memsz;

	if (high <= low)
		return;
	if (!image->base) /* they are sorted */
		image->base = low;
	module->start = low < module->start ? low : module->start;
	module->end = high > module->end ? high : module->end;
	if (!(segment->p_flags & PF_R) || low < image->base || high - image->base > UINT32_MAX ||
	    image->segments == UNWIND_SEGMENTS_MAX)
		return;
	if (segment->p_flags & PF_X)
		image->code |= (uint16_t)(1u << image->segments);
	image->low[image->segments] = (uint32_t)(low - image->base);
	image->high[image->segments++] = (uint32_t)(high - image->base);
}

bool unwind_module_find(uintptr_t at, struct unwind_image *ret_image, struct unwind_module *ret_module)
{
	struct dl_find_object found;

	if (!_dl_find_object || _dl_find_object((void *)at, &found) != 0)
		return false;
	*ret_module = (struct unwind_module){
		.start = (uintptr_t)found.dlfo_map_start,
		.end = (uintptr_t)found.dlfo_map_end,
		.bias = found.dlfo_link_map->l_addr,
		.path = found.dlfo_link_map->l_name,
	};
	ret_image->base = 0;
	ret_image->segments = ret_image->code = 0;
	ret_image->header = (uintptr_t)found.dlfo_eh_frame;
	find_headers(&found, ret_image);
	for (unsigned i = 0; i < ret_image->headers_count; i++) {
		const Elf64_Phdr *segment = (const Elf64_Phdr *)ret_image->headers + i;

		if (segment->p_type == PT_LOAD)
			add_segment(ret_image, ret_module, segment);
	}
	return true;
}

/* Looks for NT_GNU_BUILD_ID in notes at [at, end), which can be read. */
static bool find_build_id(uintptr_t at, uintptr_t end, struct unwind_module *module)
{
	for (unsigned i = 0; i < NOTES_MAX && end - at >= sizeof(Elf64_Nhdr); i++) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		uint64_t name = ((uint64_t)note->n_namesz + 3) & ~(uint64_t)3;
		uint64_t text = ((uint64_t)note->n_descsz + 3) & ~(uint64_t)3;

		at += sizeof *note;
		if (name > end - at || text > end - at - name)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp((const void *)at, "GNU", 4) == 0) {
			module->build_id = (const uint8_t *)(at + name);
			module->build_id_length = note->n_descsz;
			return true;
		}
		at += name + text;
	}
	return false;
}

void unwind_module_identify(const struct unwind_image *image, struct unwind_module *module)
{
	const Elf64_Phdr *segments = (const Elf64_Phdr *)image->headers;

	for (unsigned i = 0; i < image->headers_count; i++) {
		uintptr_t at = module->bias + segments[i].p_vaddr, low, limit;

		if (segments[i].p_type != PT_NOTE || at % 4)
			continue;
		limit = unwind_image_limit(image, at, &low);
		if (limit && segments[i].p_memsz <= limit - at && find_build_id(at, at + segments[i].p_memsz, module))
			return;
	}
}
