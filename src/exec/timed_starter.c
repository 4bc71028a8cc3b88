#include "exec/timed_starter.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/shed.h"
#include "exec/spawn.h"

#define STACK_SIZE ((size_t)64 << 10)

/* What the child needs; it shares our memory until its exec, and we stand still that long. */
struct child {
	char **argv, **environment;
	const char *path;
	int descriptors[3];
	const sigset_t *mask;
	int64_t started; /* CLOCK_MONOTONIC just before the exec that succeeded */
	int code;        /* errno of exec; 0: it succeeded */
};

struct starter {
	int socket;
	char *text;   /* words and variables as they came */
	char **list;  /* both lists of pointers into it */
	size_t text_room, list_room;
	char *stack;
	struct child child;
	struct timed_request request;
};

/* Tries the command as execvp does, but tells the time before each try, so that a long PATH costs nothing. */
static void exec_along_path(struct child *c)
{
	const char *name = c->argv[0];
	bool denied = false;
	char file[PATH_MAX];

	if (!*name || strchr(name, '/')) {
		c->started = clock_mono_ns();
		execve(name, c->argv, c->environment);
		return;
	}
	for (const char *dir = c->path;; dir++) {
		size_t length = strcspn(dir, ":");

		if (length + strlen(name) + 2 <= sizeof file) {
			memcpy(file, dir, length);
			file[length] = '/';
			strcpy(file + length + (length > 0), name);
			c->started = clock_mono_ns();
			execve(file, c->argv, c->environment);
			denied |= errno == EACCES;
			if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ENAMETOOLONG)
				return;
		}
		dir += length;
		if (!*dir)
			break;
	}
	errno = denied ? EACCES : ENOENT;
}

static int become_command(void *argument)
{
	struct child *c = argument;
	bool moved = true;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends us ends the command */
	setpgid(0, 0); /* so that a timeout reaches what it has started, too */
	for (int fd = 0; fd < 3; fd++)
		moved = moved && dup2(c->descriptors[fd], fd) >= 0;
	sigprocmask(SIG_SETMASK, c->mask, NULL);
	if (moved)
		exec_along_path(c);
	c->code = errno ? errno : EIO;
	return 127; /* clone ends the process with it, and runs nothing else */
}

static bool read_fully(int fd, void *to, size_t length)
{
	for (size_t used = 0; used < length;) {
		ssize_t got = read(fd, (char *)to + used, length - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		used += (size_t)got;
	}
	return true;
}

/* Memory by mmap, not malloc: the arena that came over at the fork is then never touched, and stays shared. */
static void *grow(void *old, size_t *room, size_t size)
{
	void *new = old ? mremap(old, *room, size, MREMAP_MAYMOVE)
			: mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (new == MAP_FAILED)
		return NULL;
	*room = size;
	return new;
}

/* The header and its descriptors; false at the end of everything. */
static bool take_header(struct starter *s)
{
	union {
		char bytes[CMSG_SPACE(sizeof s->child.descriptors)];
		struct cmsghdr align;
	} control;
	struct iovec part = {&s->request, sizeof s->request};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof control};
	struct cmsghdr *first;
	ssize_t got;

	while ((got = recvmsg(s->socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (got <= 0 || !read_fully(s->socket, (char *)&s->request + got, sizeof s->request - (size_t)got))
		return false;
	if (s->request.kind != TIMED_RUN)
		return true;
	first = CMSG_FIRSTHDR(&message);
	if (!first || first->cmsg_len != CMSG_LEN(sizeof s->child.descriptors))
		return false;
	memcpy(s->child.descriptors, CMSG_DATA(first), sizeof s->child.descriptors);
	return true;
}

/* The words after the header. */
static bool take_words(struct starter *s)
{
	size_t length = (size_t)s->request.length, words = s->request.words, variables = s->request.variables;
	size_t list = (words + variables + 2) * sizeof *s->list;
	char *at;

	if (length > s->text_room && !(s->text = grow(s->text, &s->text_room, length)))
		return false;
	if (list > s->list_room && !(s->list = grow(s->list, &s->list_room, list)))
		return false;
	if (!read_fully(s->socket, s->text, length))
		return false;
	at = s->text;
	for (size_t i = 0; i < words + variables + 1; i++) {
		if (i == words) {
			s->list[i] = NULL;
			continue;
		}
		s->list[i] = at;
		at += strlen(at) + 1;
	}
	s->list[words + variables + 1] = NULL;
	s->child.argv = s->list;
	s->child.environment = s->list + words + 1;
	s->child.path = spawn_path(s->child.environment);
	return true;
}

/* How the command is brought to its end: TERM, and a second later KILL, to its whole group. */
struct ending {
	int64_t at; /* of the next step; 0: none to come */
	int signal; /* of the next step */
};

static void next_step(struct ending *e, pid_t pid)
{
	kill(-pid, e->signal);
	kill(-pid, SIGCONT); /* one that is stopped would not hear TERM */
	e->at = e->signal == SIGTERM ? clock_mono_ns() + TIMED_GRACE_NS : 0;
	e->signal = SIGKILL;
}

/* The signal that has stopped it, 0: none. It has not ended, so nothing is taken from the wait to come. */
static int stopped_by(int pidfd)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PIDFD, (id_t)pidfd, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
			       info.si_code == CLD_STOPPED
		       ? info.si_status
		       : 0;
}

/* Waits until the command has ended, and ends it where its time is up, where assay asks, or where assay is gone. */
static int64_t watch(struct starter *s, pid_t pid, int pidfd, struct timed_reply *reply)
{
	struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = s->socket, .events = POLLIN}};
	int64_t timeout = s->request.timeout_ns;
	struct ending ending = {.at = timeout ? s->child.started + timeout : 0, .signal = SIGTERM};

	for (;;) {
		int64_t left = ending.at ? ending.at - clock_mono_ns() : 0;
		int64_t longest = ending.at && left < STOPPED_NS ? (left > 0 ? left : 0) : STOPPED_NS;
		struct timespec wait = {longest / NS_PER_S, longest % NS_PER_S};
		int ready = ppoll(fds, 2, &wait, NULL);
		int64_t now = clock_mono_ns();

		if (ready > 0 && fds[0].revents)
			return now;
		if (ready > 0 && fds[1].revents) {
			struct timed_request stop;

			if (!read_fully(s->socket, &stop, sizeof stop))
				fds[1].fd = -1; /* assay is gone: nobody is left to ask us anything */
			reply->stopped = 1;
			if (ending.signal == SIGTERM)
				next_step(&ending, pid);
		} else if (ending.at && now >= ending.at) {
			reply->result.timed_out |= !reply->stopped;
			next_step(&ending, pid);
		} else if (ready == 0 && ending.signal == SIGTERM && stopped_by(pidfd)) {
			/* Nobody would ever wake it: it wants the terminal, or has stopped itself. */
			reply->stop_signal = stopped_by(pidfd);
			kill(-pid, SIGKILL);
		}
	}
}

