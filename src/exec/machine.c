/* Thresholds of a machine that is not clean (the same stand in docs/run.md):
 *
 * - busy: others use more than a tenth of the CPUs' time, or more than one CPU where there are over ten;
 * - memory: less than a tenth of it is available;
 * - swap: more than 5% of it is in use;
 * - frequency: the governor is powersave (with intel_pstate and amd-pstate-epp, where every governor adapts to the
 *   load, only if the preference is power or balance_power);
 * - another assay is recording. */
#include "exec/machine.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/clock.h"
#include "base/procfs.h"
#include "exec/others.h"

#define BUSY_SHARE 0.1
#define BUSY_CPUS 1.0
#define AVAILABLE_SHARE 0.1
#define SWAP_SHARE 0.05

/* Copies the value of the first line "KEY<blanks>SEPARATOR VALUE", without quotes around it; "" where there is none. */
static void value_of(const char *text, const char *key, char separator, char *ret, size_t size)
{
	size_t length = strlen(key);

	*ret = '\0';
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *at = line + length;
		size_t end;

		if (strncmp(line, key, length) != 0)
			continue;
		at += strspn(at, " \t");
		if (*at++ != separator)
			continue;
		at += strspn(at, " \t\"");
		end = strcspn(at, "\n");
		while (end > 0 && strchr(" \t\"\r", at[end - 1]))
			end--;
		snprintf(ret, size, "%.*s", (int)(end < size ? end : size - 1), at);
		return;
	}
}

static void read_cpu_model(struct machine *m)
{
	/* x86, MIPS, old ARM and POWER. */
	static const char *const keys[] = {"model name", "cpu model", "Processor", "cpu", "Hardware"};
	char text[8192];

	if (procfs_read_file(text, sizeof text, "cpuinfo") > 0)
		for (size_t i = 0; i < sizeof keys / sizeof *keys && !m->cpu_model[0]; i++)
			value_of(text, keys[i], ':', m->cpu_model, sizeof m->cpu_model);
	if (!m->cpu_model[0] && procfs_read_file(text, sizeof text, "device-tree/model") > 0)
		snprintf(m->cpu_model, sizeof m->cpu_model, "%s", text);
}

static void read_system(struct machine *m)
{
	static const char *const paths[] = {"/etc/os-release", "/usr/lib/os-release"};
	char text[8192];

	for (size_t i = 0; i < sizeof paths / sizeof *paths && !m->system[0]; i++) {
		FILE *f = fopen(paths[i], "re");
		size_t length = f ? fread(text, 1, sizeof text - 1, f) : 0;

		if (f)
			fclose(f);
		text[length] = '\0';
		value_of(text, "PRETTY_NAME", '=', m->system, sizeof m->system);
	}
}

static void read_machine_id(struct machine *m)
{
	FILE *f = fopen("/etc/machine-id", "re");
	size_t length = f ? fread(m->machine_id, 1, sizeof m->machine_id - 1, f) : 0;

	if (f)
		fclose(f);
	m->machine_id[length] = '\0';
	m->machine_id[strcspn(m->machine_id, "\n")] = '\0';
}

/* By its signature where the processor gives one, else by the maker that the firmware names. */
static void read_hypervisor(struct machine *m)
{
	static const struct {
		const char *sign, *name;
	} known[] = {
		{"KVMKVMKVM", "KVM"},           {"Linux KVM Hv", "KVM"},
		{"VMwareVMware", "VMware"},     {"Microsoft Hv", "Hyper-V"},
		{"XenVMMXenVMM", "Xen"},        {"TCGTCGTCGTCG", "QEMU"},
		{"bhyve bhyve ", "bhyve"},      {"VBoxVBoxVBox", "VirtualBox"},
		{"ACRNACRNACRN", "ACRN"},       {"QEMU", "QEMU"},
		{"Amazon EC2", "Amazon EC2"},   {"Google", "Google"},
		{"innotek GmbH", "VirtualBox"}, {"VMware, Inc.", "VMware"},
	};
	char sign[64] = "";
#if defined(__x86_64__) || defined(__i386__)
	unsigned eax, ebx, ecx, edx;

	/* The leaf of hypervisors is there where bit 31 of the features' ECX says so. */
	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> 31) {
		__cpuid(0x40000000, eax, ebx, ecx, edx);
		memcpy(sign, &ebx, 4);
		memcpy(sign + 4, &ecx, 4);
		memcpy(sign + 8, &edx, 4);
	} else {
		return;
	}
#else
	sysfs_read_word(sign, sizeof sign, "class/dmi/id/sys_vendor");
#endif
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strncmp(sign, known[i].sign, strlen(known[i].sign)) == 0) {
			snprintf(m->hypervisor, sizeof m->hypervisor, "%s", known[i].name);
			return;
		}
#if defined(__x86_64__) || defined(__i386__)
	snprintf(m->hypervisor, sizeof m->hypervisor, "unknown");
#endif
}

static int allowed_cpus(void)
{
	/* More than any kernel is built for, so that the call cannot fail for want of room. */
	enum { CPUS_MAX = 65536 };
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	int count = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : -1;

	CPU_FREE(set);
	return count;
}

static int64_t kib_to_bytes(const struct scan_key *key)
{
	return key->found && key->value <= INT64_MAX / 1024 ? (int64_t)key->value * 1024 : -1;
}

