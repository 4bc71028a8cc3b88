/* The helper's main thread: it waits for children, for signals to its process group, for assay and for the pumps, and
 * never blocks on any of them. It has no memory beyond static storage, and no signal ends it but SIGKILL. */
#include "exec/helper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/children_io.h"
#include "exec/forwarding.h"
#include "exec/outbox.h"
#include "exec/pump.h"
#include "exec/spawn.h"

#define WAKE_AGAIN_NS (50 * NS_PER_MS)

static struct message ring[OUTBOX_ROOM];

struct helper {
	pid_t assay;
	int socket; /* -1: assay is gone or done */
	int signals, wake;
	struct spawn command;
	struct streams streams;
	struct recording recording;
	struct outbox outbox;
	struct forwarding forwarding;
	bool ended; /* the command */
	bool told_started, told_drained, told_closed, told_childless;

	/* Stopping and waking assay along with the command. One pair of messages at a time is under way. */
	int stopped;       /* the signal that the command is stopped by, 0: it is not */
	bool told_stopped; /* assay has been told, and has not said since that it is awake */
	int64_t wake_at;   /* when to send assay the next SIGCONT; 0: not */
	int64_t let_go_at, timeout_ns;
	int64_t deadline; /* of the timeout; 0: none, or past */
	bool late;        /* it is past: assay is not to be stopped any more */
};

static void put(struct helper *h, enum message_type type, int number, int flag)
{
	struct message m = {.type = (int32_t)type, .number = number, .flag = flag};

	outbox_put(&h->outbox, &m);
}

