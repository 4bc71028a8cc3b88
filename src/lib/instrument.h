/* What the parts of the call recorder share: the recording of this process and the state of each thread.
 *
 * A program compiled with -finstrument-functions calls __cyg_profile_func_enter and _exit round every function. What
 * they count goes to a file per thread that is mapped (wire/graph.h), so that a program that is killed leaves it.
 * struct calls is wiped in a fork's child (MADV_WIPEONFORK), which begins a recording of its own at its next call; the
 * child may still touch its parent's files where a signal handler forked amid a hook: by one call at most.
 *
 * A hook may be interrupted by a signal handler whose functions have hooks, too: `busy` makes these do nothing. A
 * handler may leave by longjmp: then `busy` names a place of the stack that is no more, see instrument_ready. */
#ifndef ASSAY_LIB_INSTRUMENT_H
#define ASSAY_LIB_INSTRUMENT_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/recording.h"
#include "wire/graph.h"

#define CALLS_NOTED 1024u

struct calls_thread {
	uint32_t run;     /* recording that it takes part in; 0: none */
	bool tsc;
	volatile uintptr_t busy; /* place of the hook that is at work; 0: none */
	uint32_t depth, frame_room;
	struct calls_frame *frames; /* 0 stands for the outside */
	struct calls_pair *pairs;
	struct calls_header *header; /* start of the mapping that the pairs are in */
	uint32_t *index;             /* pairs by caller and callee, 0: a free place; (index_mask + 1) places */
	uint32_t index_mask;
	uint32_t pair_room;
	uint32_t beyond; /* open calls that are nested too deeply to be kept */
	bool full;       /* no more pairs: limit, disk or memory */
	char path[PATH_MAX];
	uint64_t unloaded; /* how often code had been unloaded when `known` was looked up */
	uint64_t known_start, known_end; /* a mapping of code that the process' file names */
	struct calls_thread *next_idle;
};

/* One per process, in memory of its own. */
struct calls {
	_Atomic uint32_t run; /* 0: nothing is recorded */
	pthread_mutex_t lock; /* all zero: free */
	uint64_t nonce;
	bool tsc;
	uint32_t files; /* threads' files made so far */
	int refused;    /* errno of the last thread that found no room */
	int64_t paired_ns;
	struct calls_thread *idle; /* of threads that have ended */
	char text[16384];          /* for reading what is mapped */
	/* Mappings of code that the process' file names; those that are too many are named again. */
	struct {
		uint64_t start, end;
	} noted[CALLS_NOTED];
	uint32_t noted_count;
	uint64_t noted_unloaded; /* how often code had been unloaded then */
};

enum calls_stage {
	CALLS_UNSTARTED, /* the first call will look whether to record */
	CALLS_OFF,
	CALLS_FOLLOWING, /* as the environment says, children of forks, too */
	CALLS_ONCE,      /* assay_profile */
};

extern struct calls *_Atomic calls_now; /* never NULL */
extern _Atomic int calls_stage;
extern __thread struct calls_thread *calls_self __attribute__((tls_model("initial-exec")));

static inline uint64_t instrument_hash(uint64_t caller, uint64_t callee)
{
	uint64_t mixed = (caller * UINT64_C(0x9e3779b97f4a7c15)) ^ (callee * UINT64_C(0xc2b2ae3d27d4eb4f));

	return mixed >> 32 ^ mixed >> 4;
}

/* ---- instrument_thread.c: what the hooks do once in a while; `place` is the stack's at the hook's call */

/* This thread's state, ready for the recording; NULL: nothing is recorded here and now. */
struct calls_thread *instrument_ready(uintptr_t place);

/* Room for the call that has begun, once those that longjmp has left are closed. False: there is none. Of `begun` there
 * are place, site and hook. */
bool instrument_make_room(struct calls_thread *t, const struct calls_frame *begun, uint64_t callee);

/* The pair of a call that was not the last one from its caller. */
uint32_t instrument_pair(struct calls_thread *t, uint64_t caller, uint64_t callee);

/* An end that is not that of the innermost open call: closes those above the one that ends, where there is one. */
void instrument_unwind(struct calls_thread *t, uint64_t callee, uintptr_t place, uint64_t now);

/* ---- instrument_files.c: the lock is held, signals are blocked */
struct calls_thread *instrument_open(struct calls *c, int *ret_failed);
bool instrument_grow_pairs(struct calls_thread *t);
bool instrument_grow_frames(struct calls_thread *t);
void instrument_forget(struct calls_thread *t);

/* ---- instrument_process.c */

/* The recording, begun where it is to be; locked. NULL: nothing is recorded (not locked then). */
struct calls *instrument_locked(void);

/* Begins to record into that folder, only this process. Returns 0, or -1 with last_error. */
int instrument_begin(const char *folder);
void instrument_end(void);

/* Removes what was recorded into the folder and made of it, and the folder. */
void instrument_remove(const char *folder);

/* Notes the mapping of code that the address is in, where that is not known of this thread; needs no lock. */
void instrument_note_module(struct calls_thread *t, uint64_t address);
void instrument_note_refused(struct calls *c, int failed);

/* "FOLDER/calls-PID-NONCE" and a suffix. Returns 0, or ENAMETOOLONG. */
int instrument_path(const struct calls *c, char path[PATH_MAX], const char *suffix);

#endif
