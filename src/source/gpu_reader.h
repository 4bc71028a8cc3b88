/* Reads the GPUs in threads of its own, since any call into the driver may block: throughput of the PCIe link does for
 * 20 ms each time, and a GPU in trouble for seconds or for ever.
 *
 * Who asks never waits longer than it says. A thread that hangs in the driver is left behind with what it holds. Knows
 * no series. */
#ifndef ASSAY_SOURCE_GPU_READER_H
#define ASSAY_SOURCE_GPU_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/nvml.h"

#define GPUS_MAX 64

/* What is new of one GPU. */
struct gpu_reading {
	double values[NVML_FIGURES]; /* NaN: nothing new, or cannot be read */
	struct nvml_process processes[NVML_PROCESSES_MAX];
	size_t process_count;
	bool has_processes; /* the list is new */
	/* Why something could not be read that the device should know, e.g. "power: GPU is lost"; "" if all went well.
	 */
	char trouble[128];
};

struct gpu_reader;

/* Loads the library, finds the GPUs and reads them once. Returns SOURCE_ABSENT where there is no GPU or no library to
 * read it with, -1 where that fails or takes longer than `patience_ns`. */
int gpu_reader_new(int64_t patience_ns, struct gpu_reader **ret, struct error *why_not);

/* Waits up to two seconds for what is under way. NULL is accepted. */
void gpu_reader_free(struct gpu_reader *r);

size_t gpu_reader_count(const struct gpu_reader *r);
const char *gpu_reader_name(const struct gpu_reader *r, size_t gpu); /* "" where the GPU gave no handle */

/* Starts another reading, and waits up to `wait_ns` for its quick part. One that is under way is not disturbed. */
void gpu_reader_ask(struct gpu_reader *r, int64_t wait_ns);

/* Fills ret[0 .. count) with what came in since the last call; false where that is nothing. */
bool gpu_reader_take(struct gpu_reader *r, struct gpu_reading *ret);

/* CPU time of the last quick reading. */
int64_t gpu_reader_cost_ns(struct gpu_reader *r);

/* For how long the reading that was asked for has not come; 0 where none is outstanding. */
int64_t gpu_reader_silent_ns(struct gpu_reader *r);

#endif
