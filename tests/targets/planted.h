/* What programs that plant a truth share: the names of their phases, the time, and work that no compiler leaves out. */
#ifndef ASSAY_TESTS_PLANTED_H
#define ASSAY_TESTS_PLANTED_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* From now on the program is in that phase: a line in the file that $ASSAY_MARKERS names. */
static inline void phase(const char *name)
{
	const char *path = getenv("ASSAY_MARKERS");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	char line[64];
	int length = snprintf(line, sizeof line, "%s\n", name);

	if (path && (fd < 0 || write(fd, line, (size_t)length) != length)) {
		perror(path);
		exit(1);
	}
	if (fd >= 0)
		close(fd);
}

static inline double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Arithmetic in registers, some 100 us of it, that starts from x. */
static inline uint64_t churn(uint64_t x)
{
	for (int i = 0; i < 100000; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return x;
}

/* Uses the value, as far as the compiler knows. */
static inline void keep(uint64_t value)
{
	__asm__ volatile("" : : "r"(value));
}

#endif
