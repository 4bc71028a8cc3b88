/* Figures for people: seconds, bytes, shares. Machine-readable output never goes through here. */
#ifndef ASSAY_BASE_UNITS_H
#define ASSAY_BASE_UNITS_H

#include <stdint.h>

/* Holds one figure, so that several can stand in one printf: units_bytes(x).text */
struct units_text {
	char text[32];
};

struct units_text units_seconds(double seconds); /* 1.234 s, 12.3 ms, 3 min 05 s; n/a for NaN */
struct units_text units_bytes(double bytes);     /* 12.3 MiB, 1.20 GiB, 512 B; n/a for NaN */
struct units_text units_percent(double share);   /* 0.034 -> 3.4%; n/a for NaN */
struct units_text units_count(double count);     /* 1,234,567; n/a for NaN */

#endif
