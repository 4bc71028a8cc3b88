/* assay_spy.h: memory over time, seen by another process. Part of assay.h, which includes it.
 *
 * C99 and C++. A program of assay's own is started (never a copy of the caller) and reads /proc
 * while the caller works. Bytes, seconds. From any thread, several at once. Works without a recording. */
#ifndef ASSAY_SPY_H
#define ASSAY_SPY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum assay_spy_flags {
	ASSAY_SPY_GPU = 1,  /* each GPU's used memory, too */
	ASSAY_SPY_TREE = 2, /* the process and its descendants, summed */
	ASSAY_SPY_PSS = 4   /* proportional memory, read rarely: it is dear */
};

struct assay_monitor {
	int64_t begin, end, peak; /* bytes; -1 where it was never read */
	double average;           /* NaN where it was never read */
	uint64_t n;               /* readings */
	double peak_at;           /* seconds since the start */
};

#define ASSAY_SPY_GPUS 64

struct assay_spy_result {
	struct assay_monitor rss, anon, file, swap, pss;
	struct assay_monitor gpus[ASSAY_SPY_GPUS];
	size_t gpu_count;
	int64_t high_water_begin, high_water_end; /* the kernel's own peak of the RSS; -1 not known */
	int64_t peak;        /* of the RSS: between the readings, too, where the high-water mark tells */
	int64_t peak_above;  /* where peak is a bound from below (peak_exact 0): one from above; -1 not known */
	int peak_exact;
	int gone;            /* the process ended before assay_spy_stop */
	int partial;         /* the spy was killed: figures until then */
	double seconds;
};

struct assay_spy;

/* pid 0: this process. delay in seconds, 0: 0.01; at least 0.0001. NULL, and assay_last_error, where there is no such
 * process, or the spy cannot be started. Returns after the first reading. The spy ends with the process that started
 * it. */
struct assay_spy *assay_spy_start(int pid, double delay, unsigned flags);

/* Ends it, after a last reading, and frees it. Returns 0; -1 (assay_last_error) where the spy was killed: then *result
 * holds what it had seen, and says partial. result may be NULL. Never waits for long. */
int assay_spy_stop(struct assay_spy *spy, struct assay_spy_result *result);

/* `bytes` in a unit: 1024 * 1024 for MiB. NaN where bytes is -1. */
double assay_spy_in(int64_t bytes, double unit);

#ifdef __cplusplus
}
#endif

#endif
