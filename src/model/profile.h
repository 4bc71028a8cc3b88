/* CPU samples of a run: call tree, samples, and the names of the code they were in. Plain data.
 *
 * Built from a samples segment (store/samples.h) and names (symbol/, store/profile_file.h), which are not known here.
 * Indices are positions in the arrays. Times are ns of CLOCK_MONOTONIC; weights are periods of period_s CPU seconds. */
#ifndef ASSAY_MODEL_PROFILE_H
#define ASSAY_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PROFILE_NONE UINT32_MAX

struct profile_image {
	int pid, ppid;
	int64_t t;
	char *exe, *command; /* owned, never NULL; the command line is masked */
	/* Of its end; -1 or 0 where that was not recorded. */
	uint32_t trouble; /* bits of enum sampler_trouble */
	bool disbelieved; /* its samples tell of more CPU time than can have been used */
	uint64_t deliveries, weight, dropped, dropped_weight, handler_ns;
	int64_t cpu_ns, unsampled_ns;
	uint32_t unarmed;
	int unarmed_errno;
	bool ended;
	char *note; /* owned; a sentence about what it lacks, or NULL */
};

struct profile_thread {
	uint32_t image;
	int tid;
	char *name; /* owned, never NULL */
};

enum profile_module_kind { /* as enum wire_module_kind */
	PROFILE_FILE,
	PROFILE_VDSO,
	PROFILE_ANON,
	PROFILE_KERNEL,
	PROFILE_UNKNOWN,
};

struct profile_module {
	enum profile_module_kind kind;
	uint32_t image; /* of ANON and UNKNOWN */
	char *path;     /* owned, never NULL */
	char *name;     /* what is shown: the last part of the path, [vdso], [jit], [kernel], [unknown]; owned */
	uint8_t build_id[32];
	size_t build_id_length;
	uint64_t device, inode, size;
	int64_t mtime_ns;
	char *note;     /* owned: why it has no names, or where they are from; NULL until resolved */
};

/* A function of a module. Its name is demangled and for showing: "main", "libc.so.6!?+0x26d50", "libc.so.6!?". */
struct profile_function {
	uint32_t module;
	bool known;     /* false: the name only tells where the code lies */
	char *name;     /* owned */
	char *file;     /* owned; NULL: not known */
	uint32_t line;  /* where it begins; 0: not known */
};

/* What stands at an address, from the innermost inlined function to the one that contains the code. */
struct profile_frame {
	uint32_t function;
	uint32_t line; /* in the function's file; 0: not known */
};

struct profile_location {
	uint32_t module;
	uint64_t address;
	uint32_t first, count; /* in frames[]; count 0: not resolved yet */
};

struct profile_node {
	uint32_t parent, location; /* of node 0, the root: PROFILE_NONE */
};

enum profile_sample_flags { PROFILE_COMPLETE = 1, PROFILE_CUT = 2, PROFILE_GUESSED = 4 };

struct profile_sample {
	int64_t t;
	uint32_t thread, node, weight, flags;
};

/* A process that used CPU time and gave no samples. */
struct profile_unsampled {
	int pid;
	int64_t cpu_ns; /* -1: not known */
	char *name, *reason; /* owned */
};

struct profile {
	unsigned recorder; /* 1: preload, 2: perf */
	double period_s;   /* 1/hz */
	unsigned hz;
	int64_t t;
	struct profile_image *images;
	struct profile_thread *threads;
	struct profile_module *modules;
	struct profile_function *functions;
	struct profile_frame *frames;
	struct profile_location *locations;
	struct profile_node *nodes; /* a parent stands before its children */
	struct profile_sample *samples; /* in the order of time after profile_sort */
	struct profile_unsampled *unsampled;
	size_t image_count, thread_count, module_count, function_count, frame_count, location_count, node_count,
		sample_count, unsampled_count;
	bool damaged; /* the record ended before its time: `trouble` says how */
	char trouble[256];
	/* Hidden from outside: room of the arrays. */
	struct profile_rooms {
		size_t images, threads, modules, functions, frames, locations, nodes, samples, unsampled;
	} room;
	struct profile_index *index; /* of locations, while it is being built */
};

void profile_init(struct profile *p);
void profile_release(struct profile *p);

/* Each appends one and gives its index; the texts are copied. Fails when out of memory or for an index that is none. */
int profile_add_image(struct profile *p, int pid, int ppid, int64_t t, const char *exe, const char *command,
		      struct error *err);
int profile_add_thread(struct profile *p, uint32_t image, int tid, const char *name, struct error *err);
int profile_rename_thread(struct profile *p, uint32_t thread, const char *name, struct error *err);
int profile_add_module(struct profile *p, const struct profile_module *like, struct error *err);
int profile_add_node(struct profile *p, uint32_t parent, uint32_t module, uint64_t address, struct error *err);
int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err);
int profile_add_unsampled(struct profile *p, int pid, int64_t cpu_ns, const char *name, const char *reason,
			  struct error *err);

/* A function of that module and name (the same again where file and line are the same, too). */
int profile_add_function(struct profile *p, uint32_t module, bool known, const char *name, const char *file,
			 uint32_t line, uint32_t *ret, struct error *err);

/* Sets the frames of a location that has none yet. */
int profile_set_frames(struct profile *p, uint32_t location, const struct profile_frame *frames, size_t count,
		       struct error *err);

/* Samples in the order of time; the last call while building. */
int profile_sort(struct profile *p, struct error *err);

#endif
