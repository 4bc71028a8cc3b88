/* What the parts of the region library share: the recording of this process and the state of each thread that takes
 * part in it. It knows libc and wire/ only.
 *
 * Memory that a fork's child must not go on with (struct recording, struct thread) is marked MADV_WIPEONFORK: the child
 * finds zeros there, which no check of the hot path takes for its own, and begins files of its own at its next region.
 * The lock is in there, too, so it is free in the child. The mappings of files are MADV_DONTFORK.
 *
 * Signal handlers may use regions, fork, and leave by longjmp. A slow path blocks signals, so nothing holds the lock
 * for ever; only those that a thread raises itself by an instruction can come there: `inside` is set, and their
 * handler's calls that would need a slow path do nothing. A hot path can be interrupted anywhere and, for all that is
 * known, for long: what it may hold pointers to is not unmapped before its thread has no use for it (retire in
 * recording.c). No file descriptors are kept but the table's: a daemon may close them all. */
#ifndef ASSAY_LIB_RECORDING_H
#define ASSAY_LIB_RECORDING_H

#include <assay.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "wire/regions.h"
#include "wire/segment.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define ORPHANS 16u
#define RETRY_NS INT64_C(10000000) /* after what may pass */
#define BUCKET_CHUNK 16u /* regions whose histograms are mapped together */
#define BUCKET_CHUNKS ((REGION_ID_MAX + 1) / BUCKET_CHUNK)
#define OPEN_TOKENS 65536u /* how many can be told from tokens that have ended */

/* `recording_hot` and thread.hot: the mode in the two lowest bits, above them a number that changes with every change
 * of the mode or the recording. 0 is never the recording's: a thread's state that a fork wiped holds it. */
#define HOT_MODE 3u
#define HOT_UNSTARTED 3u

/* A region that was open above one that ended. */
struct orphan {
	uint64_t start;
	uint32_t region; /* 0: none */
	uint32_t depth;
};

/* One thread's file and what is known of it; a thread that ends leaves it to the next one. The first members are those
 * of the hot path. Only its thread writes it; others look at `depth` and the slots, holding the lock. */
struct thread {
	uint32_t hot; /* recording_hot as of when it was made ready */
	_Atomic uint32_t depth;
	uint32_t stack_room; /* slots that have blocks in the file */
	/* An event of the present window is reserved and not filled: by an end that a handler has interrupted, or that
	 * was left by longjmp. */
	volatile bool writing;
	bool tsc;
	struct region_slot *stack;
	struct region_thread *shown; /* in the file */
	_Atomic uint64_t next; /* address of the next event ... */
	uint64_t end;          /* ... in the window that ends here */
	uint64_t to_offset;    /* address + this = offset in the file */
	_Atomic uint64_t *committed;
	struct region_total *totals;
	uint32_t totals_room; /* ids below this have blocks in the file */
	uint32_t plain_room;  /* of these, from 1 on, so many are plain (region.c): what one comparison tells */
	bool no_buckets, no_totals; /* no more of them: the disk is full */
	uint32_t beyond; /* open regions that are nested too deeply to be kept */

	struct segment_header *header; /* start of the mapping */
	size_t mapped;
	char *window; /* NULL: none */
	size_t window_size;
	uint64_t grown;  /* offset in the file of the end of the window */
	int64_t paired_ns; /* when the file got its last pair of clocks */
	bool full;       /* no further events: limit, or disk */
	int64_t retry_ns; /* not before, after what may pass (no descriptor left); 0: at once */
	bool in_use;
	uint32_t number; /* of the file */
	uint32_t index;  /* of the thread */
	uint32_t run;    /* recording that it belongs to */
	uint64_t limit;  /* of that recording, which another one may have followed */
	char path[PATH_MAX];
	dev_t device; /* with inode: the file that is to be at `path` */
	ino_t inode;
	uint32_t switched_open; /* were open when the mode changed, and have not ended */
	uint32_t forked_open;   /* were open at the fork that made this process */
	uint32_t orphan_next;
	struct orphan orphans[ORPHANS];
	struct thread *next_file, *next_free;
	_Atomic(uint64_t *) buckets[BUCKET_CHUNKS];
};

#define THREAD_CORE offsetof(struct thread, path)

/* One per process, in memory of its own. */
struct recording {
	pthread_mutex_t lock; /* all zero: free */
	bool live;
	int refused; /* errno of the last thread that found no room */
	uint32_t run;
	uint64_t nonce;
	uint64_t started; /* clock */
	struct thread *files, *idle;
	uint32_t file_count, thread_count;
	_Atomic uint32_t notes[REGION_TROUBLES]; /* written so far */
	uint32_t mode_changes;
	int64_t paired_ns; /* when the table got its last pair of clocks */
	_Atomic uint64_t written;                /* bytes of all files */
	_Atomic uint32_t next_token;
	_Atomic uint32_t tokens[OPEN_TOKENS]; /* the tokens' checks while they are open */
};

