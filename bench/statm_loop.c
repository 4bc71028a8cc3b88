/* The least that watching a process can cost: runs a command and reads its /proc/PID/statm through one kept descriptor
 * until it ends. Nothing is stored. run-cost compares assay's own CPU time with this program's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000L

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int fail(const char *what)
{
	fprintf(stderr, "bench_statm_loop: %s: %s\n", what, strerror(errno));
	return 3;
}

/* Reads once per interval. The first field, the size, is 0 as soon as the process is a zombie. */
static uint64_t watch(int statm, long interval_ns)
{
	uint64_t reads = 0;
	struct timespec due;
	char text[128];

	clock_gettime(CLOCK_MONOTONIC, &due);
	while (pread(statm, text, sizeof text, 0) > 0 && strncmp(text, "0 ", 2) != 0) {
		reads++;
		due.tv_nsec += interval_ns;
		due.tv_sec += due.tv_nsec / NS_PER_S;
		due.tv_nsec %= NS_PER_S;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	return reads;
}

/* The loop's own cost, its start included, as JSON. */
static int write_report(const char *path, uint64_t reads)
{
	struct rusage own;
	FILE *out = fopen(path, "we");

	if (!out)
		return fail(path);
	getrusage(RUSAGE_SELF, &own);
	fprintf(out, "{\"cpu_s\": %.6f, \"reads\": %" PRIu64 "}\n", seconds(own.ru_utime) + seconds(own.ru_stime),
		reads);
	return fclose(out) == 0 ? 0 : fail(path);
}

int main(int argc, char **argv)
{
	long interval_ms = argc > 3 ? atol(argv[2]) : 0;
	char path[64];
	int statm, status;
	uint64_t reads;
	pid_t pid;

	if (interval_ms < 1 || interval_ms > 1000000) {
		fprintf(stderr, "usage: bench_statm_loop REPORT INTERVAL_MS COMMAND [ARG...]\n");
		return 2;
	}
	pid = fork();
	if (pid < 0)
		return fail("fork");
	if (pid == 0) {
		execvp(argv[3], argv + 3);
		fail(argv[3]);
		_exit(127);
	}
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	statm = open(path, O_RDONLY | O_CLOEXEC);
	if (statm < 0)
		return fail(path);
	reads = watch(statm, interval_ms * 1000000);
	if (waitpid(pid, &status, 0) < 0)
		return fail("waitpid");
	if (write_report(argv[1], reads) != 0)
		return 3;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
