/* A recorder of CPU samples as a row of the table in sampling.c. To add one: write a file with its constant
 * struct sampling_recorder, declare it below, add its row.
 *
 * What all of them share comes in the context: the segment they write, the files of modules that stay open, and where
 * to say what is wrong. */
#ifndef ASSAY_RECORD_SAMPLING_RECORDER_H
#define ASSAY_RECORD_SAMPLING_RECORDER_H

#include "record/module_files.h"
#include "record/samples_writer.h"
#include "record/sampling.h"

/* All borrowed, until close. */
struct sampling_context {
	const struct sampling_options *options;
	struct samples_writer *writer;
	struct module_files *files;
	struct warnings *warnings;
};

struct sampling_recorder {
	const char *name;         /* as in --sampler */
	enum wire_recorder wire;

	/* Before launch_prepare, after the writer was made. Fails where it cannot work here at all. */
	int (*open)(const struct sampling_context *context, void **ret_state, struct error *err);
	void (*close)(void *state);

	/* See sampling.h; each of these but poll and end may be NULL. */
	const char *const *(*environment)(void *state, const char *const *env);
	int (*begin)(void *state, pid_t command, struct error *err);
	void (*poll)(void *state, const struct process_table *table, int64_t now);
	void (*reaped)(void *state, const struct wire_exit *e, int64_t now);
	void (*forgotten)(void *state, const struct process *p);
	void (*end)(void *state, const struct process_table *table, int64_t now);
};

extern const struct sampling_recorder preload_recorder;
extern const struct sampling_recorder perf_recorder;

#endif
