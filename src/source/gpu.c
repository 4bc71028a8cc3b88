/* NVIDIA's GPUs, through the library of their driver: how busy, how much memory and power, how much over the PCIe link,
 * and whether they were slowed down.
 *
 * The library is opened only where the driver is loaded, for it takes tens of milliseconds and megabytes. Readings are
 * made by threads (gpu_reader); a tick takes what has come in. */
#include "source/source.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/gpu_reader.h"
#include "source/reading.h"

/* The library takes 10 to 100 ms to start, and a second or two for each GPU whose driver state was not kept. */
#define PATIENCE_NS (5 * NS_PER_S)
/* At the ends of a run and of a phase, so long for figures of that moment; phases that follow each other closely make
 * do with those of the last tenth of a second. */
#define EXACT_WAIT_NS (10 * NS_PER_MS)
#define EXACT_EVERY_NS (100 * NS_PER_MS)
/* Readings take at most 1/250 of a core where that is at least one in a second. */
#define PACE_GPU 250
#define PACE_LONGEST_NS NS_PER_S
#define SILENCE_NS (5 * NS_PER_S)

static const struct {
	const char *name, *unit;
	enum series_kind kind;
} figures[NVML_FIGURES] = {
	[NVML_UTILIZATION] = {"utilization", "share", SERIES_GAUGE},
	[NVML_MEMORY_UTILIZATION] = {"memory_utilization", "share", SERIES_GAUGE},
	[NVML_MEMORY_USED] = {"memory.used", "bytes", SERIES_GAUGE},
	[NVML_POWER] = {"power", "w", SERIES_GAUGE},
	[NVML_ENERGY] = {"energy", "j", SERIES_COUNTER},
	[NVML_PCIE_PEAK] = {"pcie.peak", "bytes/s", SERIES_GAUGE},
	[NVML_THROTTLE_POWER] = {"throttle.power", "share", SERIES_GAUGE},
	[NVML_THROTTLE_THERMAL] = {"throttle.thermal", "share", SERIES_GAUGE},
	[NVML_CLOCK_SM] = {"clock.sm", "hz", SERIES_GAUGE},
	[NVML_TEMPERATURE] = {"temperature", "celsius", SERIES_GAUGE},
	[NVML_PCIE_RX] = {"pcie.rx", "bytes/s", SERIES_GAUGE},
	[NVML_PCIE_TX] = {"pcie.tx", "bytes/s", SERIES_GAUGE},
};

/* Series are defined with their first value, so that what cannot be read is absent. -1: not yet. */
struct gpu_series {
	int ids[NVML_FIGURES], target;
	double energy;
	bool told;
};

struct gpu_state {
	struct gpu_reader *reader;
	struct gpu_reading *readings; /* of `count` GPUs, as are */
	struct gpu_series *gpus;
	size_t count;
	int64_t next, waited_at;
	bool told_silence;
};

/* The kernel module of the driver, or the stand-in for it in Windows' Linux subsystem. */
static bool driver_is_loaded(void)
{
	int fd = procfs_open("driver/nvidia/version");

	if (fd < 0)
		fd = sysfs_open("module/nvidia");
	if (fd < 0)
		fd = sysfs_open("class/misc/dxg");
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void gpu_close(void *state)
{
	struct gpu_state *s = state;

	gpu_reader_free(s->reader);
	free(s->readings);
	free(s->gpus);
	free(s);
}

static int gpu_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct gpu_state *s;
	int result;

	(void)c;
	if (!driver_is_loaded()) {
		error_set(why_not, "no driver of NVIDIA is loaded (%s/driver/nvidia, %s/module/nvidia)", procfs_root(),
			  sysfs_root());
		return SOURCE_ABSENT;
	}
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	result = gpu_reader_new(PATIENCE_NS, &s->reader, why_not);
	if (result < 0) {
		gpu_close(s);
		return result;
	}
	s->count = gpu_reader_count(s->reader);
	s->readings = calloc(s->count, sizeof *s->readings);
	s->gpus = calloc(s->count, sizeof *s->gpus);
	if (!s->readings || !s->gpus) {
		gpu_close(s);
		return error_set(why_not, "out of memory");
	}
	for (size_t i = 0; i < s->count; i++) {
		s->gpus[i].target = -1;
		for (size_t k = 0; k < NVML_FIGURES; k++)
			s->gpus[i].ids[k] = -1;
	}
	*ret_state = s;
	return 0;
}

