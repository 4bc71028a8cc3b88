#include "record/module_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "record/code_maps.h"
#include "record/elf_headers.h"

/* Files that are kept open; a process that maps more is rare, and others need descriptors, too. */
#define OPEN_MAX 4096
#define RECENT 1024 /* a power of two */
/* The times of files are those of the kernel's last tick. */
#define CHANGE_LAG_NS (10 * NS_PER_MS)

/* What has been defined lately, by its path and build-id: asking again then costs no look at the file. */
struct recent {
	char *path; /* owned; NULL: empty */
	uint8_t build_id[32];
	size_t build_id_length;
	uint32_t module;
};

struct module_files {
	struct samples_writer *writer;
	struct warnings *warnings;
	int *fds; /* by module; -1: none */
	size_t count;
	size_t open, open_max;
	bool told;
	struct recent recent[RECENT];
};

int module_files_new(struct samples_writer *writer, struct warnings *warnings, struct module_files **ret,
		     struct error *err)
{
	struct module_files *f = calloc(1, sizeof *f);
	struct rlimit limit;

	if (!f)
		return error_set(err, "out of memory for the files of modules");
	f->writer = writer;
	f->warnings = warnings;
	f->open_max = OPEN_MAX;
	/* The hard limit: the soft one is raised to it once the target has been started. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max / 4 < f->open_max)
		f->open_max = limit.rlim_max / 4;
	*ret = f;
	return 0;
}

void module_files_free(struct module_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		fd_cleanup(&f->fds[i]);
	for (size_t i = 0; i < RECENT; i++)
		free(f->recent[i].path);
	free(f->fds);
	free(f);
}

/* A regular file only: opening a device may do something, and a FIFO would wait. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int problem;

	if (fd < 0)
		return -errno;
	problem = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOEXEC;
	if (problem)
		close(fd);
	return problem ? problem : fd;
}

static int open_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int open_format(const char *format, ...)
{
	CLEANUP(free_cleanup) char *path = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&path, format, args);
	va_end(args);
	if (length < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return open_regular(path);
}

/* A file that has no name any more, through the mapping itself; needs a privilege. */
static int open_mapping(const struct module_seen *seen)
{
	struct code_maps maps;
	int fd = -ENOENT;

	code_maps_init(&maps);
	if (seen->pid > 0 && seen->end && code_maps_read(&maps, seen->pid) == 0) {
		for (size_t i = 0; i < maps.count; i++) {
			const struct code_map *m = &maps.items[i];

			if (m->start < seen->start || m->end > seen->end || !m->inode)
				continue;
			fd = open_format("%s/%d/map_files/%" PRIx64 "-%" PRIx64, procfs_root(), seen->pid, m->start,
					 m->end);
			break;
		}
	}
	code_maps_release(&maps);
	return fd;
}

static bool has_build_id(int fd, const struct module_seen *seen)
{
	uint8_t id[sizeof(((struct recent *)0)->build_id)];
	struct elf_headers h;
	size_t length;

	if (!elf_headers_read(fd, &h))
		return false;
	length = elf_build_id(fd, &h, id, sizeof id);
	/* Of a longer one the first bytes are known. */
	length = length < sizeof id ? length : sizeof id;
	return length == seen->build_id_length && memcmp(id, seen->build_id, length) == 0;
}

/* Whether the process is still the program image that has the module mapped, and maps this file there. To be asked
 * when the file is open: what holds then held when it was opened. */
static bool is_mapped(const struct stat *st, const struct module_seen *seen, bool running)
{
	struct code_maps maps;
	bool found = false;

	code_maps_init(&maps);
	if (seen->pid > 0 && seen->witness && code_maps_read_of(&maps, seen->pid, seen->witness) == 0) {
		/* A layered file system may tell another inode there; what runs is the program all the same. */
		found = running;
		for (size_t i = 0; i < maps.count && !found; i++)
			found = maps.items[i].start >= seen->start && maps.items[i].end <= seen->end &&
				maps.items[i].inode == st->st_ino;
	}
	code_maps_release(&maps);
	return found;
}

/* Not written, renamed or linked since the program began: then what has the path now had it then. */
static bool is_older(const struct stat *st, const struct module_seen *seen)
{
	int64_t changed = (int64_t)st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec;

	return seen->since && changed + CHANGE_LAG_NS < seen->since + clock_wall_offset_ns();
}

/* Whether it can be shown that this is the file. `running`: it was opened as what the process runs. */
static bool is_the_file(int fd, const struct module_seen *seen, bool running)
{
	struct stat st;

	if (seen->build_id_length)
		return has_build_id(fd, seen);
	if (fstat(fd, &st) < 0)
		return false;
	if (seen->inode)
		return st.st_ino == seen->inode;
	return is_mapped(&st, seen, running) || (!running && is_older(&st, seen));
}

enum place { PLACE_RUNNING, PLACE_MAPPING_GONE, PLACE_ROOT, PLACE_MAPPING, PLACE_HERE, PLACES };

static int open_at(enum place place, const struct module_seen *seen)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(seen->path);
	bool gone = length > sizeof deleted && strcmp(seen->path + length - (sizeof deleted - 1), deleted) == 0;

