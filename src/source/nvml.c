#include "source/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* nvmlClocksEventReason... (until version 12: nvmlClocksThrottleReason...). HwSlowdown is set with either of the two
 * hardware reasons, and alone by drivers that do not tell them apart. */
#define SW_POWER_CAP 0x4u
#define HW_SLOWDOWN 0x8u
#define SW_THERMAL_SLOWDOWN 0x20u
#define HW_THERMAL_SLOWDOWN 0x40u
#define HW_POWER_BRAKE_SLOWDOWN 0x80u

#define PCIE_UTIL_TX 0	  /* NVML_PCIE_UTIL_TX_BYTES */
#define PCIE_UTIL_RX 1	  /* NVML_PCIE_UTIL_RX_BYTES */
#define TEMPERATURE_GPU 0 /* NVML_TEMPERATURE_GPU */
#define CLOCK_SM 1	  /* NVML_CLOCK_SM */

/* nvmlProcessInfo_t has had three sizes: 16 bytes (pid, memory), 24 with the ids of MIG instances, and 32 under the
 * name _v3 in drivers 535.43 to 535.86 alone. Pid and memory stand at the same places in all of them. */
#define PROCESS_SIZE_MAX 32
#define PROCESS_MEMORY_AT 8
#define UNWRITTEN 0xa5
#define MEMORY_NOT_TOLD UINT64_MAX /* NVML_VALUE_NOT_AVAILABLE */

static const struct {
	size_t at;
	bool needed;
	const char *names[3]; /* the newest first */
} symbols[] = {
	{offsetof(struct nvml, init), true, {"nvmlInit_v2"}},
	{offsetof(struct nvml, shutdown), true, {"nvmlShutdown"}},
	{offsetof(struct nvml, error_string), true, {"nvmlErrorString"}},
	{offsetof(struct nvml, count), true, {"nvmlDeviceGetCount_v2"}},
	{offsetof(struct nvml, handle), true, {"nvmlDeviceGetHandleByIndex_v2"}},
	{offsetof(struct nvml, name), true, {"nvmlDeviceGetName"}},
	{offsetof(struct nvml, utilization), false, {"nvmlDeviceGetUtilizationRates"}},
	{offsetof(struct nvml, memory), false, {"nvmlDeviceGetMemoryInfo"}},
	{offsetof(struct nvml, power), false, {"nvmlDeviceGetPowerUsage"}},
	{offsetof(struct nvml, energy), false, {"nvmlDeviceGetTotalEnergyConsumption"}},
	{offsetof(struct nvml, pcie), false, {"nvmlDeviceGetPcieThroughput"}},
	{offsetof(struct nvml, link_generation), false, {"nvmlDeviceGetCurrPcieLinkGeneration"}},
	{offsetof(struct nvml, link_width), false, {"nvmlDeviceGetCurrPcieLinkWidth"}},
	{offsetof(struct nvml, throttle),
	 false,
	 {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}},
	{offsetof(struct nvml, temperature), false, {"nvmlDeviceGetTemperature"}},
	{offsetof(struct nvml, clock), false, {"nvmlDeviceGetClockInfo"}},
	{offsetof(struct nvml, processes),
	 false,
	 {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
	  "nvmlDeviceGetComputeRunningProcesses"}},
};

int nvml_load(struct nvml *ret, struct error *err)
{
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct nvml nvml = {0};

	if (!library) {
		error_set(err, "%s", dlerror());
		return NVML_NO_LIBRARY;
	}
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = NULL;

		for (size_t k = 0; k < 3 && !found && symbols[i].names[k]; k++)
			found = dlsym(library, symbols[i].names[k]);
		if (!found && symbols[i].needed)
			return error_set(err, "%s has no %s", NVML_LIBRARY, symbols[i].names[0]);
		memcpy((char *)&nvml + symbols[i].at, &found, sizeof found);
	}
	*ret = nvml;
	return 0;
}

const char *nvml_words(const struct nvml *nvml, int result)
{
	const char *words = nvml->error_string(result);

	return words && *words ? words : "no reason given";
}

static double share(unsigned percent)
{
	return percent <= 100 ? percent / 100.0 : NAN;
}

static int ask_utilization(const struct nvml *nvml, nvml_device device, double *values)
{
	struct nvml_utilization got = {0};
	int result = nvml->utilization ? nvml->utilization(device, &got) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS) {
		values[NVML_UTILIZATION] = share(got.gpu);
		values[NVML_MEMORY_UTILIZATION] = share(got.memory);
	}
	return result;
}

static int ask_memory(const struct nvml *nvml, nvml_device device, double *values)
{
	struct nvml_memory got = {0};
	int result = nvml->memory ? nvml->memory(device, &got) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		values[NVML_MEMORY_USED] = (double)got.used;
	return result;
}

static int ask_power(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned milliwatts = 0;
	int result = nvml->power ? nvml->power(device, &milliwatts) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		values[NVML_POWER] = milliwatts / 1e3;
	return result;
}

static int ask_energy(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned long long millijoules = 0;
	int result = nvml->energy ? nvml->energy(device, &millijoules) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		values[NVML_ENERGY] = (double)millijoules / 1e3;
	return result;
}

/* Generations 1 and 2 send 8 of 10 bits, 3 to 5 send 128 of 130, 6 sends 242 bytes of each 256. */
static double link_peak(unsigned generation, unsigned width)
{
	static const double lane[] = {NAN, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6};

	if (generation >= sizeof lane / sizeof *lane || width == 0 || width > 32)
		return NAN;
	return lane[generation] * width;
}

