/* What run-cost watches: programs that are hard on a watcher in different ways, and that measure themselves.
 *
 * Each prints one line of JSON at its end: CPU time of itself and of the children it waited for, wall time, context
 * switches. So the bare run and the watched one are measured by the same reading. It knows nothing of assay. */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMPUTE_STEPS 900000000UL /* 1 to 2 s on the machines of today */
#define MAPPINGS 2000
#define MAPPING_BYTES (1UL << 20)
#define GAP_BYTES (64UL << 10) /* between mappings: neighbours with the same rights would become one */
#define LIVING_CHILDREN 1000
#define LIVING_S 2
#define NAP_NS 100000000L
#define SHORT_CHILDREN 2000

extern char **environ;

struct usage {
	double cpu_s;
	long switches;
};

static int fail(const char *what)
{
	fprintf(stderr, "bench_cost_target: %s: %s\n", what, strerror(errno));
	return 3;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add_usage(struct usage *sum, int who)
{
	struct rusage r;

	getrusage(who, &r);
	sum->cpu_s += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		      (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
	sum->switches += r.ru_nvcsw + r.ru_nivcsw;
}

static int run_nothing(void)
{
	return 0;
}

static int run_compute(void)
{
	uint64_t x = 88172645463325252UL;

	for (unsigned long i = 0; i < COMPUTE_STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x == 0 ? 3 : 0; /* never 0: makes the result needed */
}

/* 2,000 mappings that stay 2,000, every page of them touched: 2 GB resident. */
static int run_mappings(void)
{
	size_t stride = MAPPING_BYTES + GAP_BYTES;
	char *base = mmap(NULL, MAPPINGS * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (base == MAP_FAILED)
		return fail("reserving address space");
	if (munmap(base, MAPPINGS * stride) < 0)
		return fail("munmap");
	for (size_t i = 0; i < MAPPINGS; i++) {
		char *m = mmap(base + i * stride, MAPPING_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (m == MAP_FAILED)
			return fail("mmap");
		for (size_t at = 0; at < MAPPING_BYTES; at += page)
			m[at] = 1;
	}
	return 0;
}

static int wait_for_all(void)
{
	int failures = 0, status;

	while (waitpid(-1, &status, 0) > 0)
		failures += status != 0;
	return failures ? 3 : 0;
}

/* 1,000 children that live at the same time and wake up ten times a second. */
static int run_living(void)
{
	double end = now() + LIVING_S;
	struct timespec nap = {.tv_nsec = NAP_NS};

	for (int i = 0; i < LIVING_CHILDREN; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return fail("fork");
		if (pid == 0) {
			while (now() < end)
				nanosleep(&nap, NULL);
			_exit(0);
		}
	}
	return wait_for_all();
}

/* 2,000 programs one after the other, each of them over at once. */
static int run_short(void)
{
	char name[] = "/bin/true";
	char *argv[] = {name, NULL};

	for (int i = 0; i < SHORT_CHILDREN; i++) {
		pid_t pid;
		int status;
		int code = posix_spawn(&pid, name, NULL, NULL, argv, environ);

		if (code != 0) {
			errno = code;
			return fail(name);
		}
		if (waitpid(pid, &status, 0) < 0 || status != 0)
			return fail(name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} kinds[] = {
		{"nothing", run_nothing}, {"compute", run_compute}, {"mappings", run_mappings},
		{"living", run_living},	  {"short", run_short},
	};
	double start = now();

	for (size_t i = 0; argc == 2 && i < sizeof kinds / sizeof *kinds; i++) {
		struct usage used = {0};
		int status;

		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		status = kinds[i].run();
		add_usage(&used, RUSAGE_SELF);
		add_usage(&used, RUSAGE_CHILDREN);
		printf("{\"cpu_s\": %.6f, \"wall_s\": %.6f, \"switches\": %ld}\n", used.cpu_s, now() - start,
		       used.switches);
		return status;
	}
	fprintf(stderr, "usage: bench_cost_target nothing|compute|mappings|living|short\n");
	return 2;
}
