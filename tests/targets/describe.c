/* describe FILE [ARG...]: writes to FILE what a process can see of how it was started, so that a start through assay
 * can be compared with one without. Leaves out what differs from process to process: its pid and its parent's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static void describe_descriptor(FILE *out, int fd)
{
	char link[64], target[512];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	fprintf(out, "fd %d flags %o descriptor-flags %d offset %lld terminal %d", fd, (unsigned)fcntl(fd, F_GETFL),
		fcntl(fd, F_GETFD), (long long)lseek(fd, 0, SEEK_CUR), isatty(fd));
	/* Of its own ways out the target may see that they are others, as long as they are of the right kind. */
	fprintf(out, " %s\n", fd == 1 || fd == 2 ? "" : target);
}

static void describe_descriptors(FILE *out)
{
	for (int fd = 0; fd < 64; fd++)
		if (fd != fileno(out) && fcntl(fd, F_GETFD) >= 0)
			describe_descriptor(out, fd);
}

/* Masks, ignored signals, users, capabilities, allowed CPUs. */
static void describe_status(FILE *out)
{
	static const char *const lines[] = {"Umask",      "Uid",     "Gid",           "Groups",       "NSpgid", "NSsid",
					    "SigPnd",     "ShdPnd",  "SigBlk",        "SigIgn",       "SigCgt", "Cap",
					    "NoNewPrivs", "Seccomp", "Cpus_allowed:", "Mems_allowed:"};
	FILE *in = fopen("/proc/self/status", "re");
	char line[1024];

	while (in && fgets(line, sizeof line, in))
		for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
			if (strncmp(line, lines[i], strlen(lines[i])) == 0)
				fputs(line, out);
	if (in)
		fclose(in);
}

static void describe_limits(FILE *out)
{
	char line[256];
	FILE *in = fopen("/proc/self/limits", "re");
	struct itimerval alarm;
	int subreaper = -1, death = -1;

	while (in && fgets(line, sizeof line, in))
		fputs(line, out);
	if (in)
		fclose(in);
	getitimer(ITIMER_REAL, &alarm);
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	prctl(PR_GET_PDEATHSIG, &death);
	fprintf(out, "nice %d\nalarm %s\nsubreaper %d\ndeath signal %d\ntimer slack %d\n", getpriority(PRIO_PROCESS, 0),
		alarm.it_value.tv_sec || alarm.it_value.tv_usec ? "running" : "none", subreaper, death,
		prctl(PR_GET_TIMERSLACK));
}

int main(int argc, char **argv)
{
	char cwd[4096], name[64];
	FILE *out = argc > 1 ? fopen(argv[1], "we") : NULL;
	int terminal;

	if (!out) {
		fprintf(stderr, "describe: %s: %s\n", argc > 1 ? argv[1] : "a file is expected", strerror(errno));
		return 2;
	}
	for (int i = 2; i < argc; i++)
		fprintf(out, "argument %d <%s>\n", i, argv[i]);
	for (char **e = environ; *e; e++)
		fprintf(out, "environment <%s>\n", *e);
	fprintf(out, "cwd %s\n", getcwd(cwd, sizeof cwd));
	prctl(PR_GET_NAME, name);
	terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC);
	fprintf(out, "name %s\ngroup %d\nsession %d\ncontrolling terminal %d\nforeground group %d\n", name, getpgrp(),
		getsid(0), terminal >= 0, terminal >= 0 ? tcgetpgrp(terminal) : -1);
	if (terminal >= 0)
		close(terminal);
	describe_status(out);
	describe_descriptors(out);
	describe_limits(out);
	return fclose(out) == 0 ? 0 : 1;
}
