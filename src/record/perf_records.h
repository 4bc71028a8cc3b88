/* One record of a perf ring, taken apart. Every field is checked against the record's size, so that any bytes may come.
 *
 * Knows the kernel's layout (linux/perf_event.h) for the fields that perf_rings.c asks for, and nothing of rings or
 * processes. */
#ifndef ASSAY_RECORD_PERF_RECORDS_H
#define ASSAY_RECORD_PERF_RECORDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sample may consist of; which of these a ring has is told to perf_record_decode. */
#define PERF_FIELDS_ALWAYS                                                                                            \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define PERF_FIELDS_STACK (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct perf_layout {
	uint64_t fields;   /* PERF_FIELDS_ALWAYS, with PERF_FIELDS_STACK or without */
	size_t registers;  /* in a sample of a process that has any */
};

struct perf_sample {
	uint64_t ip, period;
	const uint64_t *chain; /* with PERF_CONTEXT_ marks between its parts; innermost first */
	size_t chain_count;
	uint64_t registers_abi; /* enum perf_sample_regs_abi; NONE: no registers */
	const uint64_t *registers;
	const uint8_t *stack;  /* what lay at the stack pointer */
	size_t stack_size;
};

struct perf_mapping {
	uint64_t start, length, offset; /* offset: in the file */
	uint32_t protection;
	uint8_t build_id[20];
	size_t build_id_length; /* 0: the kernel did not tell it; then device and inode are those of the file */
	uint32_t major, minor;
	uint64_t inode;
	const char *path; /* "//anon", "[vdso]", or of the file as the process sees it */
};

struct perf_record {
	uint32_t type; /* enum perf_event_type; one that is not listed here has only its time */
	int pid, tid;
	int64_t t;     /* CLOCK_MONOTONIC */
	union {
		struct perf_sample sample;   /* PERF_RECORD_SAMPLE */
		struct perf_mapping mapping; /* PERF_RECORD_MMAP2 */
		struct {
			const char *name;
			bool exec; /* the process has become another program */
		} comm;                      /* PERF_RECORD_COMM */
		struct {
			int ppid, ptid;
		} parent;                    /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
		uint64_t lost;               /* PERF_RECORD_LOST: so many records found no room before this one */
	};
};

/* `bytes` are aligned to 8. False where they are no whole record of that layout. What *ret points to is in `bytes`. */
bool perf_record_decode(const void *bytes, size_t size, const struct perf_layout *layout, struct perf_record *ret);

#endif
