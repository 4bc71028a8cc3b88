/* Which clock is read, and what it shows beside CLOCK_MONOTONIC.
 *
 * The time stamp counter is used where the kernel itself keeps time by it: then it runs evenly on all CPUs. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/recording.h"

#define READINGS 16

int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool clock_is_tsc(void)
{
#if defined(__x86_64__)
	char text[8] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	return length == 4 && memcmp(text, "tsc\n", 4) == 0;
#else
	return false;
#endif
}

struct region_clock_pair clock_pair(bool tsc)
{
	struct region_clock_pair best = {0, 0, INT64_MAX};
	uint64_t tightest = UINT64_MAX;

	if (!tsc) {
		int64_t now = monotonic_ns();

		return (struct region_clock_pair){(uint64_t)now, now, 0};
	}
	for (int i = 0; i < READINGS; i++) {
		int64_t before = monotonic_ns(), after;
		uint64_t from = clock_now(true), to;
		int64_t now = monotonic_ns();

		to = clock_now(true);
		after = monotonic_ns();
		if (to - from < tightest) {
			tightest = to - from;
			best = (struct region_clock_pair){from + (to - from) / 2, now, (after - before) / 2};
		}
	}
	return best;
}
