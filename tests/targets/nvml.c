/* A stand-in for libnvidia-ml.so.1, whose answers stand in the file that $ASSAY_TEST_NVML names. It is read anew at
 * each call, so a test can replace it (by renaming) meanwhile. Lines are
 *
 *	KEY VALUE...	count N, or gpu.N.QUESTION: see the functions below
 *	KEY error N	the call returns N
 *	KEY hang	the call does not return before the line is gone
 *
 * A device's question without a line is not supported. Names of calls are appended to FILE.calls. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define UNKNOWN 999

struct device; /* as in the library's header; a handle is the index + 1 */
typedef struct device *device_t;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *ret);
int nvmlDeviceGetName(device_t device, char *ret, unsigned size);
int nvmlDeviceGetUtilizationRates(device_t device, unsigned ret[2]);
int nvmlDeviceGetMemoryInfo(device_t device, unsigned long long ret[3]);
int nvmlDeviceGetPowerUsage(device_t device, unsigned *ret);
int nvmlDeviceGetTotalEnergyConsumption(device_t device, unsigned long long *ret);
int nvmlDeviceGetPcieThroughput(device_t device, int counter, unsigned *ret);
int nvmlDeviceGetCurrPcieLinkGeneration(device_t device, unsigned *ret);
int nvmlDeviceGetCurrPcieLinkWidth(device_t device, unsigned *ret);
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t device, unsigned long long *ret);
int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned *ret);
int nvmlDeviceGetClockInfo(device_t device, int domain, unsigned *ret);
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, void *ret);

