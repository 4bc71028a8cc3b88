#include "store/region_fence.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fence.h"
#include "base/utf8.h"
#include "store/hdf5_plugin.h"
#include "store/region_plugin.h"
#include "store/region_tape.h"

/* A good file takes some hundredths of a second, and a second for some tens of MiB. */
#define CPU_MIN_S 2u
#define CPU_MAX_S 3600u
#define BYTES_PER_CPU_S ((uint64_t)1 << 20)
#define MEMORY_MIN ((uint64_t)2 << 30)
#define MEMORY_PER_BYTE 32u
#define ROWS_AT_ONCE ((uint64_t)1 << 20)

enum answer { GOOD = 1, FAILED };

struct request {
	uint64_t column, first, count;
};

struct region_fence {
	pid_t child;
	struct channel channel;
	unsigned cpu_s;
	uint64_t memory;
	pthread_mutex_t lock; /* of the channel, and of what is below */
	struct error trouble; /* once the child is gone: why */
};

/* ---- The child's side ---- */

struct reading {
	struct regions regions;
	struct region_stored stored;
	const struct region_plugin *plugin;
	struct region_h5 *h5;
	struct channel channel;
	unsigned cpu_s;
};

/* Sentences may name what is in the file, whose names are any bytes. */
static void put_failure(struct channel *c, const struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	utf8_append_clean(&text, err->text, strlen(err->text));
	buf_puts(&text, "");
	channel_put_number(c, FAILED);
	channel_put_text(c, text.text);
}

static int read_file(struct reading *x, const char *path, struct error *err)
{
	char version[64];

	x->plugin = hdf5_plugin_table(REGION_PLUGIN_SYMBOL, REGION_PLUGIN_VERSION, err);
	if (!x->plugin || x->plugin->start(version, sizeof version, err) < 0)
		return -1;
	return x->plugin->open(path, &x->regions, &x->stored, &x->h5, err);
}

static int serve_one(struct reading *x, const struct request *request, int64_t *rows)
{
	struct error err = {""};

	fence_more_cpu(x->cpu_s);
	if (x->plugin->read(x->h5, (enum region_column)request->column, request->first, request->count, rows, &err) <
	    0) {
		put_failure(&x->channel, &err);
	} else {
		channel_put_number(&x->channel, GOOD);
		channel_put(&x->channel, rows, request->count * sizeof *rows);
	}
	return channel_flush(&x->channel);
}

/* Until the program has closed its end. */
static int serve(struct reading *x)
{
	int64_t *rows = malloc(ROWS_AT_ONCE * sizeof *rows);
	struct request request;

	while (rows && channel_take(&x->channel, &request, sizeof request) == 0)
		if (serve_one(x, &request, rows) < 0)
			return 1;
	return rows ? 0 : 1;
}

/* Nothing is released: the process ends, and the library may be broken. */
static int be_child(const char *path, int fd, unsigned cpu_s)
{
	struct reading x = {.cpu_s = cpu_s};
	struct error err = {""};

	channel_init(&x.channel, fd, 0, UINT64_MAX);
	regions_init(&x.regions);
	region_stored_init(&x.stored);
	if (read_file(&x, path, &err) < 0) {
		put_failure(&x.channel, &err);
		return channel_flush(&x.channel) < 0;
	}
	channel_put_number(&x.channel, GOOD);
	region_tape_put(&x.channel, &x.regions, &x.stored);
	if (channel_flush(&x.channel) < 0)
		return 1;
	return region_stored_needs_fence(&x.stored, &x.regions) ? serve(&x) : 0;
}

/* ---- The program's side ---- */

/* Ends the child, and keeps in f->trouble what became of it. */
static void end_child(struct region_fence *f)
{
	enum channel_end end = f->channel.end;
	int status;

	kill(f->child, SIGKILL); /* which changes nothing where it has ended */
	close(f->channel.fd);
	status = fence_wait(f->child);
	f->child = 0;
	if (end == CHANNEL_STALLED)
		error_set(&f->trouble, "the HDF5 library did nothing for a minute, reading it");
	else if (end == CHANNEL_NONSENSE)
		error_set(&f->trouble, "damaged: what the HDF5 library says of it makes no sense");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		error_set(&f->trouble, "damaged: the HDF5 library took longer than %u s of CPU time reading it",
			  f->cpu_s);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		error_set(&f->trouble, "the process that read it was killed");
	else
		error_set(&f->trouble, "damaged: the HDF5 library crashed reading it");
}

