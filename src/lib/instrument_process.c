/* The recording of a process' calls: where it goes, its begin and end, its clock, and what code is mapped where.
 *
 * Modules are noted when the first of their functions is called, by that call: it is then certainly mapped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/instrument.h"
#include "lib/last_error.h"

#define PAIR_AGAIN_NS INT64_C(100000000)
#define DELETED " (deleted)"

/* Stands for the recording while there is none. */
static struct calls nothing;
struct calls *_Atomic calls_now = &nothing;
_Atomic int calls_stage = CALLS_UNSTARTED;
static char folder[PATH_MAX];
static uint32_t runs;

/* A mapping, as /proc/self/maps has it. */
struct mapping {
	uint64_t start, end, offset;
	char path[PATH_MAX];
};

int instrument_path(const struct calls *c, char path[PATH_MAX], const char *suffix)
{
	int length = snprintf(path, PATH_MAX, "%s/" CALLS_FILE_PREFIX "%d-%016" PRIx64 "%s", folder, (int)getpid(),
			      c->nonce, suffix);

	return length < 0 || length >= PATH_MAX ? ENAMETOOLONG : 0;
}

/* Adds a line to the process' file; 0 or errno. Where the disk is full the modules stay unknown. */
static int append(const struct calls *c, int flags, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int append(const struct calls *c, int flags, const char *format, ...)
{
	char line[PATH_MAX + 512], path[PATH_MAX];
	int failed = instrument_path(c, path, CALLS_PROCESS_SUFFIX), fd, length;
	va_list args;

	if (failed)
		return failed;
	va_start(args, format);
	length = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
	if (fd < 0)
		return errno;
	if (length >= 0 && (size_t)length < sizeof line && write(fd, line, (size_t)length) != length)
		failed = errno ? errno : ENOSPC;
	close(fd);
	return failed;
}

static void append_pair(struct calls *c)
{
	struct region_clock_pair pair = clock_pair(c->tsc);

	c->paired_ns = pair.mono_ns;
	append(c, 0, "pair %" PRIu64 " %" PRId64 "\n", pair.clock, pair.mono_ns);
}

/* The lock is held. Returns 0 or errno. */
static int begin(struct calls *c)
{
	int failed;

	c->tsc = clock_is_tsc();
	if (getrandom(&c->nonce, sizeof c->nonce, GRND_NONBLOCK) != (ssize_t)sizeof c->nonce)
		c->nonce = (uint64_t)monotonic_ns();
	c->files = 0;
	c->refused = 0;
	c->idle = NULL;
	c->noted_count = 0;
	failed = append(c, O_CREAT | O_EXCL, CALLS_PROCESS_FIRST "%d %s\n", (int)getpid(), c->tsc ? "tsc" : "ns");
	if (failed)
		return failed;
	append_pair(c);
	atomic_store_explicit(&c->run, ++runs, memory_order_release);
	return 0;
}

/* Memory that a fork's child finds empty. */
static struct calls *memory(void)
{
	struct calls *c = atomic_load(&calls_now), *before = &nothing;

	if (c != &nothing)
		return c;
	c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED)
		return NULL;
	if (madvise(c, sizeof *c, MADV_WIPEONFORK) == 0 && atomic_compare_exchange_strong(&calls_now, &before, c))
		return c;
	munmap(c, sizeof *c);
	return before == &nothing ? NULL : before;
}

/* Whether the environment asks for it; an absolute path, since the program may change its folder. */
static bool is_asked_for(void)
{
	const char *named = secure_getenv(CALLS_FOLDER_VARIABLE);

	if (!named || *named != '/' || strlen(named) >= sizeof folder)
		return false;
	memcpy(folder, named, strlen(named) + 1);
	return true;
}

struct calls *instrument_locked(void)
{
	int stage = atomic_load(&calls_stage);
	struct calls *c;

	if (stage == CALLS_UNSTARTED) {
		stage = is_asked_for() ? CALLS_FOLLOWING : CALLS_OFF;
		atomic_store(&calls_stage, stage);
	}
	c = stage == CALLS_OFF ? NULL : memory();
	if (!c)
		return NULL;
	pthread_mutex_lock(&c->lock);
	if (atomic_load(&c->run))
		return c;
	/* In a fork's child of assay_profile nothing is recorded. */
	if (stage != CALLS_FOLLOWING || begin(c) != 0) {
		atomic_store(&calls_stage, CALLS_OFF);
		pthread_mutex_unlock(&c->lock);
		return NULL;
	}
	return c;
}

/* So that a program without hooks can be told from one that has not loaded this library. */
static __attribute__((constructor)) void at_start(void)
{
	struct calls *c = getenv(CALLS_FOLDER_VARIABLE) ? instrument_locked() : NULL;

	if (c)
		pthread_mutex_unlock(&c->lock);
}

static void end(struct calls *c)
{
	append_pair(c);
	append(c, 0, "end %" PRIu64 "\n", clock_now(c->tsc));
}

/* Destructors that come later may still be recorded. */
static __attribute__((destructor)) void at_end(void)
{
	struct calls *c = atomic_load(&calls_now);

	if (c != &nothing && atomic_load(&c->run))
		end(c);
}

/* Returns 0 or errno; EBUSY: there is a recording. */
static int begin_at(const char *path)
{
	struct calls *c = memory();
	int failed;

	if (!c)
		return ENOMEM;
	pthread_mutex_lock(&c->lock);
	failed = atomic_load(&c->run) ? EBUSY : strlen(path) >= sizeof folder ? ENAMETOOLONG : 0;
	if (!failed) {
		memcpy(folder, path, strlen(path) + 1);
		failed = begin(c);
	}
	if (!failed)
		atomic_store(&calls_stage, CALLS_ONCE);
	pthread_mutex_unlock(&c->lock);
	return failed;
}

