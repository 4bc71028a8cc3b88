/* The state of a callgrind file that is being read, and the lines that say what its costs are: "events:", "positions:",
 * totals. Inside src/ingest only. */
#ifndef ASSAY_INGEST_GRAPH_CALLGRIND_HEADER_H
#define ASSAY_INGEST_GRAPH_CALLGRIND_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ingest/graph_callgrind_names.h"
#include "ingest/graph_callgrind_sums.h"
#include "ingest/graph_reader.h"

struct place {
	uint32_t node; /* GRAPH_NONE: none yet */
	bool first;    /* no deeper one of a recursion */
};

struct callgrind {
	const struct graph_reading *how;
	struct graph *graph;
	const char *at, *end;		   /* what is left of the text */
	size_t line;			   /* the number of the one that was read last, from 1 */
	bool instructions, lines;	   /* what a position has */
	uint64_t instruction, source_line; /* of the last cost */
	struct buf event;		   /* which is read; empty: not known yet */
	size_t event_at, event_count;	   /* in this part; event_count 0: not told yet */
	struct callgrind_names objects, files, functions;
	struct callgrind_name object, file, called_object, called_file, called;
	const char *own_file; /* of the function: what was inlined into it stands in others */
	struct place caller;
	bool call_open; /* the next cost is that of a call */
	int64_t calls;
	uint64_t callee_line;
	struct callgrind_function *notes; /* by node */
	size_t note_room;
	struct buf module, name; /* scratch */
	double sum, told;	 /* of this part's costs; NaN: not told */
	size_t told_line;
	bool separated, rounded;
};

int callgrind_wrong_line(const struct callgrind *c, const char *what, struct error *err);
int callgrind_no_memory(const struct callgrind *c, struct error *err);

/* The one cost of a line that is asked for; 0 where the line ends before it. */
int callgrind_read_costs(struct callgrind *c, const char *at, const char *end, double *ret, struct error *err);

/* "KEY: ..."; most tell of the program that was measured. */
int callgrind_read_header(struct callgrind *c, const char *at, const char *end, struct error *err);

/* What the file says of a part beside what was read of it: at its end, and at that of the file. */
int callgrind_check_part(struct callgrind *c, struct error *err);

#endif