static int start_child(struct region_fence *f, const char *path, struct error *err)
{
	pid_t parent = getpid(), child;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, "no socket to a process that reads it: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		error_set(err, "no process to read it in: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	if (child == 0) {
		close(ends[0]);
		fence_in(parent, f->memory, f->cpu_s);
		_exit(be_child(path, ends[1], f->cpu_s));
	}
	close(ends[1]);
	f->child = child;
	channel_init(&f->channel, ends[0], child, f->memory);
	return 0;
}

/* GOOD, or -1 with *err: what the child says of its own failure, or why it says no more. */
static int take_answer(struct region_fence *f, struct error *err)
{
	CLEANUP(free_cleanup) char *text = NULL;
	uint64_t answer;

	if (channel_take_number(&f->channel, FAILED, &answer) == 0 && answer == GOOD)
		return GOOD;
	if (f->channel.end == CHANNEL_GOOD)
		text = channel_take_text(&f->channel);
	if (text)
		return error_set(err, "%s", text);
	end_child(f);
	return error_set(err, "%s", f->trouble.text);
}

static int take_file(struct region_fence *f, struct regions *r, struct region_stored *s, uint64_t file_size,
		     struct error *err)
{
	int result;

	if (take_answer(f, err) < 0)
		return -1;
	result = region_tape_take(&f->channel, r, s, file_size, err);
	if (result != -1)
		return result < 0 ? -1 : 0;
	end_child(f);
	return error_set(err, "%s", f->trouble.text);
}

/* The library opens a file by its name alone: it must still be the one whose bytes are read past the library. */
static int is_same(const char *path, const struct stat *open_one, struct error *err)
{
	struct stat st;

	if (stat(path, &st) < 0 || st.st_dev != open_one->st_dev || st.st_ino != open_one->st_ino)
		return error_set(err, "it was replaced while it was read");
	return 0;
}

static void close_cleanup(struct region_fence **f)
{
	region_fence_close(*f);
}

int region_fence_open(const char *path, int fd, struct regions *r, struct region_stored *s, struct region_fence **ret,
		      struct error *err)
{
	CLEANUP(close_cleanup) struct region_fence *f = calloc(1, sizeof *f);
	uint64_t file_size, seconds;
	struct stat st;

	*ret = NULL;
	if (!f)
		return error_set(err, "out of memory");
	pthread_mutex_init(&f->lock, NULL);
	if (fstat(fd, &st) < 0)
		return error_set(err, "%s", strerror(errno));
	file_size = (uint64_t)st.st_size;
	seconds = CPU_MIN_S + file_size / BYTES_PER_CPU_S;
	f->cpu_s = seconds < CPU_MAX_S ? (unsigned)seconds : CPU_MAX_S;
	f->memory = MEMORY_MIN + (file_size < UINT64_MAX / 2 / MEMORY_PER_BYTE ? MEMORY_PER_BYTE * file_size : 0);
	if (start_child(f, path, err) < 0 || take_file(f, r, s, file_size, err) < 0 || is_same(path, &st, err) < 0)
		return -1;
	if (region_stored_needs_fence(s, r)) {
		f->channel.allowance = UINT64_MAX; /* from now on it says no more than is asked for */
		*ret = f;
		f = NULL;
	}
	return 0;
}

void region_fence_close(struct region_fence *f)
{
	if (!f)
		return;
	if (f->child) {
		kill(f->child, SIGKILL);
		close(f->channel.fd);
		fence_wait(f->child);
	}
	channel_release(&f->channel);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static int read_some(struct region_fence *f, const struct request *request, int64_t *out, struct error *err)
{
	if (!f->child)
		return error_set(err, "%s", f->trouble.text);
	channel_put(&f->channel, request, sizeof *request);
	channel_flush(&f->channel);
	if (take_answer(f, err) < 0)
		return -1;
	if (channel_take(&f->channel, out, request->count * sizeof *out) == 0)
		return 0;
	end_child(f);
	return error_set(err, "%s", f->trouble.text);
}

int region_fence_read(struct region_fence *f, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		      struct error *err)
{
	int result = 0;

	pthread_mutex_lock(&f->lock);
	for (uint64_t done = 0; done < count && result == 0;) {
		uint64_t left = count - done, step = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
		const struct request request = {column, first + done, step};

		result = read_some(f, &request, out + done, err);
		done += step;
	}
	pthread_mutex_unlock(&f->lock);
	return result;
}
