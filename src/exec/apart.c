#include "exec/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define CAUGHT (sizeof caught / sizeof *caught)

static struct sigaction before[CAUGHT];
static bool catching;
static volatile sig_atomic_t first_signal, to_pass_on;

static void remember(int signo, siginfo_t *info, void *machine)
{
	(void)machine;
	if (!first_signal)
		first_signal = signo;
	/* What the kernel sends comes from the terminal, to the whole foreground group. */
	if (info->si_code <= 0)
		to_pass_on = signo;
}

void apart_catch_signals(void)
{
	/* Without SA_RESTART: waiting is to notice. */
	struct sigaction action = {.sa_sigaction = remember, .sa_flags = SA_SIGINFO};

	for (size_t i = 0; !catching && i < CAUGHT; i++) {
		sigaction(caught[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
	}
	catching = true;
}

int apart_signal(void)
{
	return first_signal;
}

static void become_child(pid_t parent, const sigset_t *mask)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	for (size_t i = 0; catching && i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		raise(SIGTERM);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

struct reader {
	char text[APART_LINE_MAX + 1];
	size_t length;
	void (*line)(void *context, const char *text);
	void *context;
};

static void hand_over(struct reader *r)
{
	r->text[r->length] = '\0';
	if (r->length)
		r->line(r->context, r->text);
	r->length = 0;
}

static void take(struct reader *r, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n' || r->length == APART_LINE_MAX)
			hand_over(r);
		if (bytes[i] != '\n')
			r->text[r->length++] = bytes[i];
	}
}

/* Until the other end is closed. Signals are let in only while it waits, so that none comes between. */
static void listen_to(struct reader *r, int fd, pid_t child, const sigset_t *mask)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char bytes[4096];
		ssize_t n;

		if (ppoll(&p, 1, NULL, mask) < 0 && errno != EINTR)
			return;
		if (to_pass_on)
			kill(child, to_pass_on);
		to_pass_on = 0;
		if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = read(fd, bytes, sizeof bytes);
		if (n == 0 || (n < 0 && errno != EINTR))
			return;
		if (n > 0)
			take(r, bytes, (size_t)n);
	}
}

int apart_run(int (*function)(void *context, int out), void (*line)(void *context, const char *text), void *context,
	      struct error *err)
{
	struct reader reader = {.line = line, .context = context};
	pid_t parent = getpid(), child;
	sigset_t set, mask;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, "no process can be started: pipe: %m");
	sigemptyset(&set);
	for (size_t i = 0; i < CAUGHT; i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, &mask);
	to_pass_on = 0;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		become_child(parent, &mask);
		_exit(function(context, ends[1]));
	}
	close(ends[1]);
	if (child < 0) {
		error_set(err, "no process can be started: fork: %m");
	} else {
		listen_to(&reader, ends[0], child, &mask);
		hand_over(&reader);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (child < 0)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
