/* What a measured snippet and the runner around it say to each other, and what the runner says to assay.
 *
 * Goes into people's snippets and is compiled as C of any standard and as C++: libc only, no include of ours. The
 * runner is compiled beside each snippet (its text is part of assay), and into assay-call for libraries. */
#ifndef ASSAY_EXEC_SNIPPET_RUNNER_H
#define ASSAY_EXEC_SNIPPET_RUNNER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row of executions. `left` is set by the loop when it ends: not 0 where the statement has left it. */
struct snippet_batch {
	uint64_t number, left;
	void (*function)(void); /* of a library; NULL: none */
};

/* Around each row: ends the one before, and tells whether one more is to come. Its clock runs on return. */
int snippet_next(struct snippet_batch *batch);

/* Around each execution, where every one is timed alone. */
void snippet_start(void);
void snippet_stop(void);

/* The two loops: with the statement, and with nothing in it. They differ in that alone. */
typedef void snippet_loop(struct snippet_batch *batch);
extern void snippet_statement(struct snippet_batch *batch);
extern void snippet_empty(struct snippet_batch *batch);

/* argv of the process: NAME REPLY NUMBER WARMUP TARGET EACH. NUMBER 0: it is chosen so that a row takes TARGET ns. */
enum snippet_argument {
	SNIPPET_REPLY = 1,
	SNIPPET_NUMBER,
	SNIPPET_WARMUP,
	SNIPPET_TARGET,
	SNIPPET_EACH,
	SNIPPET_ARGUMENTS /* no comma: C90 wants none */
};

int snippet_main(char **argv, snippet_loop *statement, snippet_loop *empty, void (*function)(void));

#define SNIPPET_MAGIC UINT64_C(0x31726574706e7361)
/* More executions in a row are not chosen. */
#define SNIPPET_NUMBER_MAX UINT64_C(1000000000000)

enum snippet_outcome {
	SNIPPET_MEASURED = 1,
	SNIPPET_LEFT,    /* the statement left its loop */
	SNIPPET_STRAY,   /* a process that the statement had made went on with the loop */
	SNIPPET_REFUSED  /* there is no such library or symbol */
};

/* The file REPLY. Every member takes 8 bytes or a multiple, so that 32-bit programs write the same. */
struct snippet_reply {
	uint64_t magic, outcome; /* enum snippet_outcome */
	uint64_t number, left;
	int64_t ns, empty_ns, warmup_ns; /* for `number` executions; empty_ns: the better of two */
	int64_t cycles, instructions;    /* -1: not counted */
	char text[512];                  /* SNIPPET_REFUSED: why */
};

#ifdef __cplusplus
}
#endif

#endif
