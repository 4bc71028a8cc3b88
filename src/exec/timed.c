#include "exec/timed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "exec/spawn.h"
#include "exec/timed_starter.h"

extern char **environ;

struct timed {
	int socket;
	pid_t pid;
};

struct timed *timed_new(struct error *err)
{
	struct timed *t = malloc(sizeof *t);
	sigset_t all, before;
	int ends[2];

	if (!t || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(t);
		error_set(err, "the process that starts commands cannot be made: %m");
		return NULL;
	}
	/* It must outlive a Ctrl-C, to clean up after it; the commands get the mask that we had. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	t->pid = fork();
	if (t->pid == 0) {
		close(ends[0]);
		timed_starter_main(ends[1], &before);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	t->socket = ends[0];
	if (t->pid < 0) {
		error_set(err, "the process that starts commands cannot be made: fork: %m");
		close(t->socket);
		free(t);
		return NULL;
	}
	return t;
}

void timed_free(struct timed *t)
{
	if (!t)
		return;
	close(t->socket); /* it ends at that */
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(t);
}

static int gone(struct error *err)
{
	return error_set(err, "the process that starts commands has ended; was it killed?");
}

static uint32_t put_words(struct buf *to, char *const *words)
{
	uint32_t count = 0;

	for (; words[count]; count++)
		buf_append(to, words[count], strlen(words[count]) + 1);
	return count;
}

/* One piece, as far as the socket takes it: what arrives in two wakes the starter twice. */
static int send_request(struct timed *t, const struct timed_request *request, const struct buf *words,
			const int *descriptors, struct error *err)
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec parts[2] = {{(void *)request, sizeof *request},
				 {words ? words->text : NULL, words ? words->length : 0}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = words ? 2 : 1};
	size_t total = parts[0].iov_len + parts[1].iov_len, done;
	ssize_t sent;

	if (descriptors) {
		control.align = (struct cmsghdr){CMSG_LEN(3 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.align), descriptors, 3 * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	while ((sent = sendmsg(t->socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	if (sent < (ssize_t)sizeof *request)
		return gone(err);
	for (done = (size_t)sent; done < total; done += sent > 0 ? (size_t)sent : 0) {
		size_t at = done - sizeof *request;

		sent = send(t->socket, words->text + at, words->length - at, MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return gone(err);
	}
	return 0;
}

static int send_run(struct timed *t, const struct timed_options *o, char *const *environment, struct error *err)
{
	CLEANUP(buf_release) struct buf words;
	const int descriptors[3] = {o->in, o->out, o->err};
	struct timed_request request;

	buf_init(&words);
	memset(&request, 0, sizeof request); /* padding goes over the socket, too */
	request.kind = TIMED_RUN;
	request.timeout_ns = o->timeout_ns;
	request.words = put_words(&words, o->argv);
	request.variables = put_words(&words, environment);
	request.length = (int64_t)words.length;
	if (words.failed)
		return error_set(err, "out of memory for the words of the command");
	return send_request(t, &request, &words, descriptors, err);
}

/* Waits for the answer; a signal that sets *stop is seen at once, since it can only come while ppoll waits. */
static int receive(struct timed *t, const volatile int *stop, struct timed_reply *reply, struct error *err)
{
	struct pollfd waiting = {.fd = t->socket, .events = POLLIN};
	bool stopping = false;
	sigset_t all, before;
	int status = 0;
	ssize_t got;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	for (;;) {
		if (stop && *stop && !stopping) {
			struct timed_request request;

			memset(&request, 0, sizeof request);
			request.kind = TIMED_STOP;
			status = send_request(t, &request, NULL, NULL, err);
			stopping = true;
		}
		if (status < 0 || ppoll(&waiting, 1, NULL, &before) > 0)
			break;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (status < 0)
		return -1;
	while ((got = recv(t->socket, reply, sizeof *reply, MSG_WAITALL)) < 0 && errno == EINTR)
		;
	return got == (ssize_t)sizeof *reply ? 0 : gone(err);
}

int timed_run(struct timed *t, const struct timed_options *o, const volatile int *stop, struct timed_result *ret,
	      struct error *err)
{
	char *const *environment = o->environment ? o->environment : environ;
	struct timed_reply reply;

	if (stop && *stop)
		return 1;
	if (send_run(t, o, environment, err) < 0 || receive(t, stop, &reply, err) < 0)
		return -1;
	if (reply.code && reply.own)
		return error_set(err, "no process can be made for the command: %s", strerror(reply.code));
	if (reply.code)
		return spawn_explain(o->argv[0], spawn_path(environment), reply.code, err);
	*ret = reply.result;
	return reply.stopped ? 1 : 0;
}
