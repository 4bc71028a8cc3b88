/* What libassay and the program that watches memory for it (assay-spy) share: one page of memory with the figures so
 * far, and a pair of sockets.
 *
 * The page outlives either of the two, so a spy that is killed leaves its figures. Two slots are written in turn: the
 * one that is named is never half-written. Both are of one installation; the version guards against a mixture. */
#ifndef ASSAY_WIRE_SPY_H
#define ASSAY_WIRE_SPY_H

#include <stdint.h>

#define SPY_WIRE_VERSION 1
#define SPY_WIRE_RESOURCES 5 /* rss, anon, file, swap, pss */
#define SPY_WIRE_GPUS 64

/* Where the program finds them, and that nothing else is open. */
#define SPY_WIRE_SOCKET 3
#define SPY_WIRE_PAGE 4

struct spy_wire_monitor {
	int64_t begin, end, peak; /* bytes; -1 while n is 0 */
	int64_t peak_at;          /* ns since the watch began */
	uint64_t n;
	double average;
};

struct spy_wire_figures {
	struct spy_wire_monitor resources[SPY_WIRE_RESOURCES], gpus[SPY_WIRE_GPUS];
	uint64_t gpu_count;
	int64_t high_water_begin, high_water_end, peak, peak_above; /* bytes; -1 not known */
	int64_t seconds_ns;
	uint32_t exact, gone;
};

struct spy_wire_page {
	uint32_t version;
	uint32_t current; /* 0: none yet; 1, 2: the slot that is whole */
	struct spy_wire_figures slots[2];
};

enum spy_wire_news {
	SPY_WIRE_READY,  /* the first reading is done */
	SPY_WIRE_FAILED, /* the text says why; the program ends */
	SPY_WIRE_DONE,   /* the last reading is in the page; the program ends */
};

/* From the program. Whatever is sent to it means: stop. */
struct spy_wire_message {
	uint32_t news;
	int32_t pid; /* of the program */
	char text[504];
};

enum spy_wire_flags { SPY_WIRE_GPU = 1, SPY_WIRE_TREE = 2, SPY_WIRE_PSS = 4 };

#endif
