/* What there is to say when the sampling of a program image ends, and what sums it up over all of them. */
#ifndef ASSAY_RECORD_IMAGE_ENDS_H
#define ASSAY_RECORD_IMAGE_ENDS_H

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

/* Writes the image's end. `cpu_ns`: what its process used while it was this image, -1: not known. */
void image_ends_add(struct image_ends *e, struct samples_writer *writer, uint32_t image, const struct ring *ring,
		    const struct ring_counts *counts, int64_t cpu_ns, int64_t t);

void image_ends_report(const struct image_ends *e, struct warnings *warnings);

#endif