enum stage {
	STAGE_UNSTARTED, /* the first region will look whether to record */
	STAGE_RECORDING,
	STAGE_OFF, /* nothing asked for it, it failed, or it has ended */
};

/* What a forked child goes on with. */
struct settings {
	enum stage stage;
	char dir[PATH_MAX];
	uint32_t mode;
	uint64_t limit;
	uint32_t run;        /* counts recordings */
	uint32_t hot_number; /* of recording_hot, above the mode; at most 2^30 - 1 */
	_Atomic bool was_blind; /* for a while the mode was one that knows of no open regions */
	_Atomic bool forked; /* begun by a fork's child */
	bool tsc;
	int rank, size;       /* as the program said, ... */
	bool has_rank;        /* ... where it did */
	const char *complaint; /* about the environment; NULL: none */
};

/* In a cache line of its own, and at a place in its page where no count of a region lies in its own: the processor
 * would take loads of it for dependent on stores there. */
extern struct recording_switch {
	_Alignas(128) char before[32];
	_Atomic uint32_t hot;
} recording_switch;
#define recording_hot recording_switch.hot
extern struct settings settings;
extern struct thread recording_nobody; /* what `self` names in a thread that has no state yet */
extern __thread struct thread *self __attribute__((tls_model("initial-exec")));
extern __thread volatile bool inside __attribute__((tls_model("initial-exec")));

int64_t monotonic_ns(void);

static inline uint64_t clock_now(bool tsc)
{
#if defined(__x86_64__)
	if (LIKELY(tsc))
		return __rdtsc();
#else
	(void)tsc;
#endif
	return (uint64_t)monotonic_ns();
}

/* One instruction, which no signal handler of the thread comes between; other threads only read. */
static inline uint64_t fetch_add_here(_Atomic uint64_t *at, uint64_t value)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("xaddq %0, %1" : "+r"(value), "+m"(*at) : : "memory", "cc");
	return value;
#else
	return atomic_fetch_add_explicit(at, value, memory_order_relaxed);
#endif
}

static inline void add_here(_Atomic uint64_t *at, uint64_t value)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addq %1, %0" : "+m"(*at) : "er"(value) : "cc");
#else
	atomic_fetch_add_explicit(at, value, memory_order_relaxed);
#endif
}

/* The place of one event more. False: the window is full. A handler may come in between and open another window: the
 * place counts only where it lies below the ends of both. */
static inline bool event_reserve(struct thread *t, uint64_t *ret_at)
{
	uint64_t end = t->end, at;

	atomic_signal_fence(memory_order_seq_cst);
	*ret_at = at = fetch_add_here(&t->next, sizeof(struct region_event));
	atomic_signal_fence(memory_order_seq_cst);
	return LIKELY(at < end && at < t->end);
}

/* The region last, and with a call's kind: so an event without one is not filled. */
static inline void event_fill(struct region_event *at, const struct region_event *event)
{
	at->start = event->start;
	at->end = event->end;
	atomic_signal_fence(memory_order_seq_cst);
	at->depth = event->depth;
	at->flags = event->flags;
	at->kind = event->kind;
	atomic_signal_fence(memory_order_seq_cst);
	at->region = event->region;
	atomic_signal_fence(memory_order_seq_cst);
}

/* Publishes all events that are reserved. One among them that an interrupted end has not filled yet has no region:
 * where the process dies before it is filled, readers pass over it. */
static inline void event_publish(struct thread *t)
{
	uint64_t next;

	do {
		next = atomic_load_explicit(&t->next, memory_order_relaxed);
		atomic_store_explicit(t->committed, (next < t->end ? next : t->end) + t->to_offset,
				      memory_order_release);
		atomic_signal_fence(memory_order_seq_cst);
	} while (UNLIKELY(next != atomic_load_explicit(&t->next, memory_order_relaxed)));
}

/* ---- recording.c */

/* Round every slow path: errno and the thread's readiness to be cancelled stay as they are, and signals wait. */
struct entry {
	int saved_errno, cancel_state;
	bool is_blocked;
	uint64_t signals; /* that were blocked before */
};

/* False: this is a handler of a signal that could not wait. */
bool recording_enter(struct entry *e);
void recording_leave(const struct entry *e);

/* The process' memory for it; NULL: there is none. */
struct recording *recording_memory(void);

/* The same, locked. What asks for a lock has entered. */
struct recording *recording_memory_locked(void);

/* The same, and recording, as the environment or the settings say; NULL where nothing is recorded (not locked then). */
struct recording *recording_locked(void);
void recording_unlock(struct recording *r);

