/* NVIDIA's management library (NVML), opened at run time, and the few figures that are read through it.
 *
 * Names, signatures and values are those of the library's binary interface, after NVIDIA's public nvml.h of versions 11
 * to 13; nothing of NVIDIA's is needed to build. It knows neither series nor threads. The library may be called from
 * several threads at once; any call may block for as long as the driver likes. */
#ifndef ASSAY_SOURCE_NVML_H
#define ASSAY_SOURCE_NVML_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_NAME_SIZE 96
#define NVML_PROCESSES_MAX 256

/* What calls return; some of enum nvmlReturn_t. */
enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_GPU_NOT_FOUND = 28,
	NVML_UNKNOWN = 999,
};

/* What is read of a device, in these units. */
enum nvml_figure {
	NVML_UTILIZATION,	 /* 0 to 1: of the library's last sample period, time in which a kernel ran */
	NVML_MEMORY_UTILIZATION, /* the same of reads and writes of device memory */
	NVML_MEMORY_USED,	 /* bytes */
	NVML_POWER,		 /* W */
	NVML_ENERGY,		 /* J since the driver was loaded */
	NVML_PCIE_PEAK,		 /* bytes per second and direction, of the link as it is now */
	NVML_THROTTLE_POWER,	 /* 0 or 1 */
	NVML_THROTTLE_THERMAL,
	NVML_CLOCK_SM,	  /* Hz */
	NVML_TEMPERATURE, /* degrees Celsius */
	NVML_PCIE_RX,	  /* bytes per second */
	NVML_PCIE_TX,
	NVML_FIGURES
};

/* One call of the library each, or two that belong together. Those from NVML_ASK_PCIE_RX on block for 20 ms. */
enum nvml_question {
	NVML_ASK_UTILIZATION,
	NVML_ASK_MEMORY,
	NVML_ASK_POWER,
	NVML_ASK_ENERGY,
	NVML_ASK_LINK,
	NVML_ASK_THROTTLE,
	NVML_ASK_CLOCK,
	NVML_ASK_TEMPERATURE,
	NVML_ASK_PCIE_RX,
	NVML_ASK_PCIE_TX,
	NVML_QUESTIONS
};

typedef struct nvml_device_handle *nvml_device;

struct nvml_utilization {
	unsigned gpu, memory; /* percent */
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_process {
	unsigned pid;
	double bytes; /* NaN: the driver does not tell */
};

/* The functions; NULL where this library has none of that name. */
struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int result);
	int (*count)(unsigned *ret);
	int (*handle)(unsigned index, nvml_device *ret);
	int (*name)(nvml_device device, char *ret, unsigned size);
	int (*utilization)(nvml_device device, struct nvml_utilization *ret);
	int (*memory)(nvml_device device, struct nvml_memory *ret);
	int (*power)(nvml_device device, unsigned *ret_mw);
	int (*energy)(nvml_device device, unsigned long long *ret_mj);
	int (*pcie)(nvml_device device, int counter, unsigned *ret_kb_per_s);
	int (*link_generation)(nvml_device device, unsigned *ret);
	int (*link_width)(nvml_device device, unsigned *ret);
	int (*throttle)(nvml_device device, unsigned long long *ret_reasons);
	int (*temperature)(nvml_device device, int sensor, unsigned *ret);
	int (*clock)(nvml_device device, int domain, unsigned *ret_mhz);
	int (*processes)(nvml_device device, unsigned *count, void *ret);
};

/* Opens the library, which stays loaded: it may have left threads or handlers behind. Returns NVML_NO_LIBRARY where it
 * cannot be opened, -1 where it lacks what nothing goes without. */
#define NVML_NO_LIBRARY (-2)
int nvml_load(struct nvml *ret, struct error *err);

/* The library's words for a result. */
const char *nvml_words(const struct nvml *nvml, int result);

/* Fills the figures that the question is about and returns NVML_SUCCESS, or leaves them alone and returns why. A value
 * that makes no sense (110 percent, a link of generation 0) leaves NaN. */
int nvml_ask(const struct nvml *nvml, nvml_device device, enum nvml_question question, double values[NVML_FIGURES]);

/* What a question is about, in a word or two. */
const char *nvml_question_name(enum nvml_question question);

/* The processes with a compute context on the device. More than there is room for is NVML_INSUFFICIENT_SIZE. */
int nvml_ask_processes(const struct nvml *nvml, nvml_device device, struct nvml_process ret[NVML_PROCESSES_MAX],
		       size_t *ret_count);

#endif
