/* Starts a command through exec/launch.h as assay would, from a process of its own, and collects everything that comes
 * of it: the bytes at the caller's descriptors, the events, the logs and the output segment. Include it after
 * scratch.h. */
#ifndef ASSAY_TESTS_LAUNCHING_H
#define ASSAY_TESTS_LAUNCHING_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fs.h"
#include "exec/launch.h"
#include "wire/segment.h"

extern char **environ;

/* How the command is started. */
struct start {
	const char *argv[12];
	char *const *environment; /* NULL: the test's own */
	const char *stdout_path;  /* NULL: a pipe that the test reads */
	const char *stdout_log;   /* NULL: "stdout.log" in the scratch folder */
	bool summary_only;
	int64_t timeout_ns;
	size_t stderr_first;    /* so many bytes of stderr are read before any of stdout */
	bool stdout_not_read;   /* its reader is closed at once */
	bool no_wait_for_close; /* assay leaves when the output is drained */
	/* In the caller's process: before anything, before and after launch_go, and at each event (true: leave now).
	 * May be NULL. */
	void (*before)(void);
	void (*prepared)(pid_t command);
	void (*started)(struct launch *l, pid_t command);
	bool (*each)(struct launch *l, const struct launch_event *event);
};

/* What the caller's process tells of it. */
struct told {
	int prepared, went;
	pid_t command, helper;
	int status, exits, stops;
	struct wire_exit exit; /* of the command */
	uint64_t undelivered;  /* when drained */
	bool ended, drained, line_start, closed, childless, gone;
	bool drained_before_exit; /* an event came too early */
	int trouble_count;
	char troubles[4][256];
	struct error err;
};

struct result {
	struct told told;
	struct buf out, err; /* what reached the caller */
};

static inline void launching_note(struct told *t, const struct launch_event *e)
{
	t->exits += e->type == LAUNCH_EXITED;
	t->stops += e->type == LAUNCH_STOPPED;
	t->closed |= e->type == LAUNCH_CLOSED;
	t->childless |= e->type == LAUNCH_NO_CHILDREN;
	t->gone |= e->type == LAUNCH_GONE;
	if (e->type == LAUNCH_EXITED && e->exit.is_command) {
		t->ended = true;
		t->status = e->exit.status;
		t->exit = e->exit;
	}
	if (e->type == LAUNCH_DRAINED) {
		t->drained = true;
		t->drained_before_exit = !t->ended;
		t->line_start = e->ends_with_newline;
		t->undelivered = e->undelivered;
	}
	if (e->type == LAUNCH_TROUBLE && t->trouble_count < 4)
		memcpy(t->troubles[t->trouble_count++], e->text, sizeof e->text);
}

static inline void launching_follow(const struct start *s, struct launch *l, struct told *t)
{
	while (!t->gone && !(t->drained && (s->no_wait_for_close || t->closed))) {
		struct pollfd ready = {.fd = launch_fd(l), .events = POLLIN};
		struct launch_event e;

		poll(&ready, 1, -1);
		while (launch_next(l, &e, &t->err) > 0) {
			launching_note(t, &e);
			if (s->each && s->each(l, &e))
				return;
		}
	}
}

/* The caller's process. Its descriptors 1 and 2 are what the command is to get. */
static inline _Noreturn void launching_act(const struct start *s, int tell)
{
	struct told t = {.prepared = -1};
	struct launch *l = NULL;
	int64_t begun;
	/* Not scratch_path, whose earlier answers may stand in argv. */
	char stdout_log[512], stderr_log[512], terminal_log[512], output_seg[512];
	struct launch_options o = {
		.argv = (char *const *)(uintptr_t)s->argv,
		.environment = s->environment ? s->environment : environ,
		.stdout_log = s->stdout_log ? s->stdout_log : stdout_log,
		.stderr_log = stderr_log,
		.terminal_log = terminal_log,
		.output_seg = output_seg,
		.summary_only = s->summary_only,
		.timeout_ns = s->timeout_ns,
	};

	snprintf(stdout_log, sizeof stdout_log, "%s/stdout.log", scratch_dir);
	snprintf(stderr_log, sizeof stderr_log, "%s/stderr.log", scratch_dir);
	snprintf(terminal_log, sizeof terminal_log, "%s/terminal.log", scratch_dir);
	snprintf(output_seg, sizeof output_seg, "%s/output.seg", scratch_dir);
	if (s->before)
		s->before();
	if (launch_block_signals(&t.err) >= 0)
		t.prepared = launch_prepare(&o, &l, &t.command, &t.err);
	if (t.prepared == 0) {
		t.helper = launch_helper_pid(l);
		if (s->prepared)
			s->prepared(t.command);
		t.went = launch_go(l, &begun, &t.err);
		if (t.went == 0 && s->started)
			s->started(l, t.command);
		if (t.went == 0)
			launching_follow(s, l, &t);
	}
	launch_free(l);
	if (write(tell, &t, sizeof t) != (ssize_t)sizeof t)
		_exit(1);
	_exit(0);
}

