/* What a run's reader must be told: sentences, each once, in the order they came up. */
#ifndef ASSAY_MODEL_WARNINGS_H
#define ASSAY_MODEL_WARNINGS_H

#include <stddef.h>

struct warnings {
	char **texts;
	size_t count, room;
	size_t lost; /* for want of memory, or past the 200th */
};

void warnings_init(struct warnings *w);
void warnings_release(struct warnings *w);

/* Adds a sentence; one that is there already is not added again. Never fails: what cannot be kept is counted. */
void warnings_add(struct warnings *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
