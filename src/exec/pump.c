#include "exec/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define BUFFER_SIZE ((size_t)128 * 1024)
#define STACK_SIZE (128 * 1024) /* address space; a page or two of it are used */

/* Chunks that arrive closer together than this are recorded as one. The window widens as records pile up, so that no
 * flood of small writes can fill the segment: after 600,000 records a stream adds about 30 a second. */
#define WINDOW_NS NS_PER_MS
#define WINDOW_DOUBLES_AFTER 100000
#define WINDOW_DOUBLINGS 6

#define LOOK_AT_WINDOW_NS (100 * NS_PER_MS)

static char buffers[2][BUFFER_SIZE];

static int64_t window_of(const struct stream *s)
{
	uint64_t doublings = s->chunks / WINDOW_DOUBLES_AFTER;

	return WINDOW_NS << (doublings < WINDOW_DOUBLINGS ? doublings : WINDOW_DOUBLINGS);
}

static void record_chunk(struct stream *s)
{
	if (s->chunk.length == 0)
		return;
	recording_append(s->recording, WIRE_CHUNK, &s->chunk, sizeof s->chunk);
	s->chunks++;
	s->recorded_at = s->chunk.t_last;
	s->chunk.length = 0;
	atomic_store(&s->unrecorded, false);
}

/* Bytes [logged, logged+length) came at t. A lone chunk is recorded at once, one soon after another waits for more. */
static void add_chunk(struct stream *s, size_t length, int64_t t)
{
	if (s->chunk.length && t - s->chunk.t_first >= window_of(s))
		record_chunk(s);
	if (s->chunk.length == 0)
		s->chunk = (struct wire_chunk){.t_first = t, .offset = s->logged, .stream = s->id};
	s->chunk.t_last = t;
	s->chunk.length += length;
	s->logged += length;
	atomic_store(&s->unrecorded, true);
	if (t - s->recorded_at >= window_of(s) || atomic_load(&s->recording->draining))
		record_chunk(s);
}

static void give_log_up(struct stream *s, int code)
{
	recording_trouble(s->recording, "%s: %s from byte %llu on is not kept: %s.", s->log_name, s->name,
			  (unsigned long long)s->logged, strerror(code));
	close(s->log);
	s->log = -1;
}

static void keep(struct stream *s, const char *bytes, size_t length, int64_t t)
{
	size_t kept = 0;
	int code = 0;

	while (s->log >= 0 && kept < length && !code) {
		ssize_t n = write(s->log, bytes + kept, length - kept);

		if (n > 0)
			kept += (size_t)n;
		else if (n == 0 || errno != EINTR)
			code = n == 0 ? ENOSPC : errno;
	}
	if (kept)
		add_chunk(s, kept, t);
	if (code)
		give_log_up(s, code);
	s->lost += length - kept;
}

/* Nobody will ever read it, so that the target has to get its SIGPIPE, or EIO from a terminal that is gone. */
static bool is_final(const struct stream *s, int code)
{
	return code == EPIPE || code == ECONNRESET || (code == EIO && s->out_is_tty);
}

/* What the caller's file does not take now, for want of space for example, is left out: a program would itself get the
 * error, and could go on, and try again with its next write. So do we. An exception to "the command notices nothing":
 * its own write has succeeded long since, and it may exit with 0 where it would have told of the error. Therefore the
 * bytes are counted, for assay to make of it what the command would have. */
static void leave_out(struct stream *s, size_t length, int code)
{
	if (atomic_load(&s->undelivered) == 0)
		recording_trouble(s->recording, "Some of the command's %s did not reach the caller: %s.", s->name,
				  strerror(code));
	atomic_fetch_add(&s->undelivered, length);
}

/* Passes it on to the caller. The descriptor is the one that the target would have written to, so that offsets, append
 * mode and flow control are as without us; its flags are not ours to change. Returns false when its reader is gone. */