void machine_read(struct machine *m)
{
	struct scan_key keys[] = {{.name = "MemTotal:"}, {.name = "SwapTotal:"}};
	struct utsname u;
	char text[8192];
	ssize_t length = procfs_read_file(text, sizeof text, "meminfo");

	*m = (struct machine){0};
	scan_keys(text, length > 0 ? (size_t)length : 0, keys, 2);
	m->memory = kib_to_bytes(&keys[0]);
	m->swap = kib_to_bytes(&keys[1]);
	if (uname(&u) == 0) {
		snprintf(m->kernel, sizeof m->kernel, "%s %s", u.release, u.version);
		snprintf(m->architecture, sizeof m->architecture, "%s", u.machine);
	}
	length = procfs_read_file(m->boot_id, sizeof m->boot_id, "sys/kernel/random/boot_id");
	m->boot_id[length > 0 ? strcspn(m->boot_id, "\n") : 0] = '\0';
	read_cpu_model(m);
	read_system(m);
	read_hypervisor(m);
	read_machine_id(m);
	m->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	m->cpus_allowed = allowed_cpus();
}

/* CPU time of the whole machine in ticks, or NaN. */
static double busy_ticks(void)
{
	char text[4096]; /* its first line is enough */
	const char *at = text + 4;
	ssize_t length = procfs_read_file(text, sizeof text, "stat");
	uint64_t user, nice, system, irq, softirq;

	if (length < 5 || memcmp(text, "cpu ", 4) != 0)
		return NAN;
	if (!scan_u64(&at, text + length, &user) || !scan_u64(&at, text + length, &nice) ||
	    !scan_u64(&at, text + length, &system) || !scan_words(&at, text + length, 2) ||
	    !scan_u64(&at, text + length, &irq) || !scan_u64(&at, text + length, &softirq))
		return NAN;
	return (double)(user + nice + system + irq + softirq);
}

static void complain(struct machine_state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(struct machine_state *s, const char *format, ...)
{
	va_list args;

	if (s->reason_count == (int)(sizeof s->reasons / sizeof *s->reasons))
		return;
	va_start(args, format);
	vsnprintf(s->reasons[s->reason_count++], sizeof s->reasons[0], format, args);
	va_end(args);
	s->clean = false;
}

static void look_at_cpus(struct machine_state *s, int64_t window_ns)
{
	double before = window_ns > 0 ? busy_ticks() : NAN, threshold;
	int64_t began = clock_mono_ns(), own = clock_process_ns();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char text[128];

	if (procfs_read_file(text, sizeof text, "loadavg") > 0) {
		unsigned whole, hundredths;

		s->load_1min = sscanf(text, "%u.%2u", &whole, &hundredths) == 2 ? whole + hundredths / 100.0 : NAN;
	}
	s->busy_cpus = NAN;
	if (isnan(before))
		return;
	clock_sleep_ns(window_ns);
	s->busy_cpus =
		(busy_ticks() - before) / (double)sysconf(_SC_CLK_TCK) - (double)(clock_process_ns() - own) / NS_PER_S;
	s->busy_cpus = fmax(0, s->busy_cpus / ((double)(clock_mono_ns() - began) / NS_PER_S));
	threshold = fmin(BUSY_CPUS, BUSY_SHARE * (double)cpus);
	if (s->busy_cpus > threshold)
		complain(s, "other programs use %.2f of %ld CPUs", s->busy_cpus, cpus);
}

static void look_at_memory(struct machine_state *s)
{
	struct scan_key keys[] = {
		{.name = "MemTotal:"}, {.name = "MemAvailable:"}, {.name = "SwapTotal:"}, {.name = "SwapFree:"}};
	char text[8192];
	ssize_t length = procfs_read_file(text, sizeof text, "meminfo");
	int64_t total, swap;

	scan_keys(text, length > 0 ? (size_t)length : 0, keys, 4);
	total = kib_to_bytes(&keys[0]);
	swap = kib_to_bytes(&keys[2]);
	s->memory_available = kib_to_bytes(&keys[1]);
	s->swap_used = swap < 0 || !keys[3].found ? -1 : swap - kib_to_bytes(&keys[3]);
	if (total > 0 && s->memory_available >= 0 && (double)s->memory_available < AVAILABLE_SHARE * (double)total)
		complain(s, "only %.0f%% of the memory is available",
			 100.0 * (double)s->memory_available / (double)total);
	if (swap > 0 && (double)s->swap_used > SWAP_SHARE * (double)swap)
		complain(s, "%.0f%% of the swap space is in use", 100.0 * (double)s->swap_used / (double)swap);
}

static void look_at_frequency(struct machine_state *s)
{
	char driver[32], preference[32];

	sysfs_read_word(s->governor, sizeof s->governor, "devices/system/cpu/cpu0/cpufreq/scaling_governor");
	if (strcmp(s->governor, "powersave") != 0)
		return;
	sysfs_read_word(driver, sizeof driver, "devices/system/cpu/cpu0/cpufreq/scaling_driver");
	sysfs_read_word(preference, sizeof preference, "devices/system/cpu/cpu0/cpufreq/energy_performance_preference");
	if (strcmp(driver, "intel_pstate") != 0 && strcmp(driver, "amd-pstate-epp") != 0)
		complain(s, "the CPU frequency governor is powersave");
	else if (strcmp(preference, "power") == 0 || strcmp(preference, "balance_power") == 0)
		complain(s, "the CPU's energy preference is %s", preference);
}

void machine_look(struct machine_state *s, int64_t window_ns)
{
	*s = (struct machine_state){.clean = true};
	look_at_cpus(s, window_ns);
	look_at_memory(s);
	look_at_frequency(s);
	s->other_assay = others_find_recording();
	if (s->other_assay > 0)
		complain(s, "another assay is recording (process %d)", s->other_assay);
}
