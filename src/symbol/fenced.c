#include "symbol/fenced.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/fs.h"
#include "base/utf8.h"

#define NAME_MAX_BYTES 65536u
#define FILE_MAX_BYTES 4096u
#define MESSAGE_MAX (1u << 20)
#define FLUSH_BYTES 65536u
#define PIPE_BYTES 1048576 /* so much may the child be ahead */
#define ALIVE_NS INT64_C(1000000000)
#define STALL_NS INT64_C(60000000000) /* without a word: as good as dead */
#define CPU_LIMIT_S 300
#define MEMORY_MIN (UINT64_C(1) << 30) /* what the child may allocate, besides 8 times the file's size */
#define LOOK_MS 100		       /* how often *hurry is looked at */

enum message { FUNCTION = 1, FRAMES, NOTE, ALIVE, DONE, FAILED };

struct header {
	uint32_t message, length; /* length: of what follows, a multiple of 4 */
};

struct function_message {
	uint32_t known, line, name_length, file_length; /* then both texts, each with a 0; no file: UINT32_MAX */
};

/* The child's side. */
struct sending {
	int fd;
	struct buf out;
	int64_t sent_at;
};

struct part {
	const void *bytes;
	size_t length;
};

static int flush(struct sending *s)
{
	int result = s->out.failed ? -1 : fs_write_all(s->fd, s->out.text, s->out.length);

	buf_clear(&s->out);
	s->sent_at = clock_mono_ns();
	return result < 0 ? -1 : 0;
}

static int send_parts(struct sending *s, enum message message, const struct part *parts, size_t count)
{
	static const char zeros[4];
	size_t length = 0, rest;
	struct header h = {.message = message};

	for (size_t i = 0; i < count; i++)
		length += parts[i].length;
	rest = (4 - length % 4) % 4;
	h.length = (uint32_t)(length + rest);
	buf_append(&s->out, &h, sizeof h);
	for (size_t i = 0; i < count; i++)
		buf_append(&s->out, parts[i].bytes, parts[i].length);
	buf_append(&s->out, zeros, rest);
	return s->out.failed || (s->out.length >= FLUSH_BYTES && flush(s) < 0) ? -1 : 0;
}

static int send_function(void *context, bool known, const char *name, const char *file, uint32_t line)
{
	struct function_message m = {.known = known, .line = line};
	size_t name_length = utf8_cut(name, strlen(name), NAME_MAX_BYTES);
	size_t file_length = file ? utf8_cut(file, strlen(file), FILE_MAX_BYTES) : 0;
	const struct part parts[] = {
		{&m, sizeof m}, {name, name_length}, {"", 1}, {file ? file : "", file_length}, {"", 1},
	};

	m.name_length = (uint32_t)name_length;
	m.file_length = file ? (uint32_t)file_length : UINT32_MAX;
	return send_parts(context, FUNCTION, parts, sizeof parts / sizeof *parts);
}

static int send_frames(void *context, size_t at, const struct symbols_frame *frames, size_t count)
{
	uint32_t number = (uint32_t)at;
	const struct part parts[] = {{&number, sizeof number}, {frames, count * sizeof *frames}};

	return send_parts(context, FRAMES, parts, 2);
}

static int send_note(void *context, bool refused, const char *text)
{
	uint32_t flag = refused;
	const struct part parts[] = {{&flag, sizeof flag}, {text, utf8_cut(text, strlen(text), FILE_MAX_BYTES)}};

	return send_parts(context, NOTE, parts, 2);
}

static int send_alive(void *context)
{
	struct sending *s = context;

	if (clock_mono_ns() - s->sent_at < ALIVE_NS)
		return 0;
	return send_parts(s, ALIVE, NULL, 0) < 0 ? -1 : flush(s);
}

/* The parent need not wait for memory to be given back piece by piece. */
static int send_done(void *context)
{
	return send_parts(context, DONE, NULL, 0) < 0 ? -1 : flush(context);
}

static uint64_t memory_of(const struct symbols_request *request)
{
	struct stat st = {0};

	if ((request->fd >= 0 ? fstat(request->fd, &st) : stat(request->path, &st)) < 0)
		st.st_size = 0;
	return MEMORY_MIN + 8 * (uint64_t)st.st_size;
}

static void be_child(const struct symbols_plugin *plugin, const struct symbols_request *request, int fd, pid_t parent)
{
	struct sending s = {.fd = fd, .sent_at = clock_mono_ns()};
	const struct symbols_sink sink = {&s, send_function, send_frames, send_note, send_alive, send_done};
	struct error err = {""};

	fence_in(parent, memory_of(request), CPU_LIMIT_S);
	buf_init(&s.out);
	if (plugin->resolve(request, &sink, &err) < 0)
		send_parts(&s, FAILED, &(struct part){err.text, strlen(err.text)}, 1);
	_exit(flush(&s) < 0);
}

/* The parent's side. */
struct receiving {
	struct buf in;
	size_t taken; /* bytes of `in` that are dealt with */
	const struct symbols_request *request;
	const struct symbols_sink *sink;
	uint32_t functions;
	struct error *err;
};

static int take_function(struct receiving *r, const char *payload, size_t length)
{
	const char *name, *file;
	struct function_message m;
	bool has_file;

	if (length < sizeof m)
		return FENCED_BROKE;
	memcpy(&m, payload, sizeof m);
	has_file = m.file_length != UINT32_MAX;
	payload += sizeof m;
	length -= sizeof m;
	if (m.name_length >= length || (has_file && m.file_length >= length - m.name_length - 1))
		return FENCED_BROKE;
	name = payload;
	file = has_file ? payload + m.name_length + 1 : NULL;
	if (name[m.name_length] != '\0' || (has_file && file[m.file_length] != '\0'))
		return FENCED_BROKE;
	r->functions++;
	return r->sink->function(r->sink->context, m.known != 0, name, file, m.line) < 0 ? FENCED_FAILED : FENCED_DONE;
}

