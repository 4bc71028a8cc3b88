/* The ring file: how the sampler inside a process hands its samples to the recorder outside.
 *
 * One file per executed program image, in the folder that $ASSAY_SAMPLER names. It has its full size from the start, as
 * holes; the target allocates and maps a piece when it needs one and closes its descriptor. Its signal handler then
 * writes with plain stores and makes no system call. Each sampled thread owns one
 * slot with a bounded ring; the recorder empties the rings while the target runs and moves `tail`. Killing the target
 * at any instruction loses at most the record being written; killing the recorder loses nothing that is in a ring, and
 * what finds no room afterwards is counted in `dropped`. Readers trust no field: a target may scribble on the file.
 * Shared with target processes: libc only. Native-endian. */
#ifndef ASSAY_WIRE_SAMPLER_H
#define ASSAY_WIRE_SAMPLER_H

#include <stdatomic.h>
#include <stdint.h>

#define SAMPLER_MAGIC "ASSAYSMP"
#define SAMPLER_VERSION 1

/* What the recorder sets for the target, beside LD_PRELOAD: the folder (absolute) and the rate asked for. */
#define SAMPLER_DIR_VARIABLE "ASSAY_SAMPLER"
#define SAMPLER_HZ_VARIABLE "ASSAY_SAMPLER_HZ"
#define SAMPLER_LIBRARY "libassay-sampler.so"
/* Of a ring file: PID-NS.ring, the pid as the process itself sees it and CLOCK_MONOTONIC when it was made. While it is
 * being set up its name ends with ".new": it is renamed when whole. */
#define SAMPLER_FILE_SUFFIX ".ring"

#define SAMPLER_FRAMES_MAX 1024u      /* of one sample; a deeper stack is cut at its outer end and marked */
#define SAMPLER_SLOTS_MAX 4096u       /* threads that are sampled at a time */
#define SAMPLER_RING_BYTES 65536u     /* a power of two */
#define SAMPLER_MODULE_BYTES (128u << 10) /* of the area of module records */
#define SAMPLER_NAME_BYTES 16u        /* of a thread, as in the kernel */

/* Why something of this process is not sampled; bits of sampler_header.trouble. */
enum sampler_trouble {
	SAMPLER_TIMER_REFUSED = 1,   /* timer_create failed for `unarmed` threads; `unarmed_errno` says why */
	SAMPLER_NO_ROOM = 2,         /* no slot or no disk space for `roomless` threads */
	SAMPLER_SIGNAL_TAKEN = 4,    /* the program handles our signal by itself, past our wrapper */
	SAMPLER_RESTRICTED = 8,      /* it restricts its system calls: threads made since then are not sampled */
	SAMPLER_MODULES_FULL = 16,   /* the area of modules is full */
	SAMPLER_UNKNOWN_STACK = 32,  /* some stacks lay outside what is known to be readable: cut there */
};

/* At offset 0. */
struct sampler_header {
	char magic[8];
	uint32_t version;
	int32_t pid, ppid;         /* as the process itself sees them (a namespace may count otherwise) */
	uint32_t hz;               /* asked for: a sample's weight counts periods of 1/hz CPU seconds */
	uint32_t signal;           /* that the ticks use; changes when the program wants it for itself */
	uint32_t slot_size, slot_max; /* bytes of a slot with its ring; slots that fit into the file */
	uint32_t slots_offset, modules_offset, modules_bytes;
	uint64_t start_ticks;      /* field 22 of /proc/self/stat; 0: not known */
	int64_t mono_ns;           /* when it was made */
	_Atomic uint32_t slots;    /* slots that were ever used: 0 .. slots-1 */
	_Atomic uint32_t trouble;  /* bits of enum sampler_trouble */
	_Atomic uint32_t unarmed, roomless; /* threads */
	_Atomic int32_t unarmed_errno;
	_Atomic uint32_t closed;   /* 1: the program ended in good order */
	_Atomic uint64_t modules_used; /* bytes reserved in the area of modules */
	_Atomic uint64_t unsampled_ns; /* CPU time of threads that ended and had no timer */
	char exe[2048];            /* /proc/self/exe, "" where it cannot be read */
};

enum sampler_slot_state { SAMPLER_SLOT_FREE = 0, SAMPLER_SLOT_TAKEN = 1 };

