#include "lib/measure_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel writes it: a group with both times. */
struct group {
	uint64_t count, enabled_ns, running_ns, values[2];
};

static int open_one(uint64_t event, int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof attr,
		.config = event,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

void counters_open(struct counters *c)
{
	int saved = errno;

	*c = (struct counters){-1, -1};
	c->cycles = open_one(PERF_COUNT_HW_CPU_CYCLES, -1);
	if (c->cycles >= 0)
		c->instructions = open_one(PERF_COUNT_HW_INSTRUCTIONS, c->cycles);
	errno = saved;
}

void counters_close(struct counters *c)
{
	int saved = errno;

	if (c->instructions >= 0)
		close(c->instructions);
	if (c->cycles >= 0)
		close(c->cycles);
	*c = (struct counters){-1, -1};
	errno = saved;
}

struct counts counters_read(const struct counters *c)
{
	struct counts none = {NAN, NAN, NAN};
	struct group group;
	int saved = errno;
	ssize_t got;

	if (c->cycles < 0)
		return none;
	got = read(c->cycles, &group, sizeof group);
	errno = saved;
	if (got < (ssize_t)(sizeof group - sizeof group.values[1]) || group.running_ns == 0)
		return none;
	return (struct counts){
		.cycles = (double)group.values[0],
		.instructions = group.count > 1 ? (double)group.values[1] : NAN,
		.idle_s = (double)(group.enabled_ns - group.running_ns) * 1e-9,
	};
}

struct counts counts_between(const struct counts *before, const struct counts *after)
{
	bool all = after->idle_s <= before->idle_s; /* false for NaN */

	return (struct counts){
		.cycles = all ? after->cycles - before->cycles : NAN,
		.instructions = all ? after->instructions - before->instructions : NAN,
		.idle_s = after->idle_s - before->idle_s,
	};
}
