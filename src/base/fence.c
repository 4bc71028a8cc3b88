#include "base/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"

/* Never above what the caller may. */
static void limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit old, r = {soft, hard};

	if (getrlimit((__rlimit_resource_t)resource, &old) == 0 && old.rlim_max != RLIM_INFINITY) {
		r.rlim_max = old.rlim_max < hard ? old.rlim_max : hard;
		r.rlim_cur = r.rlim_max < soft ? r.rlim_max : soft;
	}
	setrlimit((__rlimit_resource_t)resource, &r);
}

/* Bytes of memory that this process has allocated already: the limit counts these, too. */
static uint64_t allocated(void)
{
	CLEANUP(buf_release) struct buf text;
	unsigned long data = 0;

	buf_init(&text);
	if (fs_read_file("/proc/self/statm", 4096, &text, NULL) < 0 ||
	    sscanf(text.text, "%*u %*u %*u %*u %*u %lu", &data) != 1)
		return 0;
	return data * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What ends a program at its user's wish is for the parent, which may live on; SIGXCPU must not be held back. */
static void reset_signals(void)
{
	static const int parents[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t none;

	for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
		signal(parents[i], SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXCPU, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void fence_in(pid_t parent, uint64_t memory, unsigned cpu_s)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		raise(SIGKILL);
	/* Libraries print when they are out of memory, and end the process with all that is still in its buffers. */
	for (int fd = 0; nowhere >= 0 && fd <= 2; fd++)
		dup2(nowhere, fd);
	reset_signals();
	limit(RLIMIT_DATA, allocated() + memory, allocated() + memory);
	limit(RLIMIT_CORE, 1, 1); /* none, and none through a pipe either */
	fence_more_cpu(cpu_s);
}

/* The hard limit stays: that would end it with SIGKILL, which does not say why, and could not be raised again. */
void fence_more_cpu(unsigned cpu_s)
{
	struct rusage used = {{0}};

	getrusage(RUSAGE_SELF, &used);
	limit(RLIMIT_CPU, (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + cpu_s, RLIM_INFINITY);
}

int fence_wait(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return status;
}
