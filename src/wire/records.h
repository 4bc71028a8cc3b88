/* The payloads of segment records. Native-endian, 8-byte aligned; text runs to the end of the payload (its length is
 * segment_record.used minus the fixed part) and may hold any bytes. Times are ns of CLOCK_MONOTONIC. */
#ifndef ASSAY_WIRE_RECORDS_H
#define ASSAY_WIRE_RECORDS_H

#include <stdint.h>

enum wire_record_type {
	WIRE_SERIES = 1,  /* struct wire_series + name\0unit\0source\0scope\0 */
	WIRE_POINTS = 2,  /* struct wire_points + n struct wire_point */
	WIRE_MARK = 3,    /* struct wire_mark + name */
	WIRE_CHUNK = 4,   /* struct wire_chunk */
	WIRE_START = 5,   /* struct wire_start */
	WIRE_EXIT = 6,    /* struct wire_exit */
	WIRE_PROCESS = 7, /* struct wire_process + comm\0 + command line (blank-separated) */
	WIRE_NOTE = 8,    /* text: a warning for the report */
	WIRE_END = 9,     /* struct wire_end: the recording ended in good order */
};

/* A counter's name. Comes before its first point. */
struct wire_series {
	uint32_t id;   /* 0, 1, 2, ... in the order of definition */
	uint32_t kind; /* enum series_kind (model/timeline.h) */
};

struct wire_points {
	int64_t t;
};

struct wire_point {
	uint32_t id;
	uint32_t reserved;
	double value;
};

/* A line of the markers file, with the time it names or else the time it was seen. */
struct wire_mark {
	int64_t t;
	uint64_t end;  /* offset in the markers file behind this line */
	uint32_t seen; /* 1: the line named no time, t is when it was seen */
	uint32_t reserved;
};

enum wire_stream { WIRE_STDOUT = 0, WIRE_STDERR = 1, WIRE_TERMINAL = 2 };

/* Bytes [offset, offset+length) of the stream's log arrived between t_first and t_last. Chunks of one stream are in
 * order and without gaps, unless the log could not be written. */
struct wire_chunk {
	int64_t t_first, t_last;
	uint64_t offset, length;
	uint32_t stream; /* enum wire_stream */
	uint32_t reserved;
};

/* The command was started. */
struct wire_start {
	int64_t t;
	int32_t pid;
	int32_t reserved;
};

/* A process that the helper reaped: the command itself, or a descendant whose parent died before it. */
struct wire_exit {
	int64_t t;
	int32_t pid;
	int32_t status; /* as from wait4 */
	int32_t is_command;
	int32_t reserved;
	int64_t user_ns, system_ns;
	int64_t max_rss; /* bytes: the largest single process among it and the descendants it waited for */
	int64_t minor_faults, major_faults;
	int64_t read_blocks, write_blocks; /* of 512 bytes */
	int64_t voluntary_switches, involuntary_switches;
	/* Through system calls, by all that the helper has reaped up to now, this one included; -1: not read (only the
	 * command's exit and those after it have it). */
	int64_t all_read_chars, all_write_chars, all_read_calls, all_write_calls;
};

/* What was known of a process when it was last seen. */
struct wire_process {
	int32_t pid, ppid;
	int64_t start_ticks; /* field 22 of /proc/PID/stat: with pid, the process's identity */
	int64_t first_seen, last_seen;
	int64_t user_ns, system_ns;
	int64_t rss_peak, anon_peak; /* bytes, over ticks */
	int64_t threads_peak;
	int64_t read_bytes, write_bytes; /* -1: not readable */
};

struct wire_end {
	int64_t t;
};

#endif
