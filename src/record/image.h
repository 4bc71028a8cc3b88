/* A program image that is sampled: turns the records of its ring into threads, modules, places in the call tree and
 * samples of the segment. Knows no folder and decides nothing about a process's life. */
#ifndef ASSAY_RECORD_IMAGE_H
#define ASSAY_RECORD_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "record/code_maps.h"
#include "record/module_files.h"
#include "record/rings.h"
#include "record/samples_writer.h"

#define IMAGE_PLACES 8192 /* a power of two */

/* What all images of a recording share. */
struct image_shared {
	struct samples_writer *writer; /* borrowed */
	struct module_files *files;    /* borrowed */
	/* Which module an address was in when it was last asked for. */
	struct image_place {
		uint64_t address, in_module;
		uint32_t image, module;
		uint64_t stamp; /* of the tables that told it; 0: empty */
	} places[IMAGE_PLACES];
};

struct image_slot {
	int tid;
	uint32_t thread;
	uint32_t *chain; /* places of the last sample's frames, outermost first; owned */
	uint32_t depth, room;
	uint32_t missing; /* so many of the outermost are not known */
	int64_t skip_until; /* samples up to this time are in the segment already */
};

struct image {
	struct image_shared *shared;
	struct ring *ring; /* owned */
	uint32_t id;       /* in the segment */
	int pid;           /* as seen from here, as far as could be told */
	bool pid_known;
	struct image_slot *slots; /* owned */
	size_t slot_count;
	uint32_t anonymous, unknown; /* modules; UINT32_MAX: not defined yet */
	struct code_maps maps;
	int64_t maps_read_at; /* 0: never */
	int64_t now;
	uint64_t stamp; /* changes with the tables of modules */
	bool drained;   /* since the last image_release */
	/* When samples of it are on file already: up to which time of each thread. Owned; NULL: none are. */
	struct image_done {
		int tid;
		uint32_t thread;
		int64_t t;
	} *done;
	size_t done_count;
	/* The places of the last sample on file of that thread before t, outermost first, in `chain`, which has room
	 * for SAMPLER_FRAMES_MAX; returns how many, 0: none. */
	uint32_t (*before)(void *context, uint32_t thread, int64_t t, uint32_t *chain);
	void *before_context;
	/* The recorder's own. */
	int64_t cpu_at_start; /* of the process when this image was found, -1: not known */
	uint64_t weight;      /* as last counted */
	uint64_t taken;       /* of all samples that were read, by their own word */
	size_t place;         /* in the recorder's table */
};

/* Takes the ring over, also on failure. `id`: of the image in the segment, which the caller has defined. */
int image_new(struct image_shared *shared, struct ring *ring, uint32_t id, int pid, struct image **ret,
	      struct error *err);
void image_free(struct image *i);

/* Takes what has come into slots that hold at least `least` bytes. `now` is for what may be read once a second only. */
void image_drain(struct image *i, uint64_t least, int64_t now);

/* What was drained is safe: the process may write over it. */
void image_release(struct image *i);

#endif