static int take_frames(struct receiving *r, const char *payload, size_t length)
{
	struct symbols_frame frames[256];
	size_t count = length < 4 ? 0 : (length - 4) / sizeof *frames;
	uint32_t at;

	if (count == 0 || count > sizeof frames / sizeof *frames)
		return FENCED_BROKE;
	memcpy(&at, payload, sizeof at);
	memcpy(frames, payload + 4, count * sizeof *frames);
	for (size_t i = 0; i < count; i++)
		if (frames[i].function >= r->functions)
			return FENCED_BROKE;
	if (at >= r->request->count)
		return FENCED_BROKE;
	return r->sink->frames(r->sink->context, at, frames, count) < 0 ? FENCED_FAILED : FENCED_DONE;
}

static int take_note(struct receiving *r, const char *payload, size_t length)
{
	CLEANUP(free_cleanup) char *text = NULL;
	uint32_t refused;

	if (length < sizeof refused)
		return FENCED_BROKE;
	memcpy(&refused, payload, sizeof refused);
	text = strndup(payload + sizeof refused, length - sizeof refused);
	if (!text)
		return error_set(r->err, "out of memory for a note");
	return r->sink->note(r->sink->context, refused != 0, text) < 0 ? FENCED_FAILED : FENCED_DONE;
}

/* Deals with the complete messages of r->in. *ret_done: the last one has come. */
static int take_messages(struct receiving *r, bool *ret_done)
{
	int result = FENCED_DONE;

	while (result == FENCED_DONE && !*ret_done && r->in.length - r->taken >= sizeof(struct header)) {
		const char *at = r->in.text + r->taken;
		struct header h;

		memcpy(&h, at, sizeof h);
		if (h.length > MESSAGE_MAX)
			return error_set(r->err, "it sent nonsense"), FENCED_BROKE;
		if (r->in.length - r->taken - sizeof h < h.length)
			break;
		at += sizeof h;
		r->taken += sizeof h + h.length;
		if (h.message == FUNCTION)
			result = take_function(r, at, h.length);
		else if (h.message == FRAMES)
			result = take_frames(r, at, h.length);
		else if (h.message == NOTE)
			result = take_note(r, at, h.length);
		else if (h.message == FAILED)
			result = (error_set(r->err, "it failed: %.*s", (int)h.length, at), FENCED_BROKE);
		else
			*ret_done = h.message == DONE;
	}
	if (r->taken == r->in.length) {
		buf_clear(&r->in);
		r->taken = 0;
	} else if (r->taken > FLUSH_BYTES) {
		memmove(r->in.text, r->in.text + r->taken, r->in.length - r->taken);
		r->in.length -= r->taken;
		r->taken = 0;
	}
	return result;
}

/* Until the child is done or its end of the pipe is closed; *ret_done tells these apart. */
static int receive(struct receiving *r, int fd, const volatile int *hurry, bool *ret_done)
{
	int64_t heard_at = clock_mono_ns();
	int result = FENCED_DONE;

	while (result == FENCED_DONE && !*ret_done) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char *room;
		ssize_t got;

		if (hurry && *hurry)
			return FENCED_STOPPED;
		if (poll(&p, 1, LOOK_MS) <= 0) {
			if (clock_mono_ns() - heard_at > STALL_NS)
				return error_set(r->err, "it took more than a minute"), FENCED_BROKE;
			continue;
		}
		room = buf_reserve(&r->in, FLUSH_BYTES);
		if (!room)
			return error_set(r->err, "out of memory for names");
		got = read(fd, room, FLUSH_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return FENCED_DONE;
		r->in.length += (size_t)got;
		heard_at = clock_mono_ns();
		result = take_messages(r, ret_done);
	}
	return result;
}

static void say_how_it_ended(pid_t child, struct error *err)
{
	int status = fence_wait(child);

	if (!err)
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		error_set(err, "it took more than %d CPU seconds", CPU_LIMIT_S);
	else if (WIFSIGNALED(status))
		error_set(err, "reading it ended with \"%s\"", strsignal(WTERMSIG(status)));
	else
		error_set(err, "reading it took more memory than allowed, or failed");
}

enum fenced fenced_resolve(const struct symbols_plugin *plugin, const struct symbols_request *request,
			   const struct symbols_sink *sink, const volatile int *hurry, struct error *err)
{
	struct receiving r = {.request = request, .sink = sink, .err = err};
	pid_t parent = getpid(), child;
	bool done = false;
	int ends[2], result;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, "no pipe to a process that reads symbols: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		result = error_set(err, "no process to read symbols in: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		return result;
	}
	if (child == 0)
		be_child(plugin, request, ends[1], parent);
	close(ends[1]);
	/* Where the user may not have so much for pipes, it stays as it is. */
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	buf_init(&r.in);
	error_set(err, "it sent nonsense");
	result = receive(&r, ends[0], hurry, &done);
	buf_release(&r.in);
	close(ends[0]);
	if (result != FENCED_DONE || done)
		kill(child, SIGKILL);
	say_how_it_ended(child, result == FENCED_DONE && !done ? err : NULL);
	return result == FENCED_DONE && !done ? FENCED_BROKE : (enum fenced)result;
}
