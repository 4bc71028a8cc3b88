/* Time. Everything inside is int64_t nanoseconds of CLOCK_MONOTONIC; wall time appears only at the edge. */
#ifndef ASSAY_BASE_CLOCK_H
#define ASSAY_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

int64_t clock_mono_ns(void);
int64_t clock_wall_ns(void);    /* since 1970, UTC */
int64_t clock_process_ns(void); /* CPU time of this process, all its threads */

/* Wall minus monotonic, read so that a switch between the two reads cannot spoil it (best of several tries). */
int64_t clock_wall_offset_ns(void);

/* "2026-11-29T17:15:41.123Z" */
void clock_iso8601(int64_t wall_ns, char *text, size_t size);

/* The smallest step of CLOCK_MONOTONIC that two readings in a row show. */
int64_t clock_step_ns(void);

/* Sleeps, without being cut short by signals. */
void clock_sleep_ns(int64_t ns);

#endif
