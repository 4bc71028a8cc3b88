#include "symbol/elf_debug.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define EMBEDDED_MAX (UINT64_C(256) << 20)

/* Opens what is there; 0 leaves *ret as it was initialised. */
static int try_open(const char *path, struct elf_file *ret)
{
	struct error err;
	int fd = elf_file_regular(path);

	if (fd >= 0 && elf_file_open(ret, fd, path, &err) == 0)
		return 1;
	elf_file_release(ret);
	return 0;
}

static int reject(struct elf_file *f)
{
	elf_file_release(f);
	return 0;
}

static bool has_build_id(const struct elf_file *f, const uint8_t *id, size_t length)
{
	const uint8_t *own;

	return length && elf_file_build_id(f, &own) == length && memcmp(own, id, length) == 0;
}

/* FOLDER/.build-id/xx/yyyy.debug */
static int by_build_id(const char *folder, const uint8_t *id, size_t length, struct elf_file *ret)
{
	CLEANUP(free_cleanup) char *path = NULL;
	char hex[2 * 64 + 1];

	if (length < 2 || length > 64)
		return 0;
	for (size_t i = 0; i < length; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", folder, hex, hex + 2) < 0) {
		path = NULL;
		return 0;
	}
	if (!try_open(path, ret))
		return 0;
	return has_build_id(ret, id, length) ? 1 : reject(ret);
}

/* The checksum that .gnu_debuglink has (that of zlib and Ethernet). */
static uint32_t checksum(const struct elf_file *f)
{
	uint32_t table[256], sum = UINT32_MAX;
	size_t size = 0;
	const char *bytes = elf_rawfile(f->elf, &size);

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? value >> 1 ^ UINT32_C(0xedb88320) : value >> 1;
		table[i] = value;
	}
	for (size_t i = 0; bytes && i < size; i++)
		sum = table[(sum ^ (unsigned char)bytes[i]) & 0xff] ^ sum >> 8;
	return ~sum;
}

/* Where both have build-ids these decide, which spares reading the whole file. */
static int accept_linked(const struct elf_file *module, uint32_t sum, const char *path, struct elf_file *ret)
{
	const uint8_t *id, *other;
	size_t length;

	if (!try_open(path, ret))
		return 0;
	length = elf_file_build_id(module, &id);
	if (length && elf_file_build_id(ret, &other))
		return has_build_id(ret, id, length) ? 1 : reject(ret);
	return checksum(ret) == sum ? 1 : reject(ret);
}

/* NAME beside the file, in .debug beside it, and in FOLDER under the file's own folder. */
static int by_link(const struct elf_file *module, const char *folder, struct elf_file *ret)
{
	GElf_Word sum;
	const char *name = dwelf_elf_gnu_debuglink(module->elf, &sum), *slash;
	const char *const patterns[][2] = {{"", "/"}, {"", "/.debug/"}, {folder, "/"}};
	int found = 0;

	slash = module->path ? strrchr(module->path, '/') : NULL;
	if (!name || !name[0] || strchr(name, '/') || !slash)
		return 0;
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !found; i++) {
		CLEANUP(free_cleanup) char *path = NULL;

		if (asprintf(&path, "%s%.*s%s%s", patterns[i][0], (int)(slash - module->path), module->path,
			     patterns[i][1], name) < 0) {
			path = NULL;
			return 0;
		}
		found = accept_linked(module, sum, path, ret);
	}
	return found;
}

int elf_debug_find(const struct elf_file *module, const char *folder, struct elf_file *ret)
{
	const uint8_t *id;
	size_t length = elf_file_build_id(module, &id);

	return by_build_id(folder, id, length, ret) || by_link(module, folder, ret);
}

int elf_debug_embedded(const struct elf_file *module, struct elf_file *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(module, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	int packed;

	if (!data || !data->d_buf || !data->d_size || data->d_size > EMBEDDED_MAX)
		return 0;
	/* elfutils unpacks whole files, so it is given one. */
	packed = memfd_create("debugdata", MFD_CLOEXEC);
	if (packed < 0)
		return 0;
	if (fs_write_all(packed, data->d_buf, data->d_size) < 0 || lseek(packed, 0, SEEK_SET) < 0) {
		close(packed);
		return 0;
	}
	ret->fd = packed;
	ret->elf = dwelf_elf_begin(packed);
	if (ret->elf && elf_kind(ret->elf) == ELF_K_ELF && gelf_getehdr(ret->elf, &ret->header) &&
	    ret->header.e_machine == module->header.e_machine &&
	    ret->header.e_ident[EI_CLASS] == ELFCLASS64 && ret->header.e_ident[EI_DATA] == ELFDATA2LSB)
		return 1;
	return reject(ret);
}

int elf_debug_shared(const struct elf_file *debug, const char *folder, const char *name, const uint8_t *build_id,
		     size_t length, struct elf_file *ret)
{
	CLEANUP(free_cleanup) char *path = NULL;
	const char *slash = debug->path ? strrchr(debug->path, '/') : NULL;

	if (by_build_id(folder, build_id, length, ret))
		return 1;
	if (name[0] == '/' || !slash)
		path = strdup(name);
	else if (asprintf(&path, "%.*s/%s", (int)(slash - debug->path), debug->path, name) < 0)
		path = NULL;
	if (!path || !try_open(path, ret))
		return 0;
	return has_build_id(ret, build_id, length) ? 1 : reject(ret);
}
