#include "record/elf_headers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define NOTES_MAX 16384 /* bytes of a block of notes that are looked at */

bool elf_read_at(int fd, uint64_t offset, void *to, size_t size)
{
	size_t got = 0;

	if (offset > INT64_MAX - size)
		return false;
	while (got < size) {
		ssize_t n = pread(fd, (char *)to + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static bool read_narrow(int fd, struct elf_headers *h)
{
	Elf32_Phdr narrow[ELF_HEADERS_MAX];
	Elf32_Ehdr head;

	if (!elf_read_at(fd, 0, &head, sizeof head) || head.e_phentsize != sizeof *narrow)
		return false;
	h->machine = head.e_machine;
	h->type = head.e_type;
	h->count = head.e_phnum < ELF_HEADERS_MAX ? head.e_phnum : ELF_HEADERS_MAX;
	if (!elf_read_at(fd, head.e_phoff, narrow, h->count * sizeof *narrow))
		return false;
	for (size_t i = 0; i < h->count; i++)
		h->items[i] = (Elf64_Phdr){
			.p_type = narrow[i].p_type,
			.p_flags = narrow[i].p_flags,
			.p_offset = narrow[i].p_offset,
			.p_vaddr = narrow[i].p_vaddr,
			.p_filesz = narrow[i].p_filesz,
			.p_memsz = narrow[i].p_memsz,
			.p_align = narrow[i].p_align,
		};
	return true;
}

static bool read_wide(int fd, struct elf_headers *h)
{
	Elf64_Ehdr head;

	if (!elf_read_at(fd, 0, &head, sizeof head) || head.e_phentsize != sizeof *h->items)
		return false;
	h->machine = head.e_machine;
	h->type = head.e_type;
	h->count = head.e_phnum < ELF_HEADERS_MAX ? head.e_phnum : ELF_HEADERS_MAX;
	return elf_read_at(fd, head.e_phoff, h->items, h->count * sizeof *h->items);
}

bool elf_headers_read(int fd, struct elf_headers *ret)
{
	unsigned char ident[EI_NIDENT];

	memset(ret, 0, sizeof *ret);
	if (!elf_read_at(fd, 0, ident, sizeof ident) || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return false;
	ret->wide = ident[EI_CLASS] == ELFCLASS64;
	if (!ret->wide && ident[EI_CLASS] != ELFCLASS32)
		return false;
	return ret->wide ? read_wide(fd, ret) : read_narrow(fd, ret);
}

/* In a block of notes, each padded to `align`. */
static size_t id_in_notes(const uint8_t *notes, size_t size, size_t align, uint8_t *ret, size_t room)
{
	Elf64_Nhdr note;

	for (size_t at = 0; at + sizeof note <= size;) {
		size_t name, content;

		memcpy(&note, notes + at, sizeof note);
		name = at + sizeof note;
		content = name + (note.n_namesz + align - 1) / align * align;
		if (content > size || note.n_descsz > size - content)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
		    memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
			memcpy(ret, notes + content, note.n_descsz < room ? note.n_descsz : room);
			return note.n_descsz;
		}
		at = content + (note.n_descsz + align - 1) / align * align;
	}
	return 0;
}

size_t elf_build_id(int fd, const struct elf_headers *h, uint8_t *ret, size_t room)
{
	static _Thread_local uint8_t notes[NOTES_MAX];

	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *p = &h->items[i];
		size_t size = p->p_filesz < sizeof notes ? (size_t)p->p_filesz : sizeof notes, length;

		if (p->p_type != PT_NOTE || !elf_read_at(fd, p->p_offset, notes, size))
			continue;
		length = id_in_notes(notes, size, p->p_align == 8 ? 8 : 4, ret, room);
		if (length)
			return length;
	}
	return 0;
}

bool elf_headers_find(const struct elf_headers *h, uint64_t address, uint64_t *ret_offset, uint64_t *ret_size)
{
	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *p = &h->items[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz) {
			*ret_offset = p->p_offset + (address - p->p_vaddr);
			*ret_size = p->p_filesz - (address - p->p_vaddr);
			return true;
		}
	}
	return false;
}

bool elf_section_find(int fd, const char *name, Elf64_Shdr *ret)
{
	Elf64_Ehdr head;
	Elf64_Shdr names, section;
	char text[32];
	size_t length = strlen(name) + 1;

	if (length > sizeof text || !elf_read_at(fd, 0, &head, sizeof head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof section ||
	    head.e_shstrndx >= head.e_shnum || head.e_shoff > INT64_MAX ||
	    !elf_read_at(fd, head.e_shoff + head.e_shstrndx * sizeof names, &names, sizeof names) ||
	    names.sh_offset > INT64_MAX)
		return false;
	for (size_t i = 0; i < head.e_shnum; i++)
		if (elf_read_at(fd, head.e_shoff + i * sizeof section, &section, sizeof section) &&
		    elf_read_at(fd, names.sh_offset + section.sh_name, text, length) &&
		    memcmp(text, name, length) == 0) {
			*ret = section;
			return true;
		}
	return false;
}
