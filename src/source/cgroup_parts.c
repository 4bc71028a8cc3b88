#include "source/cgroup_parts.h"

#include <math.h>
#include <unistd.h>

#include "base/procfs.h"
#include "source/psi.h"

#define PAGES (-1.0) /* the factor is the size of a page */

const struct cgroup_series cgroup_series[CGROUP_FIGURES] = {
	[MEMORY_CURRENT] = {"cgroup.memory.current", "bytes", SERIES_GAUGE},
	[MEMORY_PEAK] = {"cgroup.memory.peak", "bytes", SERIES_GAUGE},
	[MEMORY_ANON] = {"cgroup.memory.anon", "bytes", SERIES_GAUGE},
	[MEMORY_FILE] = {"cgroup.memory.file", "bytes", SERIES_GAUGE},
	[MEMORY_SWAP] = {"cgroup.memory.swap", "bytes", SERIES_GAUGE},
	[MEMORY_LIMIT] = {"cgroup.memory.limit", "bytes", SERIES_GAUGE},
	[REFAULTS_FILE] = {"cgroup.refaults.file", "bytes", SERIES_COUNTER},
	[REFAULTS_ANON] = {"cgroup.refaults.anon", "bytes", SERIES_COUNTER},
	[MAJOR_FAULTS] = {"cgroup.faults.major", "count", SERIES_COUNTER},
	[OOM_KILLS] = {"cgroup.oom_kills", "count", SERIES_COUNTER},
	[CPU_USAGE] = {"cgroup.cpu.usage", "s", SERIES_COUNTER},
	[CPU_PERIODS] = {"cgroup.cpu.periods", "count", SERIES_COUNTER},
	[CPU_THROTTLED_PERIODS] = {"cgroup.cpu.throttled_periods", "count", SERIES_COUNTER},
	[CPU_THROTTLED] = {"cgroup.cpu.throttled", "s", SERIES_COUNTER},
	[CPU_QUOTA] = {"cgroup.cpu.quota", "count", SERIES_GAUGE},
	[CPU_SOME] = {"cgroup.pressure.cpu.some", "s", SERIES_COUNTER},
	[CPU_FULL] = {"cgroup.pressure.cpu.full", "s", SERIES_COUNTER},
	[MEMORY_SOME] = {"cgroup.pressure.memory.some", "s", SERIES_COUNTER},
	[MEMORY_FULL] = {"cgroup.pressure.memory.full", "s", SERIES_COUNTER},
	[IO_SOME] = {"cgroup.pressure.io.some", "s", SERIES_COUNTER},
	[IO_FULL] = {"cgroup.pressure.io.full", "s", SERIES_COUNTER},
};

