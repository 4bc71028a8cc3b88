#include "source/inputs_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/procfs.h"

#define NAMED_LEAST (UINT64_C(1) << 20) /* bytes of a file */
/* Of one that nobody named; also of a mapping, and of a process's file pages. */
#define OPENED_LEAST (UINT64_C(16) << 20)
#define PATH_LONGEST 1024
#define ENTRIES_MAX 4096 /* of a folder */
#define PROCESSES_PER_CALL 16
#define LINKS_PER_PROCESS 256 /* of /proc/PID/fd */
#define MAPS_ROOM ((size_t)1 << 20)

void inputs_release(struct inputs *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].path);
	free(l->maps);
	*l = (struct inputs){0};
}

/* Of a regular file; false where it is none or not there. */
static bool look_at(int folder, const char *path, struct statx *ret)
{
	return statx(folder, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, ret) == 0 &&
	       S_ISREG(ret->stx_mode);
}

static bool is_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

static bool is_known(const struct inputs *l, const struct statx *st)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].inode == st->stx_ino && l->items[i].device[0] == st->stx_dev_major &&
		    l->items[i].device[1] == st->stx_dev_minor)
			return true;
	return false;
}

static void add(struct inputs *l, const char *path, const struct statx *st, bool opened)
{
	char *absolute;

	if (l->count == INPUTS_MAX || is_known(l, st))
		return;
	absolute = fs_absolute(path);
	if (!absolute || strlen(absolute) > PATH_LONGEST) {
		free(absolute);
		return;
	}
	l->items[l->count++] = (struct input){
		.path = absolute,
		.device = {st->stx_dev_major, st->stx_dev_minor},
		.inode = st->stx_ino,
		.opened = opened,
	};
}

static void close_folder(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length > wanted && strcmp(text + length - wanted, end) == 0;
}

/* Of a folder only what is a model's: `make -C FOLDER` reads little of what lies there. */
static bool is_of_a_model(const char *name)
{
	static const char *const ends[] = {".safetensors", ".gguf", ".ggml", ".pt", ".pth", ".onnx"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (ends_with(name, ends[i]))
			return true;
	return strncmp(name, "pytorch_model", 13) == 0;
}

static void add_folder(struct inputs *l, const char *path)
{
	CLEANUP(close_folder) DIR *folder = opendir(path);
	struct dirent *entry;

	for (size_t i = 0; folder && i < ENTRIES_MAX && l->count < INPUTS_MAX && (entry = readdir(folder)); i++) {
		CLEANUP(free_cleanup) char *file = NULL;
		struct statx st;

		if (!is_of_a_model(entry->d_name) || !look_at(dirfd(folder), entry->d_name, &st) ||
		    st.stx_size < NAMED_LEAST)
			continue;
		file = fs_join(path, entry->d_name);
		if (file)
			add(l, file, &st, false);
	}
}

static void add_word(struct inputs *l, const char *word)
{
	struct statx st;

	if (look_at(AT_FDCWD, word, &st)) {
		if (st.stx_size >= NAMED_LEAST)
			add(l, word, &st, false);
	} else if (fs_is_dir(word)) {
		add_folder(l, word);
	}
}

void inputs_named(struct inputs *l, char *const *argv)
{
	if (!argv || !argv[0])
		return;
	for (char *const *word = argv + 1; *word && l->count < INPUTS_MAX; word++) {
		const char *value = strchr(*word, '=');

		add_word(l, *word);
		if (value && value[1])
			add_word(l, value + 1);
	}
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Shared memory and devices, what the system's programs bring along, and the segments of a run directory. */
static bool is_of_no_interest(const char *path)
{
	size_t length = strlen(path);

	return begins_with(path, "/dev/") || begins_with(path, "/usr/lib") || begins_with(path, "/lib") ||
	       (strstr(path, "/segments/") && length > 4 && strcmp(path + length - 4, ".seg") == 0);
}

/* `found` is what a process has there. It may see other file systems than we do: then the path leads elsewhere. */
static void add_opened(struct inputs *l, const char *path, const struct statx *found)
{
	struct statx ours;

	if (path[0] == '/' && found->stx_size >= OPENED_LEAST && found->stx_nlink > 0 && !is_of_no_interest(path) &&
	    look_at(AT_FDCWD, path, &ours) && is_same(&ours, found))
		add(l, path, found, true);
}

/* The link's own permissions say what the file is open for: one that is written to as well is no input. */
static void add_descriptor(struct inputs *l, int folder, const char *name)
{
	char path[PATH_LONGEST + 2];
	struct statx st, link;
	ssize_t length;

	if (!look_at(folder, name, &st) || st.stx_size < OPENED_LEAST || is_known(l, &st))
		return;
	if (statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_MODE, &link) < 0 ||
	    (link.stx_mode & (S_IRUSR | S_IWUSR)) != S_IRUSR)
		return;
	length = readlinkat(folder, name, path, sizeof path - 1);
	if (length <= 0 || length > PATH_LONGEST)
		return;
	path[length] = '\0';
	add_opened(l, path, &st);
}

/* 0, or -errno where the folder cannot be opened. */
static int add_descriptors(struct inputs *l, const struct process *p)
{
	int fd = procfs_open("%d/fd", p->pid);
	CLEANUP(close_folder) DIR *folder = NULL;
	struct dirent *entry;

	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return -ENOMEM;
	}
	for (size_t i = 0; i < LINKS_PER_PROCESS && (entry = readdir(folder)); i++)
		if (entry->d_name[0] != '.')
			add_descriptor(l, fd, entry->d_name);
	return 0;
}

