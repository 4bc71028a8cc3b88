#include "exec/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/caller.h"
#include "exec/helper.h"
#include "exec/protocol.h"
#include "exec/spawn.h"

struct launch {
	int socket;
	pid_t helper;
	char *command, *path; /* argv[0], and the value of PATH that finds it */
	sigset_t early;       /* signals that were waiting before there was a target */
	int64_t timeout_ns;   /* of the options */
	bool ended, closed, gone;
	int64_t cpu_ns; /* as last read */
};

/* Helpers that were still needed when they were let go. They are children of this process and have to be waited for. */
static pid_t *left;
static size_t left_count;

static void reap_left(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < left_count; i++)
		if (waitpid(left[i], NULL, WNOHANG) == 0)
			left[kept++] = left[i];
	left_count = kept;
}

static void leave(pid_t helper)
{
	pid_t *more = reallocarray(left, left_count + 1, sizeof *left);

	if (!more)
		return; /* a zombie until this process ends */
	left = more;
	left[left_count++] = helper;
}

/* Waits for one message. */
static int receive(struct launch *l, struct message *ret, struct error *err)
{
	ssize_t n;

	while ((n = recv(l->socket, ret, sizeof *ret, 0)) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof *ret)
		return error_set(err, "%s: not started, because the helper process has ended", l->command);
	return 0;
}

static int send_to_helper(struct launch *l, const struct message *m)
{
	ssize_t n;

	while ((n = send(l->socket, m, sizeof *m, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	return n < 0 ? -1 : 0;
}

static int check_standard_descriptors(struct error *err)
{
	int copy = dup(STDERR_FILENO);

	if (copy >= 0)
		close(copy);
	if (copy > STDERR_FILENO)
		return 0;
	return error_set(err,
			 "descriptors 0, 1 and 2 have to be open (close-on-exec where the caller had none) before a "
			 "command can be started");
}

static int start_helper(struct launch *l, const struct launch_options *o, const struct caller *caller,
			struct error *err)
{
	int ends[2];
	pid_t assay = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, "%s: not started: socketpair: %m", l->command);
	sigpending(&l->early);
	l->helper = fork();
	if (l->helper == 0) {
		close(ends[0]);
		helper_main(ends[1], assay, o, caller);
	}
	close(ends[1]);
	l->socket = ends[0];
	if (l->helper < 0)
		return error_set(err, "%s: not started: fork: %m", l->command);
	return 0;
}

static struct launch *launch_new(const struct launch_options *options)
{
	struct launch *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	*l = (struct launch){.socket = -1, .helper = -1, .timeout_ns = options->timeout_ns, .cpu_ns = -1};
	l->command = strdup(options->argv[0]);
	l->path = strdup(spawn_path(options->environment));
	if (l->command && l->path)
		return l;
	launch_free(l);
	return NULL;
}

int launch_prepare(const struct launch_options *options, struct launch **ret, pid_t *ret_pid, struct error *err)
{
	struct launch *l;
	struct caller caller;
	struct message m;

	if (check_standard_descriptors(err) < 0)
		return -1;
	reap_left();
	l = launch_new(options);
	if (!l)
		return error_set(err, "%s: not started: out of memory", options->argv[0]);
	caller_read(&caller);
	if (!options->more_to_come)
		caller_take_alarm(&caller);
	if (start_helper(l, options, &caller, err) < 0 || receive(l, &m, err) < 0) {
		launch_free(l);
		return -1;
	}
	if (m.number < 0) {
		error_set(err, "%s: not started: %s", l->command, m.text);
		launch_free(l);
		return -1;
	}
	if (!options->more_to_come)
		caller_let_go();
	*ret = l;
	*ret_pid = m.number;
	return 0;
}

int launch_fd(const struct launch *l)
{
	return l->socket;
}

/* What a message means for assay. Returns false for one that is between the two of us. */
static bool take(struct launch *l, const struct message *m, struct launch_event *ret)
{
	const struct message awake = {.type = MESSAGE_AWAKE};

	*ret = (struct launch_event){.signo = m->number, .ends_with_newline = m->flag};
	switch (m->type) {
	case MESSAGE_EXITED:
		ret->type = LAUNCH_EXITED;
		ret->exit = m->exit;
		l->ended = l->ended || m->exit.is_command;
		return true;
	case MESSAGE_STOPPED:
		ret->type = LAUNCH_STOPPED;
		return true;
	case MESSAGE_CONTINUED:
		/* Where it cannot be sent, the helper is gone, and SIGCONTs with it. */
		send_to_helper(l, &awake);
		return false;
	case MESSAGE_DRAINED:
		ret->type = LAUNCH_DRAINED;
		ret->undelivered = m->undelivered;
		return true;
	case MESSAGE_CLOSED:
		ret->type = LAUNCH_CLOSED;
		ret->undelivered = m->undelivered;
		l->closed = true;
		return true;
	case MESSAGE_NO_CHILDREN:
		ret->type = LAUNCH_NO_CHILDREN;
		return true;
	case MESSAGE_TROUBLE:
		ret->type = LAUNCH_TROUBLE;
		memcpy(ret->text, m->text, sizeof ret->text);
		return true;
	default:
		return false;
	}
}

int launch_go(struct launch *l, int64_t *ret_t, struct error *err)
{
	const struct message go = {.type = MESSAGE_GO, .t = l->timeout_ns};
	struct message m;

	if (send_to_helper(l, &go) < 0)
		return error_set(err, "%s: not started, because the helper process has ended", l->command);
	for (;;) {
		struct launch_event event;

		if (receive(l, &m, err) < 0)
			return -1;
		if (m.type == MESSAGE_STARTED || m.type == MESSAGE_REFUSED)
			break;
		if (take(l, &m, &event) && event.type == LAUNCH_STOPPED)
			launch_stop_self(event.signo);
	}
	*ret_t = m.t;
	if (m.type == MESSAGE_STARTED)
		return 0;
	l->ended = true;
	return spawn_explain(l->command, l->path, m.number, err);
}

int launch_next(struct launch *l, struct launch_event *ret, struct error *err)
{
	while (!l->gone) {
		struct message m;
		ssize_t n = recv(l->socket, &m, sizeof m, MSG_DONTWAIT);

		if (n == (ssize_t)sizeof m) {
			if (take(l, &m, ret))
				return 1;
		} else if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			l->gone = true;
			*ret = (struct launch_event){.type = LAUNCH_GONE};
			return 1;
		} else if (n < 0 && errno == EAGAIN) {
			return 0;
		} else if (n > 0 || errno != EINTR) {
			return error_set(err, "what the helper says cannot be read: %s",
					 n > 0 ? "it is too short" : strerror(errno));
		}
	}
	return 0;
}

pid_t launch_helper_pid(const struct launch *l)
{
	return l->helper;
}

int64_t launch_helper_cpu_ns(struct launch *l)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(l->helper, &clock) == 0 && clock_gettime(clock, &t) == 0)
		l->cpu_ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
	return l->cpu_ns;
}

