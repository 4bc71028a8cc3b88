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
	/* Of a samples segment (SEGMENT_KIND_SAMPLES). */
	WIRE_PROFILE = 10,   /* struct wire_profile: first record */
	WIRE_IMAGE = 11,     /* struct wire_image + executable\0 + command line\0 */
	WIRE_THREAD = 12,    /* struct wire_thread + name\0 */
	WIRE_MODULE = 13,    /* struct wire_module + path\0 */
	WIRE_NODES = 14,     /* n struct wire_node */
	WIRE_SAMPLES = 15,   /* n struct wire_sample */
	WIRE_IMAGE_END = 16, /* struct wire_image_end + note\0 */
	WIRE_UNSAMPLED = 17, /* struct wire_unsampled + name\0 + reason\0 */
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

enum wire_recorder { WIRE_RECORDER_PRELOAD = 1, WIRE_RECORDER_PERF = 2 };

/* How the samples were taken. */
struct wire_profile {
	uint32_t recorder; /* enum wire_recorder */
	uint32_t hz;       /* a weight of 1 is 1/hz CPU seconds */
	int64_t t;         /* when recording began */
};

/* A program image: a process from an exec (or a fork) to the next. Ids of images, threads, modules and nodes are 0, 1,
 * 2, ... each in the order of definition, and come before they are used. */
struct wire_image {
	uint32_t id;
	int32_t pid, ppid; /* as the recorder sees them, where it could tell; else as the process itself does */
	uint32_t reserved;
	int64_t t;         /* when its sampling began */
};

/* A second record of the same id renames it; only its id and name count. */
struct wire_thread {
	uint32_t id, image;
	int32_t tid;
	uint32_t reserved;
};

enum wire_module_kind {
	WIRE_MODULE_FILE = 0,   /* an ELF file */
	WIRE_MODULE_VDSO = 1,
	WIRE_MODULE_ANON = 2,   /* code in memory without a file, made at run time; one per image */
	WIRE_MODULE_KERNEL = 3,
	WIRE_MODULE_UNKNOWN = 4, /* nothing is known to be at the address; one per image */
};

/* Code that addresses belong to. Of a FILE and of the VDSO the addresses are its own (p_vaddr), else those of the
 * process. The same file mapped by many processes is one module. */
struct wire_module {
	uint32_t id, kind;
	uint32_t image; /* of ANON and UNKNOWN */
	uint32_t build_id_length;
	uint8_t build_id[32];
	uint64_t device, inode, size; /* of the file as it was opened; 0: it was not */
	int64_t mtime_ns;
};

/* A place in a call tree, shared by all samples whose stacks begin alike. Node 0 is the root, which is no frame and is
 * not written: the first node on file has id 1. */
struct wire_node {
	uint32_t parent, module;
	uint64_t address;
};

enum wire_sample_flags { WIRE_SAMPLE_COMPLETE = 1, WIRE_SAMPLE_CUT = 2, WIRE_SAMPLE_GUESSED = 4 };

struct wire_sample {
	int64_t t;
	uint32_t thread, node; /* node: of the innermost frame; 0: no stack */
	uint32_t weight;       /* in periods of 1/hz */
	uint32_t flags;        /* bits of enum wire_sample_flags */
};

/* Its samples tell of more CPU time than can have been used. */
#define WIRE_IMAGE_DISBELIEVED (1u << 31)

/* What became of the sampling of an image, when it ended or the recording did. */
struct wire_image_end {
	uint32_t id;
	uint32_t trouble;    /* bits of enum sampler_trouble (wire/sampler.h), and WIRE_IMAGE_DISBELIEVED */
	int64_t t;
	uint64_t deliveries, weight;      /* all that were taken, dropped ones included */
	uint64_t dropped, dropped_weight; /* lost for want of room */
	uint64_t handler_ns; /* the sampler's own time in the target */
	int64_t cpu_ns;      /* CPU time that the process used in all, as far as seen; -1: not known */
	int64_t unsampled_ns; /* of this, by threads that had no timer, as far as known */
	uint32_t unarmed;    /* threads without a timer */
	int32_t unarmed_errno;
};

/* A process that no samples came from. */
struct wire_unsampled {
	int32_t pid, reserved;
	int64_t cpu_ns; /* -1: not known */
};

#endif