int instrument_begin(const char *path)
{
	struct entry entry;
	struct calls *c;
	int failed;

	if (!recording_enter(&entry))
		return last_error_set("assay_profile cannot be called from a signal handler that has interrupted this "
				      "library");
	c = instrument_locked();
	failed = c ? EBUSY : 0;
	if (c)
		pthread_mutex_unlock(&c->lock);
	else
		failed = begin_at(path);
	recording_leave(&entry);
	if (failed == EBUSY)
		return last_error_set("calls are being recorded already: by another assay_profile, or since $%s is set",
				      CALLS_FOLDER_VARIABLE);
	return failed ? last_error_set("%s: calls cannot be recorded there: %s", path, strerror(failed)) : 0;
}

void instrument_end(void)
{
	struct calls *c = atomic_load(&calls_now);
	struct entry entry;

	if (!recording_enter(&entry))
		return;
	pthread_mutex_lock(&c->lock);
	if (atomic_load(&c->run))
		end(c);
	atomic_store(&calls_stage, CALLS_OFF);
	atomic_store(&c->run, 0);
	while (c->idle) {
		struct calls_thread *t = c->idle;

		c->idle = t->next_idle;
		instrument_forget(t);
	}
	pthread_mutex_unlock(&c->lock);
	recording_leave(&entry);
}

void instrument_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, CALLS_FILE_PREFIX, strlen(CALLS_FILE_PREFIX)) == 0 ||
		    strcmp(entry->d_name, CALLS_GRAPH_FILE) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

void instrument_note_refused(struct calls *c, int failed)
{
	if (!c->refused)
		append(c, 0, "refused %d\n", failed);
	c->refused = failed;
}

/* "START-END PERMS OFFSET DEVICE INODE PATH": 1: the address is in it, 0: it is not. */
static bool scan_mapping(char *line, uint64_t address, struct mapping *ret)
{
	char perms[8];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &ret->start, &ret->end, perms,
		   &ret->offset, &at) < 4 ||
	    at == 0 || address < ret->start || address >= ret->end)
		return false;
	snprintf(ret->path, sizeof ret->path, "%s", line + at);
	return true;
}

/* The lock is held: for the room of the text. */
static bool find_mapping(struct calls *c, uint64_t address, struct mapping *ret)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;
	bool found = false;

	while (fd >= 0 && !found && (got = read(fd, c->text + used, sizeof c->text - 1 - used)) > 0) {
		char *line = c->text, *stop;

		used += (size_t)got;
		c->text[used] = '\0';
		for (; !found && (stop = strchr(line, '\n')); line = stop + 1) {
			*stop = '\0';
			found = scan_mapping(line, address, ret);
		}
		used = strlen(line);
		memmove(c->text, line, used + 1);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* What was mapped is what is at the path unless the kernel says that it is no longer there. */
static void note(struct calls *c, const struct mapping *m)
{
	size_t length = strlen(m->path), tail = strlen(DELETED);
	struct stat st = {0};
	bool gone = length >= tail && strcmp(m->path + length - tail, DELETED) == 0;

	if (gone || m->path[0] != '/' || stat(m->path, &st) < 0 || !S_ISREG(st.st_mode))
		st = (struct stat){0};
	append(c, 0, "module %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s\n",
	       m->start, m->end, m->offset, (uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
	       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, m->path);
}

/* Whether another thread has noted it already, since code was last unloaded. */
static bool find_noted(struct calls *c, uint64_t unloaded, uint64_t address, struct mapping *ret)
{
	if (c->noted_unloaded != unloaded)
		c->noted_count = 0;
	c->noted_unloaded = unloaded;
	for (uint32_t i = 0; i < c->noted_count; i++) {
		ret->start = c->noted[i].start;
		ret->end = c->noted[i].end;
		if (address >= ret->start && address < ret->end)
			return true;
	}
	return false;
}

static bool note_new(struct calls *c, uint64_t address, struct mapping *ret)
{
	if (!find_mapping(c, address, ret))
		return false;
	note(c, ret);
	if (c->noted_count < CALLS_NOTED) {
		c->noted[c->noted_count].start = ret->start;
		c->noted[c->noted_count++].end = ret->end;
	}
	if (monotonic_ns() - c->paired_ns > PAIR_AGAIN_NS)
		append_pair(c);
	return true;
}

/* How often code has been unloaded; the first entry tells. */
static int take_unloaded(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(uint64_t *)context = info->dlpi_subs;
	return 1;
}

void instrument_note_module(struct calls_thread *t, uint64_t address)
{
	struct calls *c = atomic_load(&calls_now);
	struct mapping m;
	uint64_t unloaded = 0;
	struct entry entry;

	dl_iterate_phdr(take_unloaded, &unloaded);
	if (unloaded == t->unloaded && address >= t->known_start && address < t->known_end)
		return;
	if (!recording_enter(&entry))
		return;
	pthread_mutex_lock(&c->lock);
	if (find_noted(c, unloaded, address, &m) || note_new(c, address, &m)) {
		t->unloaded = unloaded;
		t->known_start = m.start;
		t->known_end = m.end;
	}
	pthread_mutex_unlock(&c->lock);
	recording_leave(&entry);
}