	switch (place) {
	case PLACE_RUNNING:
		return seen->program && seen->pid > 0 ? open_format("%s/%d/exe", procfs_root(), seen->pid) : -ENOENT;
	case PLACE_MAPPING_GONE:
		return gone ? open_mapping(seen) : -ENOENT;
	case PLACE_ROOT:
		/* Under the path of one that is gone there may be another file by now. */
		if (seen->pid <= 0 || gone || !*seen->path)
			return -ENOENT;
		return open_format("%s/%d/%s/%s", procfs_root(), seen->pid, *seen->path == '/' ? "root" : "cwd",
				   seen->path + (*seen->path == '/'));
	case PLACE_MAPPING:
		return gone ? -ENOENT : open_mapping(seen);
	default:
		return gone || *seen->path != '/' ? -ENOENT : open_regular(seen->path);
	}
}

int module_files_open(const struct module_seen *seen)
{
	int problem = -ENOENT;

	for (enum place place = 0; place < PLACES; place++) {
		int fd = open_at(place, seen);

		if (fd >= 0 && is_the_file(fd, seen, place == PLACE_RUNNING))
			return fd;
		if (fd >= 0)
			close(fd);
		problem = fd >= 0 ? -ESTALE : problem == -ENOENT ? fd : problem;
	}
	return problem;
}

static struct recent *recent_of(struct module_files *f, const struct module_seen *seen)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = seen->path; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < seen->build_id_length; i++)
		hash = (hash ^ seen->build_id[i]) * UINT64_C(0x100000001b3);
	return &f->recent[(hash ^ hash >> 32) & (RECENT - 1)];
}

static bool is_recent(const struct recent *r, const struct module_seen *seen)
{
	/* Without a build-id another file may have come to stand under the same path. */
	return r->path && seen->build_id_length && r->build_id_length == seen->build_id_length &&
	       memcmp(r->build_id, seen->build_id, r->build_id_length) == 0 && strcmp(r->path, seen->path) == 0;
}

/* Takes the descriptor over. */
static void keep(struct module_files *f, uint32_t module, int fd)
{
	if (fd < 0)
		return;
	if (module >= f->count) {
		size_t count = module + 64;
		int *fds = reallocarray(f->fds, count, sizeof *fds);

		if (fds) {
			f->fds = fds;
			for (; f->count < count; f->count++)
				fds[f->count] = -1;
		}
	}
	if (module < f->count && f->fds[module] < 0 && f->open < f->open_max) {
		f->fds[module] = fd;
		f->open++;
		return;
	}
	if (module >= f->count || f->fds[module] < 0) {
		if (!f->told)
			warnings_add(f->warnings,
				     "More than %zu files with code were used: those past them are looked for by their "
				     "paths at the run's end.",
				     f->open);
		f->told = true;
	}
	close(fd);
}

static void remember(struct recent *r, const struct module_seen *seen, uint32_t module)
{
	char *path = strdup(seen->path);

	if (!path)
		return;
	free(r->path);
	*r = (struct recent){.path = path, .build_id_length = seen->build_id_length, .module = module};
	memcpy(r->build_id, seen->build_id, seen->build_id_length);
}

uint32_t module_files_define(struct module_files *f, const struct module_seen *seen)
{
	struct wire_module module = {.kind = WIRE_MODULE_FILE};
	struct module_seen bounded = *seen;
	struct recent *recent;
	struct stat st;
	uint32_t id;
	int fd;

	if (bounded.build_id_length > sizeof module.build_id)
		bounded.build_id_length = sizeof module.build_id;
	recent = recent_of(f, &bounded);
	if (is_recent(recent, &bounded))
		return recent->module;
	fd = module_files_open(&bounded);
	if (bounded.build_id_length)
		memcpy(module.build_id, bounded.build_id, bounded.build_id_length);
	module.build_id_length = (uint32_t)bounded.build_id_length;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		module.device = st.st_dev;
		module.inode = st.st_ino;
		module.size = (uint64_t)st.st_size;
		module.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	}
	id = samples_writer_module(f->writer, &module, bounded.path);
	keep(f, id, fd);
	/* Without its file it is tried again: another process may show it. */
	if (bounded.build_id_length && module.inode)
		remember(recent, &bounded, id);
	return id;
}

int module_files_fd(const struct module_files *f, uint32_t module)
{
	return module < f->count ? f->fds[module] : -1;
}

bool module_files_bias(int fd, uint64_t offset, uint64_t start, uint64_t *ret_bias)
{
	struct elf_headers h;

	if (!elf_headers_read(fd, &h) || !h.wide)
		return false;
	for (size_t i = 0; i < h.count; i++) {
		const Elf64_Phdr *p = &h.items[i];
		/* Mappings begin at whole pages, the part that they are made of need not. */
		uint64_t page = p->p_offset & ~(uint64_t)4095;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < page ||
		    offset >= p->p_offset + p->p_filesz)
			continue;
		*ret_bias = start - (p->p_vaddr - p->p_offset + offset);
		return true;
	}
	return false;
}
