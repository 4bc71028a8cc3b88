#include "record/perf_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "record/elf_headers.h"

#define BUCKETS 1024 /* a power of two */
#define TABLES_TOGETHER ((size_t)256 << 20)

struct segment {
	uint64_t offset, address, size;
};

struct perf_file {
	struct perf_file *next; /* of its bucket */
	char *path;
	uint8_t build_id[20];
	size_t build_id_length;
	uint32_t major, minor; /* these and inode only without a build-id */
	uint64_t inode;
	uint32_t module;
	struct segment *segments; /* executable ones */
	size_t segment_count;
	struct perf_tables *tables;
	bool tables_tried;
};

struct perf_files {
	struct module_files *files;
	struct perf_unwinder *unwinder;
	struct perf_file *buckets[BUCKETS];
	size_t tables_size;
	struct perf_tables *vdso;
	bool vdso_tried;
};

struct perf_files *perf_files_new(struct module_files *files, struct perf_unwinder *unwinder)
{
	struct perf_files *f = calloc(1, sizeof *f);

	if (f) {
		f->files = files;
		f->unwinder = unwinder;
	}
	return f;
}

void perf_files_free(struct perf_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (f->buckets[i]) {
			struct perf_file *file = f->buckets[i];

			f->buckets[i] = file->next;
			perf_tables_free(file->tables);
			free(file->segments);
			free(file->path);
			free(file);
		}
	}
	perf_tables_free(f->vdso);
	free(f);
}

static size_t bucket_of(const struct perf_mapping *m)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = m->path; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return (hash ^ hash >> 32) & (BUCKETS - 1);
}

static bool is_of(const struct perf_file *file, const struct perf_mapping *m)
{
	return file->build_id_length == m->build_id_length &&
	       memcmp(file->build_id, m->build_id, m->build_id_length) == 0 && file->major == m->major &&
	       file->minor == m->minor && file->inode == m->inode && strcmp(file->path, m->path) == 0;
}

/* Without them (out of memory, no ELF file) addresses stay what they are. */
static void read_segments(struct perf_file *file, int fd)
{
	struct elf_headers h;

	if (fd < 0 || !elf_headers_read(fd, &h))
		return;
	file->segments = calloc(h.count ? h.count : 1, sizeof *file->segments);
	for (size_t i = 0; file->segments && i < h.count; i++)
		if (h.items[i].p_type == PT_LOAD && h.items[i].p_flags & PF_X)
			file->segments[file->segment_count++] = (struct segment){
				h.items[i].p_offset, h.items[i].p_vaddr, h.items[i].p_filesz};
}

struct perf_file *perf_files_find(struct perf_files *f, int pid, const struct perf_mapping *m, bool program)
{
	struct perf_file **bucket = &f->buckets[bucket_of(m)], *file;

	for (file = *bucket; file; file = file->next)
		if (is_of(file, m))
			return file;
	file = calloc(1, sizeof *file);
	if (!file)
		return NULL;
	file->path = strdup(m->path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	memcpy(file->build_id, m->build_id, sizeof file->build_id);
	file->build_id_length = m->build_id_length;
	file->major = m->major;
	file->minor = m->minor;
	file->inode = m->inode;
	file->module = module_files_define(f->files, &(struct module_seen){
							     .pid = pid,
							     .path = m->path,
							     .program = program,
							     .start = m->start,
							     .end = m->start + m->length,
							     .build_id = file->build_id,
							     .build_id_length = file->build_id_length,
							     .inode = m->inode,
						     });
	read_segments(file, module_files_fd(f->files, file->module));
	file->next = *bucket;
	*bucket = file;
	return file;
}

uint32_t perf_file_module(const struct perf_file *file)
{
	return file->module;
}

const char *perf_file_path(const struct perf_file *file)
{
	return file->path;
}

uint64_t perf_file_bias(const struct perf_file *file, uint64_t start, uint64_t offset)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct segment *s = &file->segments[i];
		uint64_t first = s->offset & ~(page - 1);

		if (offset >= first && offset - first < s->size + (s->offset - first))
			return start - (offset - s->offset + s->address);
	}
	return 0;
}

static void forget_tables(struct perf_files *f)
{
	perf_unwinder_forget(f->unwinder);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct perf_file *file = f->buckets[i]; file; file = file->next) {
			if (!file->tables)
				continue;
			perf_tables_free(file->tables);
			file->tables = NULL;
			file->tables_tried = false;
		}
	}
	f->tables_size = 0;
}

const struct perf_tables *perf_file_tables(struct perf_files *f, struct perf_file *file)
{
	int fd = module_files_fd(f->files, file->module);

	if (file->tables_tried)
		return file->tables;
	if (f->tables_size > TABLES_TOGETHER)
		forget_tables(f);
	file->tables_tried = true;
	file->tables = fd >= 0 ? perf_tables_read(fd) : NULL;
	if (file->tables)
		f->tables_size += perf_tables_size(file->tables);
	return file->tables;
}

/* Ours is the same as that of any process of our class on this kernel. */
static struct perf_tables *read_vdso(void)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Phdr *segments = head ? (const Elf64_Phdr *)((const char *)head + head->e_phoff) : NULL;

	for (size_t i = 0; segments && i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			return perf_tables_of_image(head, segments[i].p_offset + segments[i].p_filesz);
	return NULL;
}

const struct perf_tables *perf_files_vdso(struct perf_files *f)
{
	if (!f->vdso_tried && sizeof(void *) == 8)
		f->vdso = read_vdso();
	f->vdso_tried = true;
	return f->vdso;
}