/* Reads what is there; returns false at the end. */
static inline bool launching_read(int fd, struct buf *b)
{
	char *room = buf_reserve(b, 65536);
	ssize_t n = room ? read(fd, room, 65536) : -1;

	assert_true(n >= 0);
	b->length += (size_t)n;
	return n > 0;
}

static inline void launching_read_both(const struct start *s, int out, int err, struct result *r)
{
	struct pollfd fds[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};

	while (r->err.length < s->stderr_first)
		assert_true(launching_read(err, &r->err));
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		assert_true(poll(fds, 2, -1) > 0);
		if (fds[0].revents && !launching_read(out, &r->out))
			fds[0].fd = -1;
		if (fds[1].fd >= 0 && fds[1].revents && !launching_read(err, &r->err))
			fds[1].fd = -1;
	}
	buf_puts(&r->out, ""); /* ends the text */
	buf_puts(&r->err, "");
}

static inline void launching_release(struct result *r)
{
	buf_release(&r->out);
	buf_release(&r->err);
}

static inline void launching_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

static inline void launch(const struct start *s, struct result *r)
{
	int out[2], err[2], tell[2], status;
	struct told told;
	pid_t pid;

	buf_init(&r->out);
	buf_init(&r->err);
	launching_pipe(out);
	launching_pipe(err);
	launching_pipe(tell);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (s->stdout_path) {
			close(out[1]);
			out[1] = open(s->stdout_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		}
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		close(out[0]), close(out[1]), close(err[0]), close(err[1]), close(tell[0]);
		launching_act(s, tell[1]);
	}
	close(out[1]), close(err[1]), close(tell[1]);
	if (s->stdout_not_read) {
		close(out[0]);
		out[0] = -1;
	}
	launching_read_both(s, out[0], err[0], r);
	assert_int_equal(read(tell[0], &told, sizeof told), sizeof told);
	r->told = told;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	if (out[0] >= 0)
		close(out[0]);
	close(err[0]), close(tell[0]);
}

/* Reads a whole file of the scratch folder. */
static inline void launching_file(const char *name, struct buf *ret)
{
	struct error err;

	buf_init(ret);
	if (fs_read_file(scratch_path(name), (size_t)1 << 30, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void launching_expect_file(const char *name, const struct buf *expected)
{
	struct buf got;

	launching_file(name, &got);
	assert_int_equal(got.length, expected->length);
	assert_true(got.length == 0 || memcmp(got.text, expected->text, got.length) == 0);
	buf_release(&got);
}

/* Calls `each` for every record of a type in the output segment. Returns how many there are. */
static inline size_t launching_records(const struct buf *segment, uint16_t type,
				       void (*each)(void *context, const void *payload), void *context)
{
	const struct segment_header *h = (const struct segment_header *)segment->text;
	size_t count = 0;

	assert_true(segment->length >= SEGMENT_DATA_OFFSET);
	for (uint64_t at = h->data_offset; at < h->committed;) {
		const struct segment_record *record = (const struct segment_record *)(segment->text + at);

		if (record->type == type) {
			count++;
			if (each)
				each(context, record + 1);
		}
		at += record->size;
	}
	return count;
}

#endif
