#include "cmd/spy_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

extern char **environ;

void spy_command_init(struct spy_command *c)
{
	*c = (struct spy_command){.signals = -1, .max_rss = -1, .spawn = {.hold = -1, .report = -1}};
}

void spy_command_release(struct spy_command *c)
{
	if (c->held) {
		close(c->spawn.hold);
		close(c->spawn.report);
		waitpid(c->spawn.pid, NULL, 0);
	}
	fd_cleanup(&c->signals);
	spy_command_init(c);
}

/* Those that end programs or mean something to them, and the ends of children. Stops are not among them: a Ctrl-Z stops
 * this process along with the command. */
static int open_signals(struct error *err)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&set, signals[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return error_set(err, "signals cannot be read: signalfd: %m");
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Where the caller ignored it, children would leave no status. */
	signal(SIGCHLD, SIG_DFL);
	return fd;
}

int spy_command_make(struct spy_command *c, char *const *argv, struct error *err)
{
	struct caller caller;

	caller_read(&caller);
	c->argv = argv;
	c->signals = open_signals(err);
	if (c->signals < 0)
		return -1;
	caller_take_alarm(&caller);
	if (spawn_held(argv, environ, &caller, -1, -1, &c->spawn, err) < 0)
		return -1;
	c->held = true;
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* cannot fail since Linux 3.4 */
	return 0;
}

int spy_command_go(struct spy_command *c, struct error *err)
{
	struct pollfd report = {.fd = c->spawn.report, .events = POLLIN};
	int code;

	c->held = false;
	spawn_go(&c->spawn);
	while ((code = spawn_report(&c->spawn)) == SPAWN_PENDING)
		poll(&report, 1, -1);
	if (!code)
		return 0;
	waitpid(c->spawn.pid, NULL, 0);
	return spawn_explain(c->argv[0], spawn_path(environ), code, err);
}

static void reap(struct spy_command *c)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid != c->spawn.pid)
			continue;
		c->ended = true;
		c->status = status;
		c->max_rss = (int64_t)usage.ru_maxrss << 10;
	}
}

void spy_command_take(struct spy_command *c)
{
	struct signalfd_siginfo info;
	ssize_t n;

	while ((n = read(c->signals, &info, sizeof info)) == (ssize_t)sizeof info || (n < 0 && errno == EINTR)) {
		if (n < 0 || info.ssi_signo == SIGCHLD)
			continue;
		/* What the terminal makes reaches the command by itself. What a program sends to the whole process
		 * group reaches it twice: only a process beside it could tell (see exec/forwarding.h). */
		if (info.ssi_code > 0)
			c->interrupted |= info.ssi_signo == SIGINT;
		else if (!c->ended)
			kill(c->spawn.pid, (int)info.ssi_signo);
	}
	reap(c);
}

int spy_command_exit_status(const struct spy_command *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
