#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define STEP_TRIES 200

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_process_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_wall_offset_ns(void)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < 5; i++) {
		int64_t before = clock_mono_ns(), wall = clock_wall_ns(), after = clock_mono_ns();

		if (after - before < best) {
			best = after - before;
			offset = wall - (before + (after - before) / 2);
		}
	}
	return offset;
}

void clock_iso8601(int64_t wall_ns, char *text, size_t size)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm)) {
		snprintf(text, size, "unknown");
		return;
	}
	snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03" PRId64 "Z", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, wall_ns % NS_PER_S / NS_PER_MS);
}

void clock_sleep_ns(int64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	while (ns > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

int64_t clock_step_ns(void)
{
	int64_t smallest = NS_PER_MS;

	for (int i = 0; i < STEP_TRIES; i++) {
		int64_t from = clock_mono_ns(), to = clock_mono_ns();

		if (to > from && to - from < smallest)
			smallest = to - from;
	}
	return smallest;
}
