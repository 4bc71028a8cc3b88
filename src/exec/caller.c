#include "exec/caller.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/launch.h"

static sigset_t first_mask, first_ignored;
static bool remembered;

static void read_ignored(sigset_t *ret)
{
	struct sigaction action;

	sigemptyset(ret);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			sigaddset(ret, signo);
}

void launch_signal_set(sigset_t *set)
{
	/* Those that end, stop or wake a program, or mean something to it, when they are sent to assay alone. Blocked,
	 * they do none of this to assay. */
	static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
				      SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(set, signals[i]);
}

int launch_block_signals(struct error *err)
{
	sigset_t set;
	int fd;

	launch_signal_set(&set);
	if (!remembered) {
		sigprocmask(SIG_SETMASK, NULL, &first_mask);
		read_ignored(&first_ignored);
		remembered = true;
	}
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return error_set(err, "signals cannot be read: signalfd: %m");
	/* A file that may not grow further is an error of write(2) then, and no death. */
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return fd;
}

bool launch_signal_ignored(int signo)
{
	return remembered && sigismember(&first_ignored, signo) == 1;
}

void launch_stop_self(int signo)
{
	struct sigaction stop = {.sa_handler = SIG_DFL}, before;
	sigset_t only, mask;

	if (signo != SIGSTOP) {
		sigaction(signo, &stop, &before);
		sigemptyset(&only);
		sigaddset(&only, signo);
		sigprocmask(SIG_UNBLOCK, &only, &mask);
	}
	/* Does nothing in an orphaned process group, where no one could wake us; the command is not stopped there
	 * either. */
	raise(signo);
	if (signo != SIGSTOP) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		sigaction(signo, &before, NULL);
	}
}

void caller_read(struct caller *ret)
{
	*ret = (struct caller){.alarm_t = 0};
	if (remembered) {
		ret->mask = first_mask;
		ret->ignored = first_ignored;
	} else {
		sigprocmask(SIG_SETMASK, NULL, &ret->mask);
		read_ignored(&ret->ignored);
	}
}

void caller_take_alarm(struct caller *c)
{
	const struct itimerval none = {.it_value = {0, 0}};

	c->alarm_t = clock_mono_ns();
	setitimer(ITIMER_REAL, &none, &c->alarm);
}

static void restore_alarm(const struct caller *c)
{
	int64_t left = (int64_t)c->alarm.it_value.tv_sec * NS_PER_S + (int64_t)c->alarm.it_value.tv_usec * 1000;
	struct itimerval again = c->alarm;

	if (left == 0)
		return;
	left -= clock_mono_ns() - c->alarm_t;
	if (left < 1000)
		left = 1000; /* it is due, and 0 would mean never */
	again.it_value.tv_sec = (time_t)(left / NS_PER_S);
	again.it_value.tv_usec = (suseconds_t)(left % NS_PER_S / 1000);
	setitimer(ITIMER_REAL, &again, NULL);
}

void caller_restore(const struct caller *c)
{
	for (int signo = 1; signo <= SIGRTMAX; signo++) {
		struct sigaction action = {.sa_handler = sigismember(&c->ignored, signo) == 1 ? SIG_IGN : SIG_DFL};

		sigaction(signo, &action,
			  NULL); /* fails for KILL, STOP and those of the C library, which are as they were */
	}
	restore_alarm(c);
}

bool caller_owns_descriptor(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static bool is_kept(int fd, const int *keep, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keep[i] == fd)
			return true;
	return false;
}

/* Closes descriptors from 3 up: those of the caller, or, with a list, all that are not in it. */
static void close_from_3(const int *keep, size_t count)
{
	DIR *list = opendir("/proc/self/fd");
	struct dirent *entry;

	/* Each entry is read from the kernel's table by its number: closing while reading skips nothing. */
	while (list && (entry = readdir(list))) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != dirfd(list) && (keep ? !is_kept(fd, keep, count) : caller_owns_descriptor(fd)))
			close(fd);
	}
	if (list)
		closedir(list);
}

void caller_let_go(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0 && caller_owns_descriptor(STDIN_FILENO))
		dup3(null, STDIN_FILENO, O_CLOEXEC);
	if (null >= 0)
		close(null);
	close_from_3(NULL, 0);
}

void caller_keep_only(const int *keep, size_t count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++) {
		if (null >= 0)
			dup3(null, fd, O_CLOEXEC);
		else
			close(fd);
	}
	close_from_3(keep, count); /* and `null`, which is not kept */
}
