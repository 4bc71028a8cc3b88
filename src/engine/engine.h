/* A parser of an engine's log: one file in this folder and one row in list.def.
 *
 * It is fed the lines of a run in the order in which they arrived and says what the engine did when, and how fast by
 * its own account. It must cope with anything: garbage, cut lines, streams mixed line by line. It knows no files. */
#ifndef ASSAY_ENGINE_ENGINE_H
#define ASSAY_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/engine_result.h"
#include "wire/records.h"

/* A line without its end: no ANSI sequences, no CR; of a carriage-return progress line each state is a line. */
struct log_line {
	int64_t t;        /* when its last byte arrived, ns of CLOCK_MONOTONIC */
	int stream;       /* enum wire_stream */
	const char *text; /* ends with 0, and may hold others before it */
	size_t length;
	bool cut; /* it was longer than LOG_LINE_MAX; the rest is gone */
};

#define LOG_LINE_MAX 65536
#define ENGINE_PHRASE_MIN 8
#define ENGINE_PHRASES_MAX 200 /* of all engines together */

struct engine_context {
	char *const *argv;  /* the command, ends with NULL; may be a wrapper or a replay */
	int64_t start, end; /* of the command */
};

struct engine {
	const char *name;    /* as in --engine NAME */
	const char *summary; /* one line for `doctor` and the docs */

	/* Ends with NULL, each of ENGINE_PHRASE_MIN bytes or more: a line that holds none of them is not offered to
	 * `line`, so that a gigabyte of other text costs little. While `attentive` says true such lines go to `rest`
	 * (both may be NULL). */
	const char *const *phrases;
	bool (*attentive)(const void *state);
	void (*rest)(void *state, const struct log_line *line);

	/* Ends with NULL, may be NULL: names of engines whose logs hold this one's lines too. Where one of them found
	 * its own log, this one did not. */
	const char *const *yields_to;

	void *(*open)(const struct engine_context *c); /* NULL: out of memory */
	void (*line)(void *state, const struct log_line *line);
	/* Fills *result: known lines, marks in order of time, tests, requests, headline. The caller has initialised it
	 * and releases it in any case, so a parser that has gathered a result of its own moves it there whole and
	 * leaves an empty one behind. Called once, before `close`. */
	int (*finish)(void *state, struct engine_result *result, struct error *err);
	void (*close)(void *state);
};

/* A parser's skeleton; vllm.c is a whole one, text.h reads the numbers of a line.
 *
 *	struct toy { struct engine_context context; struct engine_result result; bool failed; };
 *
 *	static void *toy_open(const struct engine_context *c)
 *	{
 *		struct toy *s = calloc(1, sizeof *s);
 *		if (s) {
 *			s->context = *c;
 *			engine_result_init(&s->result);
 *		}
 *		return s;
 *	}
 *	static void toy_line(void *state, const struct log_line *line)
 *	{
 *		struct toy *s = state;
 *		s->result.known++; // it holds a phrase; count only what can be nothing else
 *		s->failed |= marking_add(&s->result, &s->context, line->t, GROUP_PREFILL, "prefill", NULL) < 0;
 *	}
 *	static int toy_finish(void *state, struct engine_result *result, struct error *err)
 *	{
 *		struct toy *s = state;
 *		snprintf(s->result.engine, sizeof s->result.engine, "toy");
 *		*result = s->result;            // moved: the caller releases it
 *		engine_result_init(&s->result); // so that toy_close, which releases this one, does not
 *		return s->failed ? error_set(err, "out of memory for the log of toy") : 0;
 *	}
 *
 * toy_close releases what is left of its result and frees s. */

#define ENGINE(id) extern const struct engine engine_##id;
#include "engine/list.def"
#undef ENGINE

extern const struct engine *const engines[];
extern const size_t engine_count;

/* The engine of that name, or NULL. */
const struct engine *engine_find(const char *name);

/* Several parsers at once over the same lines: "auto". */
struct engine_set;

/* name: "auto" (all parsers; the one that knew the most telling lines wins) or one parser's name. NULL where there is
 * no parser of that name (ask engine_find first) or no memory. */
struct engine_set *engine_set_new(const char *name, const struct engine_context *c);
void engine_set_line(struct engine_set *s, const struct log_line *line);

/* Fills *result (initialised by the caller). known == 0 where no parser found its log. */
int engine_set_finish(struct engine_set *s, struct engine_result *result, struct error *err);
void engine_set_free(struct engine_set *s);

#endif
