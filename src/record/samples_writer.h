/* Writes a samples segment: each program image, thread, module and place in the call tree once, then samples that name
 * them by number. The one way on disk for all recorders of samples.
 *
 * Its memory is bounded: when the tables have grown too large it forgets the places in the call tree and writes them
 * anew, which costs disk and nothing else. Knows neither rings nor perf. */
#ifndef ASSAY_RECORD_SAMPLES_WRITER_H
#define ASSAY_RECORD_SAMPLES_WRITER_H

#include <stdint.h>

#include "base/error.h"
#include "wire/records.h"

struct samples_writer;

/* The segment must not exist. */
int samples_writer_new(const char *path, enum wire_recorder recorder, uint32_t hz, int64_t t,
		       struct samples_writer **ret, struct error *err);

/* Writes what is buffered, ends in good order, closes. NULL accepted. */
void samples_writer_free(struct samples_writer *w);

/* Each returns the new id. The texts are borrowed for the call; NULL is "". */
uint32_t samples_writer_image(struct samples_writer *w, int pid, int ppid, int64_t t, const char *exe,
			      const char *command);
uint32_t samples_writer_thread(struct samples_writer *w, uint32_t image, int tid, const char *name);
void samples_writer_rename(struct samples_writer *w, uint32_t thread, const char *name);

/* The id of the module that is like *module in all but `id` and has this path: the same again where it was defined
 * before. */
uint32_t samples_writer_module(struct samples_writer *w, const struct wire_module *module, const char *path);

/* A call tree's place; parent 0 is the root. The same again where it was defined before and is remembered. */
uint32_t samples_writer_node(struct samples_writer *w, uint32_t parent, uint32_t module, uint64_t address);

/* Grows by one whenever nodes were forgotten: ids kept by the caller still name what they named, but asking again for
 * the same place gives another. */
uint32_t samples_writer_epoch(const struct samples_writer *w);

/* Buffered: on file after at most 256 samples, samples_writer_flush or samples_writer_free. */
void samples_writer_sample(struct samples_writer *w, const struct wire_sample *sample);
void samples_writer_flush(struct samples_writer *w);

void samples_writer_image_end(struct samples_writer *w, const struct wire_image_end *end, const char *note);
void samples_writer_unsampled(struct samples_writer *w, int pid, int64_t cpu_ns, const char *name, const char *reason);

/* Records that found no room on disk, and errno of why, 0: none. */
uint64_t samples_writer_dropped(const struct samples_writer *w, int *ret_errno);

#endif
