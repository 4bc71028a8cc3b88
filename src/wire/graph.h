/* The layout of a recording of calls: what libassay writes of a program compiled with -finstrument-functions, and what
 * src/store reads when it is over, whole or killed. Layout only: libc, no code.
 *
 * A process writes "calls-PID-NONCE.process", lines of text, each by one write:
 *     assay-calls 1 PID tsc|ns     the first line: which clock the threads' files are in
 *     pair CLOCK NS                the clock and CLOCK_MONOTONIC at one moment
 *     module START END OFFSET DEVICE INODE SIZE MTIME_NS PATH   a mapping of code (hexadecimal the first three; PATH as
 *                                  /proc/PID/maps has it, to the end of the line; SIZE 0: what is at PATH is not it)
 *     refused ERRNO                a thread found no room
 *     end CLOCK                    the recording ended in good order
 * and for each thread (or several, one after the other) "calls-PID-NONCE.N": a page with struct calls_header, from
 * CALLS_PAIRS_AT on its pairs, from CALLS_FRAMES_AT on the calls that are open. Only its thread writes it. */
#ifndef ASSAY_WIRE_GRAPH_H
#define ASSAY_WIRE_GRAPH_H

#include <stdatomic.h>
#include <stdint.h>

#define CALLS_FILE_PREFIX "calls-"
#define CALLS_PROCESS_SUFFIX ".process"
#define CALLS_PROCESS_FIRST "assay-calls 1 "
#define CALLS_MAGIC "ASSAYCAL"
#define CALLS_VERSION 1u
#define CALLS_FOLDER_VARIABLE "ASSAY_INSTRUMENT"
#define CALLS_GRAPH_FILE "calls.graph" /* what `assay profile --instrument FOLDER` makes of them, in the folder */

#define CALLS_PAIRS_AT 4096u
#define CALLS_PAIRS_MAX (1u << 20)  /* of a thread, 64 MiB; of what comes more only the number is kept */
#define CALLS_FRAMES_AT (1u << 27)  /* the file has a hole before it */
#define CALLS_FRAMES_MAX (1u << 21) /* calls within calls, 64 MiB */

/* Pairs that are none: what was called from outside has caller 0 and is below pair 0; pair 1 counts what found no room,
 * and what that called. */
#define CALLS_OUTSIDE 0u
#define CALLS_DROPPED 1u
#define CALLS_RESERVED 2u

struct calls_header {
	char magic[8];
	uint32_t version;
	int32_t pid, tid; /* tid: of the first thread */
	int32_t trouble;  /* errno of what ended its growing; 0: none */
	uint64_t depth;   /* frames that are open, behind frame 0, which stands for the outside */
	uint64_t last;    /* clock of the last call that ended */
	uint64_t pairs;   /* in use, the reserved ones included */
	uint64_t beyond;  /* calls deeper than CALLS_FRAMES_MAX, which nothing else is known of */
	uint64_t lost;    /* calls that did not end by a return */
};

/* Times are in the clock of the process. */
struct calls_pair {
	uint64_t caller, callee; /* addresses; caller 0: called from outside what is recorded */
	uint64_t calls;          /* begun */
	uint64_t primitive;      /* of these, those of a function that was not open in the thread */
	uint64_t self;
	uint64_t total; /* of the primitive ones */
	/* The writer's own. */
	uint32_t function; /* the pair of this callee with the outside ... */
	uint32_t open;     /* ... where so many of its calls are open */
	uint32_t last;     /* the pair of the last call from this callee */
	uint32_t unused;
};

struct calls_frame {
	uint64_t start;
	uint64_t children; /* time in what it called and what has ended */
	uint64_t place;    /* of the stack, the writer's own, as are site and hook */
	uint32_t pair;
	uint16_t site, hook; /* the last bits of where it returns to, and of where its own code told of it */
};

_Static_assert(sizeof(struct calls_header) <= CALLS_PAIRS_AT, "the header has a page");
_Static_assert(sizeof(struct calls_pair) == 64 && sizeof(struct calls_frame) == 32, "the layout is fixed");
_Static_assert(CALLS_PAIRS_AT + CALLS_PAIRS_MAX * sizeof(struct calls_pair) <= CALLS_FRAMES_AT, "the areas are apart");

#endif
