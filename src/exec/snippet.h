/* Snippets of C as programs: written, compiled in a folder of their own, and run once per repetition.
 *
 * Each snippet is a program by itself, so that none profits from where another one's code or data lies; each run is a
 * fresh process, so that chance in the layout of its memory is part of the scatter and not of the answer. What the
 * figures mean is no matter of this folder. */
#ifndef ASSAY_EXEC_SNIPPET_H
#define ASSAY_EXEC_SNIPPET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "exec/snippet_runner.h"
#include "exec/timed.h"

#define SNIPPET_BAD (-2) /* beside -1: the user's own text or library is not right */

struct snippet_text {
	const char *statement, *setup, *each; /* NULL: none */
};

/* Lists end with NULL, and may be NULL. */
struct snippet_compiler {
	char *const *cc, *const *flags; /* the words of --cc and --cflags */
	const char *gcc_flag;           /* one more where it is GCC, under whatever name; NULL: none */
	const char *standard;           /* NULL: the compiler's own */
	const char *const *headers, *const *libraries, *const *library_dirs;
};

/* The folder that snippets are made in, below $TMPDIR or /tmp, and what runs their programs. */
struct snippet_shop {
	struct timed *timed;
	const volatile int *stop; /* set by a handler on Ctrl-C; may be NULL */
	char *folder;             /* NULL: none */
	size_t programs;          /* made so far, the runner's object not counted */
	const char *quiet;        /* what keeps the compiler from showing lines of ours; NULL: nothing does */
	bool is_gcc;              /* the compiler takes what only GCC knows */
};

/* Takes `timed`, made while this process was small, as borrowed. */
int snippet_shop_open(struct snippet_shop *shop, struct timed *timed, const volatile int *stop, struct error *err);
void snippet_shop_close(struct snippet_shop *shop); /* removes the folder; a shop of zeroes is fine */

/* The runner's part of every program; once, before the first snippet. As snippet_compile: bad are then the compiler's
 * own options. */
int snippet_compile_runner(struct snippet_shop *shop, const struct snippet_compiler *c, struct buf *messages,
			   struct error *err);

/* 0 with the words that start the program (owned, ends with NULL; free it with snippet_words_free); 1 when stopped; -1;
 * SNIPPET_BAD where the compiler refuses it. *messages gets what the compiler says about the user's text, warnings
 * too, in lines. */
int snippet_compile(struct snippet_shop *shop, const struct snippet_compiler *c, const struct snippet_text *text,
		    char ***ret_words, struct buf *messages, struct error *err);

/* The words that start a program for a function of a shared library. */
int snippet_library(const char *library, const char *symbol, char ***ret_words, struct error *err);
void snippet_words_free(char **words);

/* The C text of a snippet; `folder` is where the two headers lie. */
void snippet_source(const struct snippet_text *text, const char *const *headers, const char *folder, struct buf *out);

/* The compiler's own lines turned to the user's text: `folder` is cut away, what speaks of our text is left out, and
 * the user's line stands below with a caret. Returns how many errors it left. */
size_t snippet_messages(const struct snippet_text *text, const char *folder, const char *said, struct buf *out);

struct snippet_request {
	uint64_t number; /* executions; 0: chosen so that they take target_ns */
	uint64_t warmup;
	int64_t target_ns, timeout_ns; /* of the whole process; 0: none */
	bool each; /* every execution is timed alone */
};

/* One run of a program: 0, 1 when stopped, -1 with the sentence, SNIPPET_BAD where a library or symbol is not there. */
int snippet_run(const struct snippet_shop *shop, char *const *words, const struct snippet_request *request,
		struct snippet_reply *ret, struct error *err);

#endif