static int ask_link(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned generation = 0, width = 0;
	int result = nvml->link_generation && nvml->link_width ? nvml->link_generation(device, &generation)
							       : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		result = nvml->link_width(device, &width);
	if (result == NVML_SUCCESS)
		values[NVML_PCIE_PEAK] = link_peak(generation, width);
	return result;
}

static int ask_throttle(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned long long reasons = 0;
	int result = nvml->throttle ? nvml->throttle(device, &reasons) : NVML_FUNCTION_NOT_FOUND;
	bool power, thermal;

	if (result != NVML_SUCCESS)
		return result;
	power = reasons & (SW_POWER_CAP | HW_POWER_BRAKE_SLOWDOWN);
	thermal = reasons & (SW_THERMAL_SLOWDOWN | HW_THERMAL_SLOWDOWN);
	if ((reasons & HW_SLOWDOWN) && !(reasons & (HW_POWER_BRAKE_SLOWDOWN | HW_THERMAL_SLOWDOWN)))
		power = thermal = true;
	values[NVML_THROTTLE_POWER] = power;
	values[NVML_THROTTLE_THERMAL] = thermal;
	return result;
}

static int ask_clock(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned megahertz = 0;
	int result = nvml->clock ? nvml->clock(device, CLOCK_SM, &megahertz) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		values[NVML_CLOCK_SM] = megahertz * 1e6;
	return result;
}

static int ask_temperature(const struct nvml *nvml, nvml_device device, double *values)
{
	unsigned degrees = 0;
	int result = nvml->temperature ? nvml->temperature(device, TEMPERATURE_GPU, &degrees) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		values[NVML_TEMPERATURE] = degrees;
	return result;
}

static int ask_pcie(const struct nvml *nvml, nvml_device device, int counter, double *value)
{
	unsigned kilobytes = 0;
	int result = nvml->pcie ? nvml->pcie(device, counter, &kilobytes) : NVML_FUNCTION_NOT_FOUND;

	if (result == NVML_SUCCESS)
		*value = kilobytes * 1e3;
	return result;
}

static int ask_pcie_rx(const struct nvml *nvml, nvml_device device, double *values)
{
	return ask_pcie(nvml, device, PCIE_UTIL_RX, &values[NVML_PCIE_RX]);
}

static int ask_pcie_tx(const struct nvml *nvml, nvml_device device, double *values)
{
	return ask_pcie(nvml, device, PCIE_UTIL_TX, &values[NVML_PCIE_TX]);
}

static const struct {
	const char *name;
	int (*ask)(const struct nvml *nvml, nvml_device device, double *values);
} questions[NVML_QUESTIONS] = {
	[NVML_ASK_UTILIZATION] = {"utilization", ask_utilization},
	[NVML_ASK_MEMORY] = {"memory", ask_memory},
	[NVML_ASK_POWER] = {"power", ask_power},
	[NVML_ASK_ENERGY] = {"energy", ask_energy},
	[NVML_ASK_LINK] = {"PCIe link", ask_link},
	[NVML_ASK_THROTTLE] = {"throttling", ask_throttle},
	[NVML_ASK_CLOCK] = {"clock", ask_clock},
	[NVML_ASK_TEMPERATURE] = {"temperature", ask_temperature},
	[NVML_ASK_PCIE_RX] = {"PCIe throughput", ask_pcie_rx},
	[NVML_ASK_PCIE_TX] = {"PCIe throughput", ask_pcie_tx},
};

int nvml_ask(const struct nvml *nvml, nvml_device device, enum nvml_question question, double values[NVML_FIGURES])
{
	return questions[question].ask(nvml, device, values);
}

const char *nvml_question_name(enum nvml_question question)
{
	return questions[question].name;
}

/* The size of each of `count` structs, by how far the buffer was written: which one a library means does not follow
 * from the function's name. 0 where it cannot be. */
static size_t size_written(const unsigned char *bytes, size_t room, size_t count)
{
	size_t size;

	while (room > 0 && bytes[room - 1] == UNWRITTEN)
		room--;
	size = count ? room / count : 0;
	return size * count == room && (size == 16 || size == 24 || size == 32) ? size : 0;
}

int nvml_ask_processes(const struct nvml *nvml, nvml_device device, struct nvml_process ret[NVML_PROCESSES_MAX],
		       size_t *ret_count)
{
	_Alignas(8) unsigned char bytes[NVML_PROCESSES_MAX * PROCESS_SIZE_MAX];
	unsigned count = NVML_PROCESSES_MAX;
	size_t size;
	int result;

	if (!nvml->processes)
		return NVML_FUNCTION_NOT_FOUND;
	memset(bytes, UNWRITTEN, sizeof bytes);
	result = nvml->processes(device, &count, bytes);
	if (result != NVML_SUCCESS)
		return result;
	if (count > NVML_PROCESSES_MAX)
		return NVML_INSUFFICIENT_SIZE;
	size = size_written(bytes, sizeof bytes, count);
	if (count && !size)
		return NVML_UNKNOWN;
	for (size_t i = 0; i < count; i++) {
		uint64_t memory;

		memcpy(&ret[i].pid, bytes + i * size, sizeof ret[i].pid);
		memcpy(&memory, bytes + i * size + PROCESS_MEMORY_AT, sizeof memory);
		ret[i].bytes = memory == MEMORY_NOT_TOLD ? NAN : (double)memory;
	}
	*ret_count = count;
	return result;
}