static void put(struct gpu_state *s, struct source_context *c, size_t gpu, int *id, const char *name, const char *unit,
		enum series_kind kind, double value, int64_t now)
{
	char whole[64], scope[NVML_NAME_SIZE + 32];

	if (isnan(value))
		return;
	if (*id < 0) {
		snprintf(whole, sizeof whole, "gpu.%zu.%s", gpu, name);
		snprintf(scope, sizeof scope, "gpu %zu %s", gpu, gpu_reader_name(s->reader, gpu));
		*id = series_define(c, &(struct series_desc){whole, unit, "gpu", scope, kind});
	}
	timeline_put(c->timeline, *id, now, value);
}

/* Whether the driver counts pids as we do: in a container it may not. */
static bool is_our_pid(unsigned pid)
{
	return pid <= INT_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* What the tree's processes have of the device; NaN where none of them was seen there and that may be for the pids. */
static double target_memory(const struct gpu_series *gpu, const struct gpu_reading *reading,
			    struct process_table *processes)
{
	bool any = gpu->target >= 0, all_ours = reading->process_count > 0;
	double sum = 0;

	if (!reading->has_processes)
		return NAN;
	for (size_t i = 0; i < reading->process_count; i++) {
		const struct nvml_process *p = &reading->processes[i];

		all_ours = all_ours && (any || is_our_pid(p->pid));
		if (!process_find(processes, (int)p->pid))
			continue;
		sum += p->bytes;
		any = true;
	}
	return any || all_ours ? sum : NAN;
}

static void put_gpu(struct gpu_state *s, struct source_context *c, size_t i, int64_t now)
{
	struct gpu_reading *reading = &s->readings[i];
	struct gpu_series *gpu = &s->gpus[i];

	/* Resetting a GPU sets its count to zero. */
	if (reading->values[NVML_ENERGY] < gpu->energy)
		reading->values[NVML_ENERGY] = NAN;
	else if (!isnan(reading->values[NVML_ENERGY]))
		gpu->energy = reading->values[NVML_ENERGY];
	for (size_t k = 0; k < NVML_FIGURES; k++)
		put(s, c, i, &gpu->ids[k], figures[k].name, figures[k].unit, figures[k].kind, reading->values[k], now);
	put(s, c, i, &gpu->target, "memory.target", "bytes", SERIES_GAUGE, target_memory(gpu, reading, c->processes),
	    now);
	if (*reading->trouble && !gpu->told)
		warnings_add(c->warnings, "GPU %zu could not be read at all times: %s.", i, reading->trouble);
	gpu->told = gpu->told || *reading->trouble;
}

static void put_news(struct gpu_state *s, struct source_context *c, int64_t now)
{
	if (!gpu_reader_take(s->reader, s->readings))
		return;
	for (size_t i = 0; i < s->count; i++)
		put_gpu(s, c, i, now);
}

/* Readings take milliseconds: the ticks after they were asked for take them in. */
static void gpu_tick(void *state, struct source_context *c, int64_t now)
{
	put_news(state, c, now);
}

static void gpu_slow(void *state, struct source_context *c, int64_t now)
{
	struct gpu_state *s = state;
	bool wait = c->exact && (s->waited_at == 0 || now - s->waited_at >= EXACT_EVERY_NS);
	int64_t rest;

	if (!c->exact && now < s->next) {
		put_news(s, c, now);
		return;
	}
	if (wait)
		s->waited_at = now;
	gpu_reader_ask(s->reader, wait ? EXACT_WAIT_NS : 0);
	put_news(s, c, now);
	rest = PACE_GPU * gpu_reader_cost_ns(s->reader);
	s->next = now + (rest < PACE_LONGEST_NS ? rest : PACE_LONGEST_NS);
	if (gpu_reader_silent_ns(s->reader) > SILENCE_NS && !s->told_silence) {
		s->told_silence = true;
		warnings_add(c->warnings,
			     "The GPU driver did not answer for %.0f s: figures of the GPUs are missing there.",
			     (double)SILENCE_NS / 1e9);
	}
}

const struct source source_gpu = {
	.name = "gpu",
	.summary = "use, memory, power, PCIe traffic and throttling of NVIDIA GPUs",
	.open = gpu_open,
	.tick = gpu_tick,
	.slow = gpu_slow,
	.close = gpu_close,
};