void launch_forward_signal(struct launch *l, const struct signalfd_siginfo *info)
{
	int signo = (int)info->ssi_signo;
	struct message m = {.type = MESSAGE_FORWARD, .number = signo, .sender = (int32_t)info->ssi_pid};
	bool by_kernel = info->ssi_code > 0, from_helper = !by_kernel && (pid_t)info->ssi_pid == l->helper;

	if (from_helper)
		return;
	/* A SIGSTOP to the whole group has stopped the helper, too; it would not hear of being needed. */
	if (signo == SIGCONT)
		kill(l->helper, SIGCONT);
	m.flag = sigismember(&l->early, signo) == 1;
	sigdelset(&l->early, signo);
	/* The terminal's own signals go to the foreground group. Only the hangup goes to the session's leader alone,
	 * and without us that would be the target. */
	if (by_kernel && !m.flag && !((signo == SIGHUP || signo == SIGCONT) && getsid(0) == getpid()))
		return;
	send_to_helper(l, &m); /* fails only where the helper is gone, which launch_next tells */
}

void launch_free(struct launch *l)
{
	struct launch_event event;

	if (!l)
		return;
	while (l->socket >= 0 && launch_next(l, &event, NULL) > 0)
		; /* for `ended` and `closed` */
	if (l->socket >= 0)
		close(l->socket);
	/* Its end makes the target's CPU time known to whoever waits for assay. It does not take long when nothing is
	 * left to pump; else it may be days. */
	if (l->helper > 0 && waitpid(l->helper, NULL, (l->ended && l->closed) || l->gone ? 0 : WNOHANG) == 0)
		leave(l->helper);
	free(l->command);
	free(l->path);
	free(l);
}
