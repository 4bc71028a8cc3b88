#include "symbol/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#elif defined(__riscv)
#define MACHINE EM_RISCV
#else
#error "which e_machine do this machine's programs have?"
#endif

void elf_file_init(struct elf_file *f)
{
	*f = (struct elf_file){.fd = -1};
}

void elf_file_release(struct elf_file *f)
{
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	elf_file_init(f);
}

int elf_file_regular(const char *path)
{
	/* A pipe or a terminal in its place must neither be waited for nor become ours. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

int elf_file_open(struct elf_file *f, int fd, const char *path, struct error *err)
{
	struct stat st;

	f->fd = fd;
	f->path = path ? strdup(path) : NULL;
	if (path && !f->path)
		return error_set(err, "out of memory");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(err, "it is no regular file");
	elf_version(EV_CURRENT);
	f->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->header))
		return error_set(err, "it is no ELF file that can be read");
	if (f->header.e_ident[EI_CLASS] != ELFCLASS64 || f->header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    f->header.e_machine != MACHINE)
		return error_set(err, "it is made for another kind of machine");
	return 0;
}

size_t elf_file_build_id(const struct elf_file *f, const uint8_t **ret)
{
	const void *bytes;
	ssize_t length = dwelf_elf_gnu_build_id(f->elf, &bytes);

	if (length <= 0)
		return 0;
	*ret = bytes;
	return (size_t)length;
}

/* A record keeps the first 32 bytes of a longer build-id. */
static bool same_build_id(const struct symbols_request *r, const uint8_t *id, size_t length)
{
	return (length == r->build_id_length || (length > 32 && r->build_id_length == 32)) &&
	       memcmp(id, r->build_id, r->build_id_length) == 0;
}

static int check_same(const struct elf_file *f, const struct symbols_request *r, struct error *err)
{
	const uint8_t *id = NULL;
	size_t length;
	struct stat st;

	if (r->build_id_length) {
		length = elf_file_build_id(f, &id);
		return same_build_id(r, id, length) ? 0
						    : error_set(err, "changed since the run: its build-id is another");
	}
	if (!r->inode)
		return error_set(err, "it has no build-id, so it cannot be told whether it is the file of the run");
	if (fstat(f->fd, &st) < 0)
		return error_set(err, "%s", strerror(errno));
	if (st.st_dev != r->device || st.st_ino != r->inode || (uint64_t)st.st_size != r->size ||
	    st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec != r->mtime_ns)
		return error_set(err, "changed since the run: it is another file, or its size or time are others");
	return 0;
}

int elf_file_open_module(struct elf_file *f, const struct symbols_request *r, struct error *err)
{
	char lent[64];
	int fd;

	/* Opened anew, since the lent descriptor's position is shared; where /proc is not there, a copy does. */
	snprintf(lent, sizeof lent, "/proc/self/fd/%d", r->fd);
	fd = r->fd >= 0 ? elf_file_regular(lent) : elf_file_regular(r->path);
	if (fd < 0 && r->fd >= 0)
		fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, "it cannot be opened: %s",
				 errno == EINVAL ? "no regular file" : strerror(errno));
	return elf_file_open(f, fd, r->path, err) < 0 ? -1 : check_same(f, r, err);
}

Elf_Scn *elf_file_section(const struct elf_file *f, const char *name, GElf_Shdr *ret)
{
	size_t names;

	if (elf_getshdrstrndx(f->elf, &names) < 0)
		return NULL;
	for (Elf_Scn *s = elf_nextscn(f->elf, NULL); s; s = elf_nextscn(f->elf, s)) {
		const char *text;

		if (!gelf_getshdr(s, ret) || ret->sh_type == SHT_NOBITS)
			continue;
		text = elf_strptr(f->elf, names, ret->sh_name);
		if (text && strcmp(text, name) == 0)
			return s;
	}
	return NULL;
}

/* The n-th segment that is loaded and has bytes; false behind the last one. */
static bool next_load(const struct elf_file *f, size_t *at, GElf_Phdr *ret)
{
	size_t count;

	if (elf_getphdrnum(f->elf, &count) < 0)
		return false;
	while (*at < count)
		if (gelf_getphdr(f->elf, (int)(*at)++, ret) && ret->p_type == PT_LOAD)
			return true;
	return false;
}

bool elf_file_base(const struct elf_file *f, uint64_t *ret)
{
	size_t at = 0;
	GElf_Phdr p;

	if (!next_load(f, &at, &p))
		return false;
	*ret = p.p_vaddr;
	return true;
}

const uint8_t *elf_file_at(const struct elf_file *f, uint64_t address, size_t *ret_length)
{
	size_t size, at = 0;
	const char *bytes = elf_rawfile(f->elf, &size);
	GElf_Phdr p;

	while (bytes && next_load(f, &at, &p)) {
		uint64_t behind = address - p.p_vaddr;

		if (address < p.p_vaddr || behind >= p.p_filesz || p.p_offset > size || behind >= size - p.p_offset)
			continue;
		*ret_length = p.p_filesz - behind < size - p.p_offset - behind ? p.p_filesz - behind
										: size - p.p_offset - behind;
		return (const uint8_t *)bytes + p.p_offset + behind;
	}
	return NULL;
}
