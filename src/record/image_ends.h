/* What there is to say when the sampling of a program image ends, and what sums it up over all of them. */
#ifndef ASSAY_RECORD_IMAGE_ENDS_H
#define ASSAY_RECORD_IMAGE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/warnings.h"
#include "record/rings.h"
#include "record/samples_writer.h"

struct image_ends {
	size_t images, refused, roomless, taken, restricted, modules_full, broken;
	uint64_t unarmed_threads, roomless_threads, dropped, deliveries;
	int unarmed_errno;
	double dropped_s; /* CPU seconds */
};

/* All borrowed. */
struct image_end {
	uint32_t image;
	const struct ring *ring;
	const struct ring_counts *counts;
	int64_t cpu_ns;   /* what its process used while it was this image, -1: not known */
	int64_t claim_ns; /* what its samples say that it used */
	bool believed;    /* false: that cannot be */
	int64_t t;
};

/* Writes it. Of one that is not believed a warning names the program. */
void image_ends_add(struct image_ends *e, const struct image_end *end, struct samples_writer *writer,
		    struct warnings *warnings);

void image_ends_report(const struct image_ends *e, struct warnings *warnings);

#endif