/* Begins to record as the settings say; asked: by assay_init. Returns 0, or -1 with the sentence of last_error. */
int recording_begin(struct recording *r, bool asked);
void recording_end(struct recording *r);
void recording_stay_off(void); /* until assay_init */
void recording_set_mode(struct recording *r, uint32_t mode);

/* This thread's state, ready for the present mode; NULL where nothing is recorded. */
struct thread *recording_thread(void);

/* That it would be NULL, for want of room for this thread; needs no entry. */
bool recording_is_refused(void);

/* "DIR/regions-PID-NONCE" and a suffix. Returns 0, or ENAMETOOLONG. */
int recording_path(uint64_t nonce, char path[PATH_MAX], const char *suffix);

/* Takes `bytes` from what this process may write; false: there are not so many left. */
bool recording_take(uint64_t bytes, uint64_t limit);
void recording_give_back(uint64_t bytes);

/* ---- settings.c */

/* As the environment says. False: it asks for nothing. */
bool settings_from_environment(void);

/* The folder's path from the root: the program may change its folder. Returns 0, or -1 with last_error. */
int settings_resolve(const char *dir, char ret_path[PATH_MAX]);

/* "500M", "8G", bytes. Returns 0 or -1. */
int settings_parse_limit(const char *text, uint64_t *ret);

/* ---- table.c: records of the process' table; the lock is held */
int table_create(struct recording *r);
int table_append(uint16_t type, const void *fixed, size_t length, const char *const *texts, size_t text_count);
void table_clock(void);
void table_rank(int rank, int size, uint32_t source);
int table_flush(void); /* 0 or errno */
void table_close(void);

/* ---- facts.c */

/* Writes what is known of the process: its first records. */
void facts_write(struct recording *r);

/* ---- rank.c */

/* The rank that the environment names; false: it names none. *ret_size 0: unknown. */
bool rank_of_environment(int *ret_rank, int *ret_size);

/* ---- clocks.c */
bool clock_is_tsc(void);

/* The two clocks at one moment: the tightest of some readings. */
struct region_clock_pair clock_pair(bool tsc);

/* ---- names.c: names and ids, which stay over forks and recordings */

/* Its id, made where there is none. */
uint32_t name_id(struct assay_region *region);

/* Writes the names of all ids into the table; the lock is held. */
void names_write(void);

/* ---- region_files.c */

/* Whether what failed with that errno may succeed later: the program has no descriptor or no memory left just now. */
bool thread_file_may_retry(int failed);

/* A file for the calling thread: an idle one, or a new one. NULL: none can be made, *ret_failed says why (errno). */
struct thread *thread_file_open(struct recording *r, int *ret_failed);

/* Room for one event more. False: there is none. */
bool thread_file_window(struct thread *t);

/* Whether it is worth trying; needs no entry. */
bool thread_file_may_grow(const struct thread *t);
bool thread_file_stack(struct thread *t);
bool thread_file_totals(struct thread *t, uint32_t id);
bool thread_file_buckets(struct thread *t, uint32_t id);

/* Notes both clocks among the events, so that a reader can tell one from the other wherever the file ends. */
void thread_file_clocks(struct thread *t);

/* Puts on the disk what has been written. Returns 0 or errno. */
int thread_file_flush(const struct thread *t);

/* Marks it closed and cuts it to what it holds. No other thread may use it; an end that the present one's handler has
 * interrupted still may. */
void thread_file_close(struct thread *t);

/* In a fork's child, of its parent's state (the first THREAD_CORE bytes): memory of the child's own where the parent's
 * file was mapped, so that a hot path goes on whose signal handler has forked. False: there is none. */
bool thread_file_stand_in(struct thread *t);

/* Gives its memory back. */
void thread_file_forget(struct thread *t);

/* ---- events.c */

/* What has entered already. */
void event_write(struct thread *t, const struct region_event *event);
/* Counts it; needs no entry. */
void event_drop(struct thread *t, uint32_t region, uint64_t duration);

/* What has not: enters where there is no room left. */
void event_write_entering(struct thread *t, const struct region_event *event);

/* A call that is over, in any mode. */
void call_write(struct thread *t, uint32_t mode, const struct region_event *event);

/* ---- misuse.c */
void trouble_count(struct thread *t, enum region_trouble kind, uint32_t region);

/* An end of a region that is not the innermost open one. */
void misuse_end(struct thread *t, uint32_t mode, uint32_t id);

/* The mode changed; the thread or the recording ends: what is open is counted, at an end recorded, too. The lock is
 * held. */
void misuse_switched(struct recording *r, struct thread *t);
void misuse_unfinished(struct recording *r, struct thread *t);

#endif
