/* Where a benchmark's commands read from and write to. */
#ifndef ASSAY_TRIAL_BENCH_OUTPUT_H
#define ASSAY_TRIAL_BENCH_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

struct bench_output {
	int null;            /* /dev/null, both ways */
	int drain[2];        /* the pipe of "pipe", whose other end a thread empties */
	int quit;            /* an eventfd that ends the thread */
	bool draining;
	pthread_t thread;
};

/* Descriptors for one run; those that are its own are closed by bench_output_close. */
struct bench_descriptors {
	int in, out, err;
	bool own_in, own_out;
};

int bench_output_init(struct bench_output *o, struct error *err);
void bench_output_release(struct bench_output *o);

/* `where`: "null", "pipe", "inherit" or a file, which is emptied; NULL: null. `input`: a file; NULL: /dev/null. */
int bench_output_open(struct bench_output *o, const char *where, const char *input, struct bench_descriptors *ret,
		      struct error *err);
void bench_output_close(struct bench_descriptors *d);

#endif