/* The first answers, which assay waits for: they go past the outbox, into a socket that is still empty. */
static void answer(struct helper *h, enum message_type type, int number, int64_t t, const char *text)
{
	struct message m = {.type = (int32_t)type, .number = number, .t = t};

	if (text)
		snprintf(m.text, sizeof m.text, "%s", text);
	/* Where assay is gone the main loop sees the end of the file. */
	while (send(h->socket, &m, sizeof m, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* Stopping and waking are told also while the outbox is held: a command may be stopped just before exec. */
static void put_now(struct helper *h, enum message_type type, int number)
{
	if (h->outbox.held)
		answer(h, type, number, 0, NULL);
	else
		put(h, type, number, 0);
}

static void set_deadline(struct helper *h, int64_t from)
{
	if (h->timeout_ns > 0 && h->timeout_ns < INT64_MAX - from && !h->late)
		h->deadline = from + h->timeout_ns;
}

static void tell_started(struct helper *h, int64_t t)
{
	struct wire_start start = {.pid = h->command.pid, .t = t};

	h->told_started = true;
	recording_append(&h->recording, WIRE_START, &start, sizeof start);
	answer(h, MESSAGE_STARTED, 0, t, NULL);
	h->outbox.held = false;
	outbox_flush(&h->outbox);
}

static void on_report(struct helper *h)
{
	int code = spawn_report(&h->command);

	/* Where assay was told already that it has started, its end will tell the rest. */
	if (code == SPAWN_PENDING || h->told_started)
		return;
	if (!code) {
		set_deadline(h, h->command.t);
		tell_started(h, h->command.t);
		return;
	}
	h->ended = true;
	answer(h, MESSAGE_REFUSED, code, h->command.t, NULL);
	h->outbox.held = false;
	outbox_flush(&h->outbox);
}

static void wake_assay(struct helper *h)
{
	if (!h->told_stopped || h->wake_at)
		return;
	put_now(h, MESSAGE_CONTINUED, 0);
	h->wake_at = clock_mono_ns();
}

static void on_stopped(struct helper *h, int signo)
{
	h->stopped = signo;
	if (h->told_stopped || h->late)
		return;
	h->told_stopped = true;
	put_now(h, MESSAGE_STOPPED, signo);
}

static void on_continued(struct helper *h)
{
	h->stopped = 0;
	forwarding_refresh(&h->forwarding, clock_mono_ns());
	wake_assay(h);
}

static void on_awake(struct helper *h)
{
	h->told_stopped = false;
	h->wake_at = 0;
	if (h->stopped)
		on_stopped(h, h->stopped);
}

static int64_t time_ns(struct timeval t)
{
	return (int64_t)t.tv_sec * NS_PER_S + (int64_t)t.tv_usec * 1000;
}

static void add_children_io(struct wire_exit *e)
{
	struct children_io io;

	children_io_read(&io);
	e->all_read_chars = io.read_chars;
	e->all_write_chars = io.write_chars;
	e->all_read_calls = io.read_calls;
	e->all_write_calls = io.write_calls;
}

static void on_exited(struct helper *h, pid_t pid, int status, const struct rusage *u)
{
	struct message m = {.type = MESSAGE_EXITED};

	m.exit = (struct wire_exit){
		.t = clock_mono_ns(),
		.pid = pid,
		.status = status,
		.is_command = pid == h->command.pid,
		.user_ns = time_ns(u->ru_utime),
		.system_ns = time_ns(u->ru_stime),
		.max_rss = (int64_t)u->ru_maxrss * 1024,
		.minor_faults = u->ru_minflt,
		.major_faults = u->ru_majflt,
		.read_blocks = u->ru_inblock,
		.write_blocks = u->ru_oublock,
		.voluntary_switches = u->ru_nvcsw,
		.involuntary_switches = u->ru_nivcsw,
		.all_read_chars = -1,
		.all_write_chars = -1,
		.all_read_calls = -1,
		.all_write_calls = -1,
	};
	if (m.exit.is_command) {
		if (h->command.report >= 0)
			on_report(h);
		if (h->ended)
			return; /* exec was refused: there was no command */
		h->ended = true;
		h->stopped = 0;
		h->deadline = 0;
		wake_assay(h);
		atomic_store(&h->recording.draining, true);
		for (int i = 0; i < h->streams.count; i++)
			pump_mark_goal(&h->streams.list[i]);
	}
	if (h->ended)
		add_children_io(&m.exit);
	recording_append(&h->recording, WIRE_EXIT, &m.exit, sizeof m.exit);
	outbox_put(&h->outbox, &m);
}

static void reap(struct helper *h)
{
	for (;;) {
		struct rusage usage;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 && h->ended && !h->told_childless) {
			h->told_childless = true;
			put(h, MESSAGE_NO_CHILDREN, 0, 0);
		}
		if (pid <= 0)
			return;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			on_exited(h, pid, status, &usage);
		else if (pid == h->command.pid && WIFSTOPPED(status))
			on_stopped(h, WSTOPSIG(status));
		else if (pid == h->command.pid && WIFCONTINUED(status))
			on_continued(h);
	}
}

/* To the command alone. Until it is reaped, which only this thread does, the pid is its own. */
static void deliver(void *context, int signo)
{
	struct helper *h = context;

	if (!h->ended)
		kill(h->command.pid, signo);
}

static void read_signals(struct helper *h)
{
	struct signalfd_siginfo info;
	bool child = false;

	while (read(h->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		int signo = (int)info.ssi_signo;

		if (signo == SIGCHLD) {
			child = true;
			continue;
		}
		if (signo == SIGWINCH)
			for (int i = 0; i < h->streams.count; i++)
				if (!atomic_load(&h->streams.list[i].closed))
					stream_follow_window(&h->streams.list[i]);
		if ((pid_t)info.ssi_pid != h->assay)
			forwarding_saw(&h->forwarding, signo, (pid_t)info.ssi_pid, clock_mono_ns());
	}
	if (child)
		reap(h);
}

static void let_assay_go(struct helper *h)
{
	close(h->socket);
	h->socket = h->outbox.socket = -1;
	h->wake_at = h->deadline = 0;
	if (h->command.hold < 0)
		return;
	/* The command was never let go. Its process ends now, and there is nothing to record of it. */
	close(h->command.hold);
	close(h->command.report);
	h->command.hold = h->command.report = -1;
	h->ended = true;
}

static void on_go(struct helper *h, int64_t timeout_ns)
{
	h->let_go_at = clock_mono_ns();
	h->timeout_ns = timeout_ns;
	set_deadline(h, h->let_go_at); /* until the start is known */
	spawn_go(&h->command);
}

static void read_requests(struct helper *h)
{
	struct message m;

	while (h->socket >= 0) {
		ssize_t n = recv(h->socket, &m, sizeof m, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != (ssize_t)sizeof m)
			let_assay_go(h);
		else if (m.type == MESSAGE_GO && h->command.hold >= 0)
			on_go(h, m.t);
		else if (m.type == MESSAGE_FORWARD)
			forwarding_ask(&h->forwarding, m.number, m.sender, m.flag, clock_mono_ns());
		else if (m.type == MESSAGE_AWAKE)
			on_awake(h);
	}
}

static void tell_troubles(struct helper *h)
{
	struct recording *r = &h->recording;
	struct message m = {.type = MESSAGE_TROUBLE};

	pthread_mutex_lock(&r->lock);
	while (r->told < r->trouble_count) {
		memcpy(m.text, r->troubles[r->told++], sizeof m.text);
		outbox_put(&h->outbox, &m);
	}
	pthread_mutex_unlock(&r->lock);
}

static void put_progress(struct helper *h, enum message_type type, int flag, uint64_t undelivered)
{
	struct message m = {.type = (int32_t)type, .flag = flag};

	m.undelivered = undelivered;
	outbox_put(&h->outbox, &m);
}

/* What the pumps have come to. */
static void tell_progress(struct helper *h)
{
	bool drained = true, closed = true, line_start = true;
	uint64_t undelivered = 0;

	for (int i = 0; i < h->streams.count; i++) {
		struct stream *s = &h->streams.list[i];

		closed = closed && atomic_load(&s->closed);
		drained = drained && (h->told_drained || !h->ended || pump_is_drained(s));
		if (s->id != WIRE_STDERR && s->out >= 0)
			line_start = atomic_load(&s->line_start);
		undelivered += atomic_load(&s->undelivered);
	}
	tell_troubles(h); /* after the looks, so that those of a stream come before its end is told */
	if (h->ended && drained && !h->told_drained) {
		h->told_drained = true;
		atomic_store(&h->recording.draining, false);
		put_progress(h, MESSAGE_DRAINED, line_start, undelivered);
	}
	if (closed && !h->told_closed) {
		h->told_closed = true;
		put_progress(h, MESSAGE_CLOSED, 0, undelivered);
	}
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static int wait_ms(const struct helper *h)
{
	int64_t due = sooner(forwarding_due(&h->forwarding), sooner(h->wake_at, h->deadline)), left;

	if (!due)
		return -1;
	left = (due - clock_mono_ns()) / NS_PER_MS + 1;
	return left < 0 ? 0 : left < INT_MAX ? (int)left : INT_MAX;
}

/* Assay has work to do after the deadline. It gets there only when it runs, and when launch_go does not go on waiting
 * for a command that is stopped before its exec. */
static void check_deadline(struct helper *h)
{
	if (h->deadline && clock_mono_ns() >= h->deadline) {
		h->deadline = 0;
		h->late = true;
	}
	if (!h->late)
		return;
	wake_assay(h);
	if (h->stopped && !h->told_started)
		tell_started(h, h->let_go_at);
}

static void wake_assay_again(struct helper *h)
{
	int64_t now = clock_mono_ns();

	if (!h->wake_at || now < h->wake_at)
		return;
	if (getppid() == h->assay)
		kill(h->assay, SIGCONT);
	h->wake_at = now + WAKE_AGAIN_NS;
}

static bool is_done(const struct helper *h)
{
	return h->socket < 0 && h->ended && h->told_closed;
}

static void main_loop(struct helper *h)
{
	while (!is_done(h)) {
		struct pollfd fds[] = {
			{.fd = h->signals, .events = POLLIN},
			{.fd = h->wake, .events = POLLIN},
			{.fd = h->command.report, .events = POLLIN},
			{.fd = h->socket, .events = (short)(POLLIN | (outbox_waits(&h->outbox) ? POLLOUT : 0))},
		};
		uint64_t wakes;

		if (poll(fds, sizeof fds / sizeof *fds, wait_ms(h)) < 0)
			continue;
		/* Signals first: whether the group had one decides about a request to forward it. */
		if (fds[0].revents)
			read_signals(h);
		if (fds[1].revents && read(h->wake, &wakes, sizeof wakes) < 0)
			continue; /* not there after all */
		if (fds[2].revents && h->command.report >= 0)
			on_report(h);
		if (fds[3].revents & POLLOUT)
			outbox_flush(&h->outbox);
		if (fds[3].revents & ~POLLOUT)
			read_requests(h);
		forwarding_run(&h->forwarding, clock_mono_ns(), deliver, h);
		check_deadline(h);
		wake_assay_again(h);
		tell_progress(h);
	}
}

/* Signals are read here, and nowhere in the helper do they act. */
static int take_signals(struct helper *h, struct error *err)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t all, read_here;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGCHLD, &standard, NULL); /* a caller that ignores it would leave us without children to wait for */
	launch_signal_set(&read_here);
	sigaddset(&read_here, SIGCHLD);
	h->signals = signalfd(-1, &read_here, SFD_CLOEXEC | SFD_NONBLOCK);
	h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->signals < 0 || h->wake < 0)
		return error_set(err, "the helper cannot be set up: %m");
	return 0;
}

static void keep_own_descriptors(const struct helper *h)
{
	int keep[16], count = 0;

	keep[count++] = h->socket;
	keep[count++] = h->signals;
	keep[count++] = h->wake;
	keep[count++] = h->command.hold;
	keep[count++] = h->command.report;
	for (int i = 0; i < h->streams.count; i++) {
		keep[count++] = h->streams.list[i].in;
		keep[count++] = h->streams.list[i].out;
	}
	caller_keep_only(keep, (size_t)count);
}

static int set_up(struct helper *h, const struct launch_options *o, const struct caller *caller, struct error *err)
{
	if (take_signals(h, err) < 0 || streams_open(&h->streams, o, err) < 0)
		return -1;
	/* Now, while this process is as small as it will ever be: what it holds counts towards the target's ru_maxrss.
	 */
	if (spawn_held(o->argv, o->environment, caller, h->streams.out_end, h->streams.err_end, &h->command, err) < 0)
		return -1;
	streams_close_target_ends(&h->streams);
	keep_own_descriptors(h);
	recording_open(&h->recording, o->output_seg, h->wake);
	if (*h->streams.trouble)
		recording_trouble(&h->recording, "%s", h->streams.trouble);
	for (int i = 0; i < h->streams.count; i++)
		if (pump_start(&h->streams.list[i], &h->recording, err) < 0)
			return -1;
	return 0;
}

_Noreturn void helper_main(int socket, pid_t assay, const struct launch_options *options, const struct caller *caller)
{
	static struct helper h;
	struct wire_end end;
	struct error err;

	h.assay = assay;
	h.socket = socket;
	h.command = (struct spawn){.pid = -1, .hold = -1, .report = -1};
	h.outbox = (struct outbox){.socket = socket, .held = true, .ring = ring};
	prctl(PR_SET_NAME, "measure-helper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (set_up(&h, options, caller, &err) < 0) {
		answer(&h, MESSAGE_READY, -1, 0, err.text);
		_exit(1);
	}
	answer(&h, MESSAGE_READY, h.command.pid, 0, NULL);
	main_loop(&h);
	/* The pumps are at their end: is_done. */
	end.t = clock_mono_ns();
	recording_append(&h.recording, WIRE_END, &end, sizeof end);
	segment_close(&h.recording.segment);
	_exit(0);
}