const struct cgroup_part cgroup_memory_v1[] = {
	{"memory.usage_in_bytes", NUMBER, false, {{MEMORY_CURRENT, NULL, 1}}},
	{"memory.max_usage_in_bytes", NUMBER, true, {{MEMORY_PEAK, NULL, 1}}},
	{"memory.stat",
	 KEYS,
	 false,
	 {{MEMORY_ANON, "total_rss", 1},
	  {MEMORY_FILE, "total_cache", 1},
	  {MEMORY_SWAP, "total_swap", 1},
	  {REFAULTS_FILE, "total_workingset_refault_file", PAGES},
	  {REFAULTS_FILE, "total_workingset_refault", PAGES}, /* before Linux 5.9 */
	  {REFAULTS_ANON, "total_workingset_refault_anon", PAGES},
	  {MAJOR_FAULTS, "total_pgmajfault", 1}}},
	{"memory.oom_control", KEYS, true, {{OOM_KILLS, "oom_kill", 1}}},
	{NULL},
};
const struct cgroup_part cgroup_memory_v2[] = {
	{"memory.current", NUMBER, false, {{MEMORY_CURRENT, NULL, 1}}},
	{"memory.peak", NUMBER, true, {{MEMORY_PEAK, NULL, 1}}},
	{"memory.swap.current", NUMBER, false, {{MEMORY_SWAP, NULL, 1}}},
	{"memory.stat",
	 KEYS,
	 false,
	 {{MEMORY_ANON, "anon", 1},
	  {MEMORY_FILE, "file", 1},
	  {REFAULTS_FILE, "workingset_refault_file", PAGES},
	  {REFAULTS_FILE, "workingset_refault", PAGES},
	  {REFAULTS_ANON, "workingset_refault_anon", PAGES},
	  {MAJOR_FAULTS, "pgmajfault", 1}}},
	{"memory.events", KEYS, true, {{OOM_KILLS, "oom_kill", 1}}},
	{NULL},
};
const struct cgroup_part cgroup_usage_v1[] = {
	{"cpuacct.usage", NUMBER, false, {{CPU_USAGE, NULL, 1e-9}}},
	{NULL},
};
const struct cgroup_part cgroup_usage_v2[] = {
	{"cpu.stat", KEYS, false, {{CPU_USAGE, "usage_usec", 1e-6}}},
	{NULL},
};
const struct cgroup_part cgroup_throttling_v1[] = {
	{"cpu.stat",
	 KEYS,
	 false,
	 {{CPU_PERIODS, "nr_periods", 1},
	  {CPU_THROTTLED_PERIODS, "nr_throttled", 1},
	  {CPU_THROTTLED, "throttled_time", 1e-9}}},
	{NULL},
};
const struct cgroup_part cgroup_throttling_v2[] = {
	{"cpu.stat",
	 KEYS,
	 false,
	 {{CPU_PERIODS, "nr_periods", 1},
	  {CPU_THROTTLED_PERIODS, "nr_throttled", 1},
	  {CPU_THROTTLED, "throttled_usec", 1e-6}}},
	{NULL},
};
const struct cgroup_part cgroup_pressure_v2[] = {
	{"cpu.pressure", PRESSURE_TOTALS, false, {{CPU_SOME, "some", 1}, {CPU_FULL, "full", 1}}},
	{"memory.pressure", PRESSURE_TOTALS, false, {{MEMORY_SOME, "some", 1}, {MEMORY_FULL, "full", 1}}},
	{"io.pressure", PRESSURE_TOTALS, false, {{IO_SOME, "some", 1}, {IO_FULL, "full", 1}}},
	{NULL},
};

static size_t scan_part(const struct cgroup_part *part, const char *text, size_t length, double values[CGROUP_KEYS_MAX])
{
	struct scan_key keys[CGROUP_KEYS_MAX] = {0};
	const char *at = text;
	size_t count = 0, found = 0;

	for (; count < CGROUP_KEYS_MAX && part->figures[count].factor != 0; count++)
		keys[count].name = part->figures[count].key;
	if (part->shape == KEYS)
		scan_keys(text, length, keys, count);
	else
		keys[0].found = scan_u64(&at, text + length, &keys[0].value);
	for (size_t i = 0; i < count; i++) {
		double factor = part->figures[i].factor;

		if (!keys[i].found)
			continue;
		values[i] = (double)keys[i].value * (factor == PAGES ? (double)sysconf(_SC_PAGESIZE) : factor);
		found++;
	}
	return found;
}

size_t cgroup_read_part(const struct cgroup_part *part, int fd, double values[CGROUP_KEYS_MAX])
{
	char text[16384];
	ssize_t length;

	for (size_t i = 0; i < CGROUP_KEYS_MAX; i++)
		values[i] = NAN;
	if (part->shape == PRESSURE_TOTALS) {
		struct psi psi;

		if (psi_read(fd, &psi) <= 0)
			return 0;
		values[0] = psi.some_s;
		values[1] = psi.full_s;
		return 1;
	}
	length = procfs_read_all(fd, text, sizeof text);
	return length > 0 ? scan_part(part, text, (size_t)length, values) : 0;
}