static void pause_ms(long ms)
{
	struct timespec left = {.tv_sec = 0, .tv_nsec = ms * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void note_call(const char *key)
{
	const char *path = getenv("ASSAY_TEST_NVML");
	char calls[4096];
	FILE *f;

	snprintf(calls, sizeof calls, "%s.calls", path ? path : "");
	f = path ? fopen(calls, "ae") : NULL;
	if (f && (fprintf(f, "%s\n", key) < 0 || fclose(f) != 0))
		abort();
}

/* The values of a key as text; false where it has no line. */
static int find(const char *key, char *text, int size)
{
	const char *path = getenv("ASSAY_TEST_NVML");
	FILE *f = path ? fopen(path, "re") : NULL;
	size_t length = strlen(key);
	char line[4096];
	int found = 0;

	while (f && !found && fgets(line, sizeof line, f)) {
		if (strncmp(line, key, length) != 0 || (line[length] != ' ' && line[length] != '\n'))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(text, (size_t)size, "%s", line + length + (line[length] == ' '));
		found = 1;
	}
	if (f)
		fclose(f);
	return found;
}

static int answer(const char *key, int without, char *text, int size)
{
	note_call(key);
	while (find(key, text, size)) {
		if (strncmp(text, "error ", 6) == 0)
			return atoi(text + 6);
		if (strcmp(text, "hang") != 0)
			return SUCCESS;
		pause_ms(1);
	}
	*text = '\0';
	return without;
}

/* A device's values; those that the line lacks are 0. */
static int device_answer(device_t device, const char *question, char *text, int size)
{
	char key[64];

	if (!device)
		return INVALID_ARGUMENT;
	snprintf(key, sizeof key, "gpu.%d.%s", (int)((uintptr_t)device - 1), question);
	return answer(key, NOT_SUPPORTED, text, size);
}

static int numbers(device_t device, const char *question, unsigned long long *ret, int count)
{
	char text[4096], *at = text;
	int result = device_answer(device, question, text, sizeof text);

	for (int i = 0; result == SUCCESS && i < count; i++)
		ret[i] = strtoull(at, &at, 0);
	return result;
}

static int number(device_t device, const char *question, unsigned *ret)
{
	unsigned long long value = 0;
	int result = numbers(device, question, &value, 1);

	if (result == SUCCESS)
		*ret = (unsigned)value;
	return result;
}

int nvmlInit_v2(void)
{
	char text[64];

	return answer("init", SUCCESS, text, sizeof text);
}

int nvmlShutdown(void)
{
	char text[64];

	return answer("shutdown", SUCCESS, text, sizeof text);
}

const char *nvmlErrorString(int result)
{
	switch (result) {
	case 4:
		return "Insufficient Permissions";
	case 9:
		return "Driver Not Loaded";
	case 15:
		return "GPU is lost";
	case 18:
		return "Driver/library version mismatch";
	case UNKNOWN:
		return "Unknown Error";
	default:
		return "";
	}
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
	char text[64];
	int result = answer("count", SUCCESS, text, sizeof text);

	*ret = (unsigned)strtoul(text, NULL, 10);
	return result;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *ret)
{
	char text[64], key[32];

	snprintf(key, sizeof key, "gpu.%u.handle", index);
	*ret = (device_t)((uintptr_t)index + 1);
	return answer(key, SUCCESS, text, sizeof text);
}

int nvmlDeviceGetName(device_t device, char *ret, unsigned size)
{
	return device_answer(device, "name", ret, (int)size);
}

/* utilization PERCENT MEMORY_PERCENT */
int nvmlDeviceGetUtilizationRates(device_t device, unsigned ret[2])
{
	unsigned long long values[2];
	int result = numbers(device, "utilization", values, 2);

	for (int i = 0; result == SUCCESS && i < 2; i++)
		ret[i] = (unsigned)values[i];
	return result;
}

/* memory TOTAL FREE USED, in bytes */
int nvmlDeviceGetMemoryInfo(device_t device, unsigned long long ret[3])
{
	return numbers(device, "memory", ret, 3);
}

/* power MILLIWATTS */
int nvmlDeviceGetPowerUsage(device_t device, unsigned *ret)
{
	return number(device, "power", ret);
}

/* energy MILLIJOULES */
int nvmlDeviceGetTotalEnergyConsumption(device_t device, unsigned long long *ret)
{
	return numbers(device, "energy", ret, 1);
}

/* tx, rx KILOBYTES_PER_SECOND, which take their time as those of the library do */
int nvmlDeviceGetPcieThroughput(device_t device, int counter, unsigned *ret)
{
	pause_ms(20);
	return number(device, counter == 0 ? "tx" : "rx", ret);
}

/* generation N */
int nvmlDeviceGetCurrPcieLinkGeneration(device_t device, unsigned *ret)
{
	return number(device, "generation", ret);
}

/* width N */
int nvmlDeviceGetCurrPcieLinkWidth(device_t device, unsigned *ret)
{
	return number(device, "width", ret);
}

/* throttle BITS. The newer name of this call is left out, so that an older library is tried too. */
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t device, unsigned long long *ret)
{
	return numbers(device, "throttle", ret, 1);
}

/* temperature DEGREES */
int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned *ret)
{
	return sensor == 0 ? number(device, "temperature", ret) : INVALID_ARGUMENT;
}

/* clock MEGAHERTZ, of the SMs */
int nvmlDeviceGetClockInfo(device_t device, int domain, unsigned *ret)
{
	return domain == 1 ? number(device, "clock", ret) : INVALID_ARGUMENT;
}

/* processes SIZE PID BYTES...: structs of SIZE bytes, as far as drivers have differed in it; SIZE 0 says that the room
 * does not suffice. */
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, void *ret)
{
	char text[4096], *at = text, *next;
	int result = device_answer(device, "processes", text, sizeof text);
	unsigned long size;
	unsigned found = 0;

	if (result != SUCCESS)
		return result;
	size = strtoul(text, &at, 10);
	if (size == 0)
		return INSUFFICIENT_SIZE;
	for (; found < *count; found++) {
		unsigned char *one = (unsigned char *)ret + found * size;
		unsigned pid = (unsigned)strtoul(at, &next, 10);
		unsigned long long bytes;

		if (next == at)
			break;
		bytes = strtoull(next, &at, 0);
		memset(one, 0xff, size);
		memcpy(one, &pid, sizeof pid);
		memcpy(one + 8, &bytes, sizeof bytes);
	}
	*count = found;
	return SUCCESS;
}
