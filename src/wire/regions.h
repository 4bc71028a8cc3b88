/* What libassay writes into ASSAY_DIR: one table per process, and one file per thread that records regions.
 *
 * Shared by the library (src/lib), which writes, and src/store, which reads. libc only, layout and constants alone. A
 * process is "regions-PID-NONCE" (NONCE: 16 hexadecimal digits that no other process of the job has). Its table is that
 * name with ".table": a segment (wire/segment.h) of kind SEGMENT_KIND_REGIONS, of records below. Its threads' files are
 * that name with ".0", ".1", ...: a thread that ends leaves its file to the next one that begins.
 *
 * A thread's file, offsets in multiples of 4096, all native-endian:
 *   0                struct segment_header of kind SEGMENT_KIND_CALLS; data_offset, allocated and committed speak of
 *                    the events; at REGION_THREAD_OFFSET in the same page struct region_thread
 *   stack_offset     struct region_slot, REGION_DEPTH_MAX of them: the regions that are open now, outermost first
 *   totals_offset    struct region_total by region id, REGION_ID_MAX + 1 of them
 *   buckets_offset   REGION_BUCKETS uint64_t by region id: histograms, of mode aggregate
 *   data_offset      struct region_event, without gaps, up to `committed`
 * The file is sparse: what was never touched is not there. Times in it are of `clock` of its process: ticks of the time
 * stamp counter, or ns of CLOCK_MONOTONIC. */
#ifndef ASSAY_WIRE_REGIONS_H
#define ASSAY_WIRE_REGIONS_H

#include <stdatomic.h>
#include <stdint.h>

#define REGION_FILE_PREFIX "regions-"
#define REGION_TABLE_SUFFIX ".table"
#define REGION_LAYOUT_VERSION 1 /* of this header */
#define REGION_ID_MAX 65535u    /* ids are 1, 2, ... */
#define REGION_DEPTH_MAX 65536u /* what is nested deeper is counted, not kept */
#define REGION_NAME_MAX 1000u   /* bytes of a name, file, or tags */
#define REGION_THREAD_OFFSET 512u

enum region_clock { REGION_CLOCK_MONOTONIC = 1, REGION_CLOCK_TSC = 2 };

/* The values of enum assay_mode. */
enum region_mode { REGION_OFF = 0, REGION_COUNT = 1, REGION_AGGREGATE = 2, REGION_TRACE = 3 };

enum region_event_kind {
	/* Of region 0: its place was taken, and it was never written (killed or left at that moment). None. */
	REGION_EVENT_CALL = 0,
	/* The thread that the calls from here on are of. start: its index in the table; end: its tid. First event of a
	 * file. */
	REGION_EVENT_THREAD = 1,
	/* start: the clock; end: CLOCK_MONOTONIC at that moment, ns. */
	REGION_EVENT_CLOCK = 2,
};

enum region_event_flags {
	/* No parent and no part in exclusive times: ended by its token. */
	REGION_EVENT_DETACHED = 1,
	/* Ended after a region that was begun before it: detached, too. */
	REGION_EVENT_CROSSED = 2,
	/* Never ended by the program: its end is that of its thread or the recording. */
	REGION_EVENT_UNFINISHED = 4,
};

/* One call, written when it ends: so a thread's calls lie in the order of their ends, children before parents. Read
 * backwards, a call that is not detached is the child of the nearest call after it of depth - 1 of the same thread.
 * Where that is detached, or there is none, it has no parent. */
struct region_event {
	uint64_t start, end;
	uint32_t region;
	uint16_t depth; /* open regions around it, 0: outermost */
	uint8_t flags;  /* enum region_event_flags */
	uint8_t kind;   /* enum region_event_kind */
};

/* A region that is open. */
struct region_slot {
	_Atomic uint64_t start; /* 0 in mode count */
	_Atomic uint64_t child; /* clock that its children took so far; mode aggregate */
	_Atomic uint32_t region; /* 0: none */
	uint32_t reserved;
};

/* What a file's threads did in a region. Of mode trace only `dropped`: its calls are in the events. A reader takes
 * shortest where calls is not 0 alone. */
struct region_total {
	_Atomic uint64_t calls;   /* in modes aggregate and count */
	_Atomic uint64_t timed;   /* of these, in mode aggregate: what the next members speak of */
	_Atomic uint64_t total, exclusive, shortest, longest; /* clock units */
	_Atomic uint64_t dropped; /* ended in mode trace and found no room (ASSAY_LIMIT, full disk) */
	_Atomic uint64_t dropped_total; /* how long these were, clock units */
};

/* Histogram of durations in clock units d: bucket d below 16; else with e = floor(log2 d) the bucket
 * 16 * (e - 3) + (d >> (e - 4)) - 16, so 16 to each octave; the last one also holds all above 2^35. */
