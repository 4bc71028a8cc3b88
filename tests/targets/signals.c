/* signals FILE: appends a line "ready PID" to FILE, then one for each signal that comes, with its sender's kind, until
 * SIGUSR2. SIGTSTP keeps its default action. At each SIGWINCH the size of the terminal at descriptor 1 is told, too. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int log_fd;
static volatile sig_atomic_t done;

/* Handlers only run inside sigsuspend, so that they may call anything. */
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	char line[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (write(log_fd, line, (size_t)n) < 0)
		_exit(3);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	struct winsize size;
	int saved = errno;

	(void)context;
	say("signal %d %s\n", signo, info->si_code > 0 ? "kernel" : "process");
	if (signo == SIGWINCH && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		say("size %d %d\n", size.ws_row, size.ws_col);
	if (signo == SIGUSR2)
		done = 1;
	errno = saved;
}

int main(int argc, char **argv)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	sigset_t blocked, before;

	log_fd = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	if (log_fd < 0) {
		fprintf(stderr, "signals: %s\n", strerror(errno));
		return 2;
	}
	sigfillset(&action.sa_mask);
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	say("ready %d\n", getpid());
	while (!done)
		sigsuspend(&before);
	return 0;
}
