/* The whole machine meanwhile: load, free memory, swap, pages read back, CPU time, clock frequency. */
#include "source/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/reading.h"

/* Each file has its own pace, since with many CPUs /proc/stat takes a millisecond. The kernel computes the load anew
 * every five seconds. */
#define LOAD_EVERY_NS (NS_PER_S)

enum machine_file { LOADAVG, MEMINFO, VMSTAT, STAT, FREQUENCY, FILES };

struct machine_state {
	int fds[FILES];
	struct pace paces[FILES];
	int64_t page;
	double seconds_per_tick;
	int load1, available, swap_used, refaults_file, refaults_anon, major_faults, swap_in, swap_out, busy, steal,
		frequency;
	char text[65536];
};

static void machine_close(void *state)
{
	struct machine_state *s = state;

	for (size_t i = 0; i < FILES; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	free(s);
}

static int define(struct source_context *c, const char *name, const char *unit, enum series_kind kind)
{
	return series_define(c, &(struct series_desc){name, unit, "machine", "machine", kind});
}

/* Reads the file if its time has come; the length, or 0. */
static size_t read_file(struct machine_state *s, const struct source_context *c, enum machine_file file, int64_t now)
{
	ssize_t length;

	if (s->fds[file] < 0 || !pace_due(&s->paces[file], c, now))
		return 0;
	length = procfs_read_all(s->fds[file], s->text, sizeof s->text);
	pace_done(&s->paces[file], now, PACE_FACTOR);
	/* Free memory, load and the machine's CPU time are for orientation; what tells a shortage is in vmstat. */
	if (file != VMSTAT)
		pace_at_least(&s->paces[file], now, NS_PER_S / 2);
	return length > 0 ? (size_t)length : 0;
}

static int machine_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct machine_state *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(why_not, "out of memory");
	s->fds[LOADAVG] = procfs_open("loadavg");
	s->fds[MEMINFO] = procfs_open("meminfo");
	s->fds[VMSTAT] = procfs_open("vmstat");
	s->fds[STAT] = procfs_open("stat");
	s->fds[FREQUENCY] = sysfs_open("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
	if (s->fds[LOADAVG] < 0 && s->fds[MEMINFO] < 0 && s->fds[VMSTAT] < 0 && s->fds[STAT] < 0) {
		int failed = -s->fds[STAT];

		machine_close(s);
		return error_set(why_not,
				 "%s/stat: %s; it takes a proc file system that is not restricted (subset=pid)",
				 procfs_root(), strerror(failed));
	}
	s->page = sysconf(_SC_PAGESIZE);
	s->seconds_per_tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	s->load1 = define(c, "machine.load1", "count", SERIES_GAUGE);
	s->available = define(c, "machine.memory.available", "bytes", SERIES_GAUGE);
	s->swap_used = define(c, "machine.swap.used", "bytes", SERIES_GAUGE);
	s->refaults_file = define(c, "machine.refaults.file", "bytes", SERIES_COUNTER);
	s->refaults_anon = define(c, "machine.refaults.anon", "bytes", SERIES_COUNTER);
	s->major_faults = define(c, "machine.faults.major", "count", SERIES_COUNTER);
	s->swap_in = define(c, "machine.swap.in", "bytes", SERIES_COUNTER);
	s->swap_out = define(c, "machine.swap.out", "bytes", SERIES_COUNTER);
	s->busy = define(c, "machine.cpu.busy", "s", SERIES_COUNTER);
	s->steal = define(c, "machine.cpu.steal", "s", SERIES_COUNTER);
	s->frequency = s->fds[FREQUENCY] < 0 ? -1 : define(c, "machine.frequency", "hz", SERIES_GAUGE);
	*ret_state = s;
	return 0;
}

static double times(const struct scan_key *key, double factor)
{
	return key->found ? (double)key->value * factor : NAN;
}

/* "0.71 ..." in hundredths, by hand: strtod would follow the user's locale. */
static double scan_load(const char *text, size_t length)
{
	const char *at = text, *end = text + length;
	uint64_t whole, hundredths;

	if (!scan_u64(&at, end, &whole) || end - at < 4 || *at != '.')
		return NAN;
	at++;
	return scan_u64(&at, end, &hundredths) && hundredths < 100 ? (double)whole + (double)hundredths / 100 : NAN;
}

static void read_meminfo(struct machine_state *s, struct source_context *c, int64_t now)
{
	struct scan_key keys[] = {{.name = "MemAvailable:"}, {.name = "SwapTotal:"}, {.name = "SwapFree:"}};
	size_t length = read_file(s, c, MEMINFO, now);

	scan_keys(s->text, length, keys, 3);
	timeline_put(c->timeline, s->available, now, times(&keys[0], 1024));
	timeline_put(c->timeline, s->swap_used, now, times(&keys[1], 1024) - times(&keys[2], 1024));
}

static void read_vmstat(struct machine_state *s, struct source_context *c, int64_t now)
{
	/* Kernels before 5.9 know only one kind of refault, those of files. */
	struct scan_key keys[] = {{.name = "workingset_refault_anon"},
				  {.name = "workingset_refault_file"},
				  {.name = "pswpin"},
				  {.name = "pswpout"},
				  {.name = "pgmajfault"},
				  {.name = "workingset_refault"}};
	double page = (double)s->page;

	scan_keys(s->text, read_file(s, c, VMSTAT, now), keys, sizeof keys / sizeof *keys);
	timeline_put(c->timeline, s->refaults_anon, now, times(&keys[0], page));
	timeline_put(c->timeline, s->refaults_file, now, times(keys[1].found ? &keys[1] : &keys[5], page));
	timeline_put(c->timeline, s->swap_in, now, times(&keys[2], page));
	timeline_put(c->timeline, s->swap_out, now, times(&keys[3], page));
	timeline_put(c->timeline, s->major_faults, now, times(&keys[4], 1));
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...": guests are in USER already. */
static void read_stat(struct machine_state *s, struct source_context *c, int64_t now)
{
	size_t length = read_file(s, c, STAT, now);
	const char *at = s->text + 4, *end = s->text + length;
	uint64_t fields[8];

	if (length < 5 || memcmp(s->text, "cpu ", 4) != 0)
		return;
	for (size_t i = 0; i < 8; i++)
		if (!scan_u64(&at, end, &fields[i]))
			return;
	timeline_put(c->timeline, s->busy, now,
		     s->seconds_per_tick * (double)(fields[0] + fields[1] + fields[2] + fields[5] + fields[6]));
	timeline_put(c->timeline, s->steal, now, s->seconds_per_tick * (double)fields[7]);
}

static void machine_slow(void *state, struct source_context *c, int64_t now)
{
	struct machine_state *s = state;
	const char *at = s->text;
	uint64_t khz;
	size_t length = read_file(s, c, LOADAVG, now);

	timeline_put(c->timeline, s->load1, now, scan_load(s->text, length));
	if (length > 0)
		s->paces[LOADAVG].next = now + LOAD_EVERY_NS;
	read_meminfo(s, c, now);
	read_vmstat(s, c, now);
	read_stat(s, c, now);
	length = read_file(s, c, FREQUENCY, now);
	if (scan_u64(&at, s->text + length, &khz))
		timeline_put(c->timeline, s->frequency, now, 1000.0 * (double)khz);
}

const struct source source_machine = {
	.name = "machine",
	.summary = "load, free memory, swap, CPU time and clock frequency of the whole machine",
	.open = machine_open,
	.slow = machine_slow,
	.close = machine_close,
};