static int64_t nanoseconds(struct timeval t)
{
	return t.tv_sec * NS_PER_S + t.tv_usec * INT64_C(1000);
}

static void reap(pid_t pid, struct timed_result *r)
{
	struct rusage usage;

	memset(&usage, 0, sizeof usage);
	while (wait4(pid, &r->status, 0, &usage) < 0 && errno == EINTR)
		;
	r->user_ns = nanoseconds(usage.ru_utime);
	r->system_ns = nanoseconds(usage.ru_stime);
	r->max_rss = (int64_t)usage.ru_maxrss * 1024;
	r->minor_faults = usage.ru_minflt;
	r->major_faults = usage.ru_majflt;
	r->voluntary_switches = usage.ru_nvcsw;
	r->involuntary_switches = usage.ru_nivcsw;
}

/* CLONE_VM: the child starts without a copy of anything, whatever our size. CLONE_VFORK: we go on after its exec. */
static void run(struct starter *s, struct timed_reply *reply)
{
	int pidfd = -1;
	pid_t pid;

	s->child.code = 0;
	pid = clone(become_command, s->stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &s->child,
		    &pidfd);
	if (pid < 0) {
		reply->code = errno;
		reply->own = 1;
		return;
	}
	reply->code = s->child.code;
	if (reply->code == 0) {
		reply->result.wall_ns = watch(s, pid, pidfd, reply) - s->child.started;
		if (reply->result.timed_out || reply->stopped)
			kill(-pid, SIGKILL); /* what it left; the group is still its own while it is not reaped */
	}
	reap(pid, &reply->result);
	if (reply->stop_signal)
		reply->result.status = reply->stop_signal << 8 | 0x7f; /* as wait4 says of one that is stopped */
	close(pidfd);
}

/* A start that fails, so that the functions that a child calls are found, and the linker's pages can be given back. */
static void rehearse(struct starter *s)
{
	char *words[] = {(char[]){""}, NULL};
	struct timed_reply reply;

	memset(&reply, 0, sizeof reply);
	s->child.argv = s->child.environment = words;
	memcpy(s->child.descriptors, (const int[]){0, 1, 2}, sizeof s->child.descriptors);
	run(s, &reply);
}

void timed_starter_main(int socket, const sigset_t *mask)
{
	struct starter s = {.socket = socket, .child.mask = mask};
	size_t room = 0;
	struct timed_reply reply;

	prctl(PR_SET_NAME, "assay-starter");
	s.stack = grow(NULL, &room, STACK_SIZE);
	if (s.stack)
		rehearse(&s);
	for (int shed = 2; s.stack && take_header(&s);) {
		if (s.request.kind != TIMED_RUN)
			continue;
		if (!take_words(&s))
			break;
		if (shed > 0 && shed--) /* the first run finds the last functions */
			shed_pages();
		memset(&reply, 0, sizeof reply);
		run(&s, &reply);
		for (int i = 0; i < 3; i++)
			close(s.child.descriptors[i]);
		if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != (ssize_t)sizeof reply)
			break;
	}
	_exit(0);
}