#define REGION_BUCKETS 512u

/* Wrong use, by kind; and what the library could not do. */
enum region_trouble {
	REGION_TROUBLE_NO_BEGIN = 0,     /* an end without a begin */
	REGION_TROUBLE_NO_END = 1,       /* no end when a region around it ended (longjmp, forgotten) */
	REGION_TROUBLE_UNFINISHED = 2,   /* open when its thread or the recording ended (exit, abort) */
	REGION_TROUBLE_CROSSED = 3,      /* ended after a region that was begun before it */
	REGION_TROUBLE_OTHER_THREAD = 4, /* ended in a thread where it is not open, while it is open in another one */
	REGION_TROUBLE_FORKED = 5,       /* open at a fork and ended in the child */
	REGION_TROUBLE_SWITCHED = 6,     /* open when the mode changed */
	REGION_TROUBLE_TOO_DEEP = 7,     /* nested deeper than REGION_DEPTH_MAX */
	REGION_TROUBLE_BAD_TOKEN = 8,    /* a token ended twice, or of no recording */
	REGION_TROUBLE_OTHER_NAMES = 9,  /* calls of regions beyond REGION_ID_MAX, recorded as "(other names)" */
	REGION_TROUBLES = 10,
};

/* Beside the header of a thread's file. */
struct region_thread {
	uint32_t layout;    /* REGION_LAYOUT_VERSION */
	uint32_t clock;     /* enum region_clock */
	uint64_t stack_offset, totals_offset, buckets_offset;
	_Atomic uint32_t thread;  /* index of the thread that writes now; UINT32_MAX: none */
	_Atomic uint32_t depth;   /* slots that are in use */
	_Atomic uint64_t troubles[REGION_TROUBLES];
	_Atomic uint64_t last;    /* a recent time of its clock: what is open now ends there or later */
};

/* Records of a table, beside WIRE_END (types 32 and up, none of wire/records.h). */
enum region_record_type {
	REGION_RECORD_PROCESS = 32,  /* struct region_process + host\0 + command\0; the first record */
	REGION_RECORD_NAME = 33,     /* struct region_name + name\0 + file\0 + tags\0 */
	REGION_RECORD_THREAD = 34,   /* struct region_thread_born + name\0 */
	REGION_RECORD_THREAD_END = 35, /* struct region_thread_end */
	REGION_RECORD_CLOCK = 36,    /* struct region_clock_pair */
	REGION_RECORD_RANK = 37,     /* struct region_rank; the last one counts */
	REGION_RECORD_OFFSET = 38,   /* struct region_offset */
	REGION_RECORD_METADATA = 39, /* key\0 + value\0; the last of a key counts */
	REGION_RECORD_TROUBLE = 40,  /* struct region_trouble_note: which region it was, the first times it happened */
	REGION_RECORD_MODE = 41,     /* struct region_mode_change */
};

struct region_process {
	uint32_t layout; /* REGION_LAYOUT_VERSION */
	uint32_t clock;  /* enum region_clock */
	int32_t pid, ppid;
	int64_t mono_ns, wall_ns; /* when recording began */
	uint64_t limit;           /* bytes that it may write */
	uint64_t nonce;           /* as in the files' names */
	char boot_id[40];         /* text, zero-ended: ranks that share it share their clock */
	uint32_t mode, reserved;
};

struct region_name {
	uint32_t id, line; /* line 0: unknown */
};

struct region_thread_born {
	uint32_t index; /* 0, 1, ... */
	int32_t tid;
	uint32_t file; /* number of the file that it writes */
	uint32_t reserved;
	int64_t mono_ns;
};

struct region_thread_end {
	uint32_t index, reserved;
	int64_t mono_ns, cpu_ns; /* cpu_ns: CPU time that it used in all; -1: not known */
};

/* Two clocks at one moment, as the tightest of some readings: known within bound_ns. */
struct region_clock_pair {
	uint64_t clock;
	int64_t mono_ns, bound_ns;
};

struct region_rank {
	int32_t rank, size; /* size 0: unknown */
	uint32_t source;    /* 0: nothing said so; 1: the environment; 2: the program (assay_set_rank) */
	uint32_t reserved;
};

struct region_offset {
	int64_t mono_ns, offset_ns, bound_ns; /* rank 0's CLOCK_MONOTONIC is mono_ns + offset_ns there */
};

struct region_trouble_note {
	uint32_t kind, region; /* region 0: not known */
	uint32_t thread, reserved;
	int64_t mono_ns;
};

struct region_mode_change {
	int64_t mono_ns;
	uint32_t mode, reserved;
};

_Static_assert(sizeof(struct region_event) == 24, "events are 24 bytes");
_Static_assert(sizeof(struct region_total) == 64, "totals are 64 bytes");

#endif
