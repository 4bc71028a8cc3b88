/* A source of counters: one file in this folder and one row in list.def.
 *
 * A source reads the kernel and puts values into the timeline. It may say "not here, because ..." when it is opened.
 * It writes no files, prints nothing, and knows neither phases nor reports. */
#ifndef ASSAY_SOURCE_SOURCE_H
#define ASSAY_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/process.h"
#include "model/timeline.h"
#include "model/warnings.h"

/* What sources share during a run. All borrowed. */
struct source_context {
	struct timeline *timeline;
	struct process_table *processes; /* kept up to date by the recorder before each call */
	struct warnings *warnings;
	pid_t command;                   /* the target's pid, 0 in `doctor` */
	char *const *argv;               /* its command line, ends with NULL; NULL in `doctor` */
	bool probe;                      /* looks that cost the target something, though little, are allowed */
	int64_t interval_ns;             /* the effective tick now */
	/* Everything is to be read at this tick, however lately it was: at the ends of a run and of a phase. */
	bool exact;
	/* A source found that a process is gone or a zombie. May be NULL. */
	void (*process_gone)(void *gone_context, struct process *p, int64_t now);
	void *gone_context;
};

#define SOURCE_ABSENT (-2)

struct source {
	const char *name;    /* one word, e.g. "memory" */
	const char *summary; /* one line for `doctor` */
	/* 0 and *ret_state (owned by the source until close), or -1 with the reason and what would grant it; or
	 * SOURCE_ABSENT with a reason: the machine has no such thing, which a run does not warn of. */
	int (*open)(struct source_context *c, void **ret_state, struct error *why_not);
	void (*tick)(void *state, struct source_context *c, int64_t now);  /* every interval; NULL: none */
	void (*slow)(void *state, struct source_context *c, int64_t now);  /* every 100 ms; NULL: none */
	void (*close)(void *state);
};

#define SOURCE(name) extern const struct source source_##name;
#include "source/list.def"
#undef SOURCE

extern const struct source *const sources[];
extern const size_t source_count;

#endif
