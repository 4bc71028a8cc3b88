#include "exec/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include "exec/caller.h"

/* So that the target can go on while a write to the log waits for the disk. More would be taken from what all pipes of
 * a user may hold together. Where even this is refused, the pipe stays as it is. */
#define PIPE_ROOM (256 << 10)

#define PIPEFS_MAGIC 0x50495045

/* Whether the target gets a way of ours at this descriptor. */
static bool is_pumped(int fd)
{
	return caller_owns_descriptor(fd) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* The device number of the terminal behind fd, also where it was opened as /dev/tty. */
static unsigned long terminal_device(int fd)
{
	unsigned int device;
	struct stat st;

	if (ioctl(fd, TIOCGDEV, &device) == 0)
		return device;
	return fstat(fd, &st) == 0 ? st.st_rdev : 0;
}

/* Whether both descriptors are one open file, as after 2>&1; -1 where the kernel does not tell. */
static int is_one_open_file(int a, int b)
{
	long order = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, (long)a, (long)b);

	return order < 0 ? -1 : order == 0;
}

/* Whether what is written to one of them and then to the other also arrives in this order, and does so too when all of
 * it is written to one. */
static bool keep_one_order(int a, int b)
{
	struct stat one, other;
	int flags = fcntl(a, F_GETFL), same;

	if (isatty(a) && isatty(b))
		return terminal_device(a) == terminal_device(b);
	if (fstat(a, &one) < 0 || fstat(b, &other) < 0 || one.st_dev != other.st_dev || one.st_ino != other.st_ino)
		return false;
	if (S_ISCHR(one.st_mode) && one.st_rdev == makedev(1, 3))
		return false; /* /dev/null has no order, and two logs say more than one */
	if (S_ISFIFO(one.st_mode))
		return true; /* however often it was opened */
	same = is_one_open_file(a, b);
	if (same > 0)
		return true;
	if (flags != fcntl(b, F_GETFL))
		return false;
	/* Two openings of a regular file have an offset each, which only appending makes one. */
	if (S_ISREG(one.st_mode))
		return flags & O_APPEND || (same < 0 && lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR));
	return same < 0 && S_ISSOCK(one.st_mode);
}

/* An anonymous pipe whose reader went away never gets another one. The writer of a named one may wait for the next. */
static bool tells_of_its_reader(int fd)
{
	struct statfs fs;
	struct stat st;
	int type;
	socklen_t size = sizeof type;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISSOCK(st.st_mode))
		return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
	return S_ISFIFO(st.st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

/* The caller's terminal in all but two points: output is not processed twice, and nothing is echoed. */
static void set_modes(int slave, int terminal)
{
	struct termios modes;

	if (tcgetattr(terminal, &modes) < 0 && tcgetattr(slave, &modes) < 0)
		return;
	modes.c_oflag &= ~(tcflag_t)OPOST;
	modes.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
	tcsetattr(slave, TCSANOW, &modes);
}

static int open_pty(struct stream *s, int terminal)
{
	struct winsize size;
	char path[64];
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0)
		return -1;
	if (grantpt(master) < 0 || unlockpt(master) < 0)
		goto fail;
	/* Only for writing: nobody types there, so a program that reads its answers from descriptor 1 or 2 fails at
	 * once instead of waiting for ever. By ioctl, since /dev/pts may be another one here; it would leave O_CLOEXEC
	 * among the flags that the target can see. */
	slave = ioctl(master, TIOCGPTPEER, O_WRONLY | O_NOCTTY);
	if (slave >= 0)
		fcntl(slave, F_SETFD, FD_CLOEXEC);
	if (slave < 0 && ptsname_r(master, path, sizeof path) == 0)
		slave = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		goto fail;
	set_modes(slave, terminal);
	if (ioctl(terminal, TIOCGWINSZ, &size) == 0)
		ioctl(master, TIOCSWINSZ, &size);
	s->in = master;
	s->target_end = slave;
	s->pty = true;
	return 0;
fail:
	close(master);
	return -1;
}

static int open_pipe(struct stream *s, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, "%s: no pipe can be made for it: %m", s->name);
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_ROOM);
	s->in = ends[0];
	s->target_end = ends[1];
	return 0;
}

static const char *name_of(enum wire_stream id)
{
	return id == WIRE_STDOUT ? "stdout" : id == WIRE_STDERR ? "stderr" : "output";
}

/* One way, for the caller's descriptor fd. */
static int add_stream(struct streams *set, enum wire_stream id, int fd, bool pass_on, const char *log_path,
		      struct error *err)
{
	struct stream *s = &set->list[set->count];

	*s = (struct stream){.id = id,
			     .log_path = log_path,
			     .log_name = log_path ? basename(log_path) : NULL,
			     .name = name_of(id),
			     .in = -1,
			     .target_end = -1,
			     .out = -1,
			     .log = -1};
	atomic_store(&s->line_start, true);
	if (pass_on) {
		s->out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (s->out < 0)
			return error_set(err, "%s: the descriptor cannot be copied: %m", s->name);
		s->out_is_tty = isatty(fd);
		s->watches_reader = tells_of_its_reader(fd);
	}
	if (s->out_is_tty && open_pty(s, fd) < 0)
		snprintf(set->trouble, sizeof set->trouble,
			 "The command's %s is a pipe instead of a terminal, since no pseudo-terminal can be had: %m.",
			 s->name);
	if (s->in < 0 && open_pipe(s, err) < 0)
		return -1;
	set->count++;
	return 0;
}

int streams_open(struct streams *s, const struct launch_options *options, struct error *err)
{
	bool out = is_pumped(STDOUT_FILENO), errors = is_pumped(STDERR_FILENO);

	*s = (struct streams){.out_end = -1, .err_end = -1};
	if (out && errors && !options->summary_only && keep_one_order(STDOUT_FILENO, STDERR_FILENO)) {
		if (add_stream(s, WIRE_TERMINAL, STDOUT_FILENO, true, options->terminal_log, err) < 0)
			return -1;
		s->out_end = s->err_end = s->list[0].target_end;
		return 0;
	}
	if (out) {
		if (add_stream(s, WIRE_STDOUT, STDOUT_FILENO, !options->summary_only, options->stdout_log, err) < 0)
			return -1;
		s->out_end = s->list[s->count - 1].target_end;
	}
	if (errors) {
		if (add_stream(s, WIRE_STDERR, STDERR_FILENO, true, options->stderr_log, err) < 0)
			return -1;
		s->err_end = s->list[s->count - 1].target_end;
	}
	return 0;
}

void streams_close_target_ends(struct streams *s)
{
	for (int i = 0; i < s->count; i++) {
		close(s->list[i].target_end);
		s->list[i].target_end = -1;
	}
}

void stream_follow_window(struct stream *s)
{
	struct winsize now, before;
	pid_t foreground;

	if (!s->pty || ioctl(s->out, TIOCGWINSZ, &now) < 0 || ioctl(s->in, TIOCGWINSZ, &before) < 0)
		return;
	if (now.ws_row == before.ws_row && now.ws_col == before.ws_col && now.ws_xpixel == before.ws_xpixel &&
	    now.ws_ypixel == before.ws_ypixel)
		return;
	ioctl(s->in, TIOCSWINSZ, &now);
	foreground = tcgetpgrp(s->out);
	if (foreground > 0)
		kill(-foreground, SIGWINCH);
}