/* A line of /proc/PID/maps: BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH. */
struct mapping {
	uint64_t bytes;
	bool runs;
	const char *file; /* "DEVICE INODE", which tells files apart */
	size_t file_length;
	const char *path;
	size_t path_length;
};

static bool scan_mapping(const char *line, const char *end, struct mapping *ret)
{
	const char *at = line;
	char *next;
	unsigned long long begin = strtoull(at, &next, 16), until;

	if (*next != '-')
		return false;
	until = strtoull(next + 1, &next, 16);
	at = next;
	if (until < begin || end - at < 6 || *at != ' ')
		return false;
	ret->bytes = until - begin;
	ret->runs = at[3] == 'x';
	if (!scan_words(&at, end, 2)) /* permissions and offset */
		return false;
	ret->file = at;
	if (!scan_words(&at, end, 2))
		return false;
	ret->file_length = (size_t)(at - ret->file);
	while (at < end && *at == ' ')
		at++;
	ret->path = at;
	ret->path_length = (size_t)(end - at);
	return ret->path_length > 0 && *at == '/';
}

static bool is_run_elsewhere(const char *text, size_t length, const struct mapping *of)
{
	const char *line_end;

	for (const char *line = text; (line_end = memchr(line, '\n', (size_t)(text + length - line)));
	     line = line_end + 1) {
		struct mapping m;

		if (scan_mapping(line, line_end, &m) && m.runs && m.file_length == of->file_length &&
		    memcmp(m.file, of->file, m.file_length) == 0)
			return true;
	}
	return false;
}

static void add_mapping(struct inputs *l, const struct process *p, size_t length, const struct mapping *m)
{
	char path[PATH_MAX], *own;
	struct statx st;
	int root;

	if (m->bytes < OPENED_LEAST || m->runs || m->path_length > PATH_LONGEST)
		return;
	root = snprintf(path, sizeof path, "%s/%d/root", procfs_root(), p->pid);
	if (root < 0 || (size_t)root + m->path_length >= sizeof path)
		return;
	own = path + root;
	memcpy(own, m->path, m->path_length);
	own[m->path_length] = '\0';
	if (!look_at(AT_FDCWD, path, &st) || is_known(l, &st) || is_run_elsewhere(l->maps, length, m))
		return;
	add_opened(l, own, &st);
}

static void add_mappings(struct inputs *l, const struct process *p)
{
	const char *line_end;
	ssize_t length;

	if (p->rss < 0 || p->rss - p->anon < (int64_t)OPENED_LEAST)
		return;
	if (!l->maps)
		l->maps = malloc(MAPS_ROOM);
	if (!l->maps)
		return;
	length = procfs_read_file(l->maps, MAPS_ROOM, "%d/maps", p->pid);
	if (length <= 0)
		return;
	for (const char *line = l->maps; (line_end = memchr(line, '\n', (size_t)(l->maps + length - line)));
	     line = line_end + 1) {
		struct mapping m;

		if (scan_mapping(line, line_end, &m))
			add_mapping(l, p, (size_t)length, &m);
	}
}

void inputs_opened(struct inputs *l, const struct process_table *processes, struct warnings *warnings)
{
	size_t visited = 0;

	for (size_t turns = 0; turns < processes->count && visited < PROCESSES_PER_CALL && l->count < INPUTS_MAX;
	     turns++, l->at++) {
		const struct process *p;
		int failed;

		if (l->at >= processes->count)
			l->at = 0;
		p = &processes->items[l->at];
		if (!p->alive)
			continue;
		visited++;
		failed = add_descriptors(l, p);
		if (failed == -EACCES || failed == -EPERM)
			warnings_add(warnings,
				     "which files processes of other users have open is not known: reading %s/PID/fd "
				     "takes CAP_SYS_PTRACE there",
				     procfs_root());
		else if (failed == 0)
			add_mappings(l, p);
	}
}
