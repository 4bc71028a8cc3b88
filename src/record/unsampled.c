#include "record/unsampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/procfs.h"
#include "record/elf_headers.h"
#include "wire/sampler.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)

static void say(char reason[UNSAMPLED_REASON_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(char reason[UNSAMPLED_REASON_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, UNSAMPLED_REASON_MAX, format, args);
	va_end(args);
}

/* A file of the process, whole, as far as it may be read. */
static bool read_file(int pid, const char *name, struct buf *ret)
{
	CLEANUP(fd_cleanup) int fd = procfs_open("%d/%s", pid, name);

	while (fd >= 0 && ret->length < ENVIRONMENT_MAX) {
		char *to = buf_reserve(ret, 65536);
		ssize_t got = to ? read(fd, to, 65535) : -1;

		if (got < 0)
			return false;
		if (got == 0)
			return true;
		ret->length += (size_t)got;
		ret->text[ret->length] = '\0';
	}
	return fd >= 0;
}

static const struct elf_headers *own_headers(void)
{
	static struct elf_headers own;
	static bool asked;

	if (!asked) {
		CLEANUP(fd_cleanup) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

		asked = true;
		if (fd < 0 || !elf_headers_read(fd, &own))
			own.count = 0;
	}
	return &own;
}

/* The name of the loader that the program asks for; false where it asks for none. */
static bool loader_of(int fd, const struct elf_headers *h, char *ret, size_t size)
{
	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *p = &h->items[i];
		size_t length = p->p_filesz < size ? (size_t)p->p_filesz : size;

		if (p->p_type != PT_INTERP || length == 0)
			continue;
		if (!elf_read_at(fd, p->p_offset, ret, length))
			*ret = '\0';
		ret[length - 1] = '\0';
		return true;
	}
	return false;
}

/* What its program file says. */
static bool program_tells(int pid, char reason[UNSAMPLED_REASON_MAX])
{
	CLEANUP(fd_cleanup) int fd = procfs_open("%d/exe", pid);
	const struct elf_headers *own = own_headers();
	struct elf_headers h;
	char loader[256];
	const char *name;

	if (fd < 0)
		return false;
	if (!elf_headers_read(fd, &h)) {
		say(reason, "its program is of another architecture, or no ELF file");
		return true;
	}
	if (own->count && (h.machine != own->machine || h.wide != own->wide)) {
		say(reason, "its program is of another architecture (%d-bit, machine %u)", h.wide ? 64 : 32,
		    (unsigned)h.machine);
		return true;
	}
	if (!loader_of(fd, &h, loader, sizeof loader)) {
		say(reason, "it is statically linked, so nothing can be preloaded");
		return true;
	}
	name = strrchr(loader, '/');
	name = name ? name + 1 : loader;
	if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64", 4) == 0)
		return false;
	say(reason, "its loader is %.100s, and the sampler needs glibc's", name);
	return true;
}

/* AT_SECURE: the kernel has told the loader to distrust the environment. */
static bool secure_tells(int pid, char reason[UNSAMPLED_REASON_MAX])
{
	CLEANUP(buf_release) struct buf text;
	unsigned long pair[2];

	buf_init(&text);
	if (!read_file(pid, "auxv", &text))
		return false;
	for (size_t at = 0; at + sizeof pair <= text.length; at += sizeof pair) {
		memcpy(pair, text.text + at, sizeof pair);
		if (pair[0] != AT_SECURE || !pair[1])
			continue;
		say(reason, "it is set-user-id, set-group-id or has file capabilities: the loader ignores LD_PRELOAD");
		return true;
	}
	return false;
}

/* The variable's value in a block of "K=V" texts, NULL where it is not set. */
static const char *variable(const struct buf *block, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < block->length; at += strlen(block->text + at) + 1)
		if (strncmp(block->text + at, name, length) == 0 && block->text[at + length] == '=')
			return block->text + at + length + 1;
	return NULL;
}