static bool pass_on(struct stream *s, const char *bytes, size_t length)
{
	size_t passed = 0;

	while (passed < length) {
		ssize_t n = write(s->out, bytes + passed, length - passed);
		struct pollfd ready = {.fd = s->out, .events = POLLOUT};

		if (n > 0) {
			passed += (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			poll(&ready, 1, -1);
		} else if (n == 0 || errno != EINTR) {
			int code = n == 0 ? ENOSPC : errno;

			if (is_final(s, code))
				return false;
			leave_out(s, length - passed, code);
			break;
		}
	}
	if (passed)
		atomic_store(&s->line_start, bytes[passed - 1] == '\n');
	return true;
}

/* Waits for input. Meanwhile records chunks that have waited long enough. Returns false when the caller's reader is
 * gone and there is nothing left that was written before that. */
static bool wait_for_input(struct stream *s)
{
	struct pollfd fds[2] = {{.fd = s->in, .events = POLLIN}, {.fd = s->watches_reader ? s->out : -1}};

	for (;;) {
		int64_t left = s->chunk.length ? s->chunk.t_first + window_of(s) - clock_mono_ns() : 0;
		struct timespec wait = {.tv_nsec = left > 0 ? (long)left : 0};
		int n = ppoll(fds, 2, s->chunk.length ? &wait : NULL, NULL);

		if (n > 0 && fds[0].revents)
			return true;
		if (n > 0)
			return false;
		if (n == 0) {
			record_chunk(s);
			if (atomic_load(&s->recording->draining))
				recording_wake(s->recording);
		}
	}
}

static void end_stream(struct stream *s)
{
	/* First, so that the caller sees the end of the file at once, and the target the broken pipe. */
	if (s->out >= 0)
		close(s->out);
	close(s->in);
	record_chunk(s);
	if (s->log >= 0 && close(s->log) < 0)
		recording_trouble(s->recording, "%s: closing it failed, its end may be missing: %m.", s->log_name);
	if (s->lost && s->log_path)
		recording_trouble(s->recording, "%s: %llu bytes of %s are missing.", s->log_name,
				  (unsigned long long)s->lost, s->name);
	if (atomic_load(&s->undelivered))
		recording_trouble(s->recording, "%llu bytes of the command's %s did not reach the caller.",
				  atomic_load(&s->undelivered), s->name);
	atomic_store(&s->busy, false);
	atomic_store(&s->closed, true);
	recording_wake(s->recording);
}

static void *pump(void *argument)
{
	struct stream *s = argument;
	bool reader = true;

	while (reader && wait_for_input(s)) {
		ssize_t n;
		int64_t t;

		atomic_store(&s->busy, true);
		n = read(s->in, s->buffer, BUFFER_SIZE);
		t = clock_mono_ns();
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			n = 0;
		else if (n <= 0) /* EIO is the end of a pseudo-terminal */
			break;
		if (n > 0 && s->out >= 0)
			reader = pass_on(s, s->buffer, (size_t)n);
		if (n > 0)
			keep(s, s->buffer, (size_t)n, t);
		atomic_fetch_add(&s->passed, (unsigned long long)n);
		atomic_store(&s->busy, false);
		if (atomic_load(&s->recording->draining))
			recording_wake(s->recording);
		if (s->pty && t - s->window_at >= LOOK_AT_WINDOW_NS) {
			s->window_at = t;
			stream_follow_window(s);
		}
	}
	end_stream(s);
	/* Not to return: what a thread that has ended read and wrote could not be told from what children did. */
	while (true)
		pause();
	return NULL;
}

int pump_start(struct stream *s, struct recording *r, struct error *err)
{
	pthread_attr_t attributes;
	int failed;

	s->buffer = buffers[s->id == WIRE_STDERR];
	s->recording = r;
	if (s->log_path) {
		s->log = open(s->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
		if (s->log < 0)
			recording_trouble(r, "%s: %s is not kept: %m.", s->log_name, s->name);
	}
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE > PTHREAD_STACK_MIN ? STACK_SIZE : (size_t)PTHREAD_STACK_MIN);
	failed = pthread_create(&s->thread, &attributes, pump, s);
	pthread_attr_destroy(&attributes);
	if (failed)
		return error_set(err, "%s: no thread can be made for it: %s", s->name, strerror(failed));
	return 0;
}

/* Where the pump holds something in its hands, or takes it meanwhile, the goal lies too far. Then the pump's rest
 * decides; the goal is for descendants that never let it rest. */
void pump_mark_goal(struct stream *s)
{
	struct pollfd look = {.fd = s->in, .events = POLLIN};
	int held = 0;

	if (atomic_load(&s->closed))
		return;
	poll(&look, 1, 0); /* brings in what is still under way to the reading side of a terminal */
	if (ioctl(s->in, FIONREAD, &held) < 0 || held < 0)
		held = INT_MAX;
	s->goal = atomic_load(&s->passed) + (unsigned)held + BUFFER_SIZE;
}

bool pump_is_drained(struct stream *s)
{
	struct pollfd look = {.fd = s->in, .events = POLLIN};

	if (atomic_load(&s->closed))
		return true;
	/* The order matters: a pump is busy before it takes anything out. */
	if (atomic_load(&s->passed) < s->goal && (poll(&look, 1, 0) != 0 || atomic_load(&s->busy)))
		return false;
	return !atomic_load(&s->unrecorded);
}