/* At slots_offset + i * slot_size; the ring follows at SAMPLER_RING_OFFSET. A slot is used again by another thread once
 * its own has ended; its records carry the tid. All counts only grow. */
struct sampler_slot {
	_Atomic uint32_t state;    /* enum sampler_slot_state */
	_Atomic int32_t tid;       /* of the thread that has it */
	_Atomic uint64_t head;     /* bytes ever written to the ring: stored with release order behind each record */
	_Atomic uint64_t tail;     /* bytes ever read: stored by the recorder */
	_Atomic uint64_t deliveries;      /* signals handled as samples, dropped ones included */
	_Atomic uint64_t weight;          /* of all samples, also those without a stack and dropped ones */
	_Atomic uint64_t dropped, dropped_weight; /* samples that found no room in the ring */
	_Atomic uint64_t handler_ns;      /* time spent in the handler, by CLOCK_MONOTONIC: our own cost */
	_Atomic uint64_t ended_ns;        /* CPU time of the threads that had this slot and ended */
	/* What follows up to the ring is the sampler's own working memory. */
};

#define SAMPLER_RING_OFFSET 24576u /* in a slot: behind the counts and the two stacks of the sampler's memory */
#define SAMPLER_SLOT_BYTES (SAMPLER_RING_OFFSET + SAMPLER_RING_BYTES)

enum sampler_record_type {
	SAMPLER_PAD = 1,    /* skip: what follows did not fit before the end of the ring */
	SAMPLER_SAMPLE = 2, /* struct sampler_sample */
	SAMPLER_THREAD = 3, /* struct sampler_thread: before the first sample of a thread, and when it is renamed */
};

/* Starts each record in a ring, at multiples of 8; no record wraps round. */
struct sampler_record {
	uint32_t size; /* with this header; a multiple of 8 */
	uint16_t type;
	uint16_t flags; /* bits of enum sampler_sample_flags */
};

enum sampler_sample_flags {
	SAMPLER_COMPLETE = 1, /* the stack reaches the start of its thread or program */
	SAMPLER_CUT = 2,      /* more than SAMPLER_FRAMES_MAX frames: the outer ones are missing */
	SAMPLER_GUESSED = 4,  /* some frame was found by searching the stack: its code has no usable unwind data */
	/* Neither COMPLETE nor CUT: the unwinding got stuck. */
};

/* Frames are addresses inside the code that was running: the leaf's as it was, a caller's less 1 (so that it lies in
 * the call), the one that a signal interrupted as it was. A sample with no frame at all stands for CPU time of the
 * thread in which no tick could come, so that nobody knows what ran: while the program blocked the signal, and between
 * the kernel's last look at the timer and the thread's end. It is no delivery. */
struct sampler_sample {
	struct sampler_record record;
	int64_t t;       /* CLOCK_MONOTONIC */
	int32_t tid;
	uint32_t weight; /* periods: 1 + overruns */
	uint32_t kept;   /* so many outermost frames are those of the sample before in this ring (of any thread) */
	uint32_t count;  /* new ones, in frames[], innermost first; the stack has count + kept frames */
	uint64_t frames[];
};

struct sampler_thread {
	struct sampler_record record;
	int64_t t;
	int32_t tid;
	uint32_t reserved;
	char name[SAMPLER_NAME_BYTES];
};

/* In the area of modules, at multiples of 8, in no order but that of their reservation. `size` is stored last, with
 * release order, and is 0 before: a reader stops there until it is not (a process killed in the midst leaves it so for
 * ever). A module that a sample needs was recorded before that sample's record was published. */
struct sampler_module {
	_Atomic uint32_t size;     /* of the record with its path; a multiple of 8 */
	uint16_t path_length;      /* bytes of path behind the struct; 0: the program itself (header.exe) */
	uint16_t build_id_length;  /* 0: it has none */
	int64_t t;                 /* of the sample that first met it: an address belongs to the latest module with t
				    * not after the sample's that covers it */
	uint64_t start, end;       /* where it is mapped */
	uint64_t bias;             /* address less bias is the address in the file's own terms (p_vaddr) */
	uint8_t build_id[32];      /* the first bytes of a longer one */
	char path[];               /* as the loader has it, not ended by 0; "linux-vdso.so.1" for the vdso */
};

#endif