static bool environment_tells(int pid, const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX])
{
	CLEANUP(buf_release) struct buf text;
	const char *preload, *folder;

	buf_init(&text);
	if (!read_file(pid, "environ", &text))
		return false;
	preload = variable(&text, "LD_PRELOAD");
	folder = variable(&text, SAMPLER_DIR_VARIABLE);
	if ((!preload || !*preload) && !folder)
		say(reason, "it was started with a cleared environment, without LD_PRELOAD");
	else if (!preload || !*preload)
		say(reason, "LD_PRELOAD was taken out of its environment");
	else if (!strstr(preload, SAMPLER_LIBRARY))
		say(reason, "LD_PRELOAD was replaced in its environment");
	else if (!folder || strcmp(folder, needs->rings) != 0)
		say(reason, "%s was changed in its environment", SAMPLER_DIR_VARIABLE);
	else
		return false;
	return true;
}

/* Whether the process sees the same file under that path as we do. */
static bool sees(int pid, const char *path)
{
	CLEANUP(free_cleanup) char *there = NULL;
	struct stat ours, its;

	if (stat(path, &ours) < 0)
		return false;
	if (asprintf(&there, "%s/%d/root%s", procfs_root(), pid, path) < 0) {
		there = NULL;
		return true;
	}
	/* Where looking is not permitted nothing is known. */
	if (stat(there, &its) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* The soft value of a line in /proc/PID/limits; -1: none, or not known. */
static long long limit_of(const struct buf *limits, const char *name)
{
	const char *line = strstr(limits->text, name);
	char *end;
	long long value;

	if (!line)
		return -1;
	line += strlen(name);
	value = strtoll(line, &end, 10);
	return end == line ? -1 : value;
}

bool unsampled_folder_full(const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX])
{
	struct statfs st;
	const char *what;

	if (statfs(needs->rings, &st) < 0)
		return false;
	/* Some file systems count no inodes at all. */
	what = st.f_files && !st.f_ffree ? "inodes" : !st.f_bavail ? "blocks" : NULL;
	if (what)
		say(reason, "the file system of %.150s has no free %s, so its file of samples could not be made",
		    needs->rings, what);
	return what;
}

static bool place_tells(int pid, const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX])
{
	CLEANUP(buf_release) struct buf status;
	CLEANUP(buf_release) struct buf limits;
	const char *uid;
	struct stat st;
	long effective;

	buf_init(&status);
	buf_init(&limits);
	if (!sees(pid, needs->library)) {
		say(reason, "it does not see the sampler (another root folder or mount namespace)");
		return true;
	}
	if (!sees(pid, needs->rings)) {
		say(reason, "it does not see the run directory (another root folder or mount namespace)");
		return true;
	}
	uid = read_file(pid, "status", &status) ? strstr(status.text, "\nUid:") : NULL;
	if (uid && sscanf(uid, "\nUid: %*d %ld", &effective) == 1 && stat(needs->rings, &st) == 0 && effective != 0 &&
	    effective != (long)st.st_uid && !(st.st_mode & S_IWOTH)) {
		say(reason, "it runs as user %ld, who may not write into the run directory", effective);
		return true;
	}
	if (unsampled_folder_full(needs, reason))
		return true;
	if (!read_file(pid, "limits", &limits))
		return false;
	if (limit_of(&limits, "Max address space") >= 0 || limit_of(&limits, "Max file size") >= 0) {
		say(reason, "its limits on memory or file sizes leave the sampler no room");
		return true;
	}
	return false;
}

bool unsampled_reason(int pid, const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX], char *program,
		      size_t program_size)
{
	CLEANUP(buf_release) struct buf maps;
	CLEANUP(free_cleanup) char *link = NULL;
	ssize_t length = -1;

	buf_init(&maps);
	if (asprintf(&link, "%s/%d/exe", procfs_root(), pid) < 0)
		link = NULL;
	else
		length = readlink(link, program, program_size - 1);
	program[length > 0 ? length : 0] = '\0';
	if (length < 0 && errno == EACCES)
		say(reason, "it runs as another user, or is set-user-id: the loader ignores LD_PRELOAD then");
	else if (program_tells(pid, reason) || secure_tells(pid, reason) || environment_tells(pid, needs, reason))
		return true;
	else if (place_tells(pid, needs, reason))
		return false;
	else if (read_file(pid, "maps", &maps) && strstr(maps.text, SAMPLER_LIBRARY))
		say(reason, "it was forked by a raw system call, or the sampler could not start in it");
	else
		say(reason, "its loader did not load the sampler");
	return false;
}
