/* A resource that is watched: first, last, largest and mean value, how many there were, and when the largest was seen.
 * Plain data; it knows neither what is watched nor how. */
#ifndef ASSAY_MODEL_MONITOR_H
#define ASSAY_MODEL_MONITOR_H

#include <stdint.h>

struct monitor {
	int64_t begin, end, peak; /* -1 while n is 0 */
	int64_t peak_at;          /* CLOCK_MONOTONIC, ns */
	uint64_t n;
	double sum;
};

void monitor_init(struct monitor *m);

/* Values below 0 are not known, and left out. */
void monitor_add(struct monitor *m, int64_t value, int64_t now);

double monitor_average(const struct monitor *m); /* NaN while n is 0 */

#endif
