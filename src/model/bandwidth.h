/* How fast this machine's memory can be read: one measurement. Plain data; bytes and seconds. */
#ifndef ASSAY_MODEL_BANDWIDTH_H
#define ASSAY_MODEL_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

struct bandwidth {
	/* Bytes per second read by one thread, and by one on each allowed CPU together: the median over rounds. 0: not
	 * measured. */
	double one, all;
	double one_spread, all_spread; /* (fastest - slowest) / median over rounds, a share */
	int threads;		       /* that `all` is of */
	/* Bytes of distinct pages per second that `memory.touched` saw of the probe while all its threads read: the
	 * same look at a program that reads as fast as can be. NaN where that look is not possible, or found nearly all
	 * pages touched, so that it could not tell this machine from a faster one. */
	double touched;
	double cache_bytes; /* the last-level cache, all of its instances; 0: unknown */
	double took_s;      /* how long the measurement took */
	int64_t wall_ns;    /* when, CLOCK_REALTIME */
	bool quiet;	    /* nothing else of weight was running */
};

#endif
