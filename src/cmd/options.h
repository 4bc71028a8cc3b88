/* Command-line options as data: parsing, "did you mean", help and man pages come from the same rows.
 *
 * Understood: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, flags bundled as -abc, and -- as their end; -h and --help
 * everywhere. A prefix of a name is not a name. Used again, an option replaces its value, a list grows. */
#ifndef ASSAY_CMD_OPTIONS_H
#define ASSAY_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum option_kind {
	OPTION_FLAG,    /* bool, set to true */
	OPTION_TEXT,    /* const char * */
	OPTION_MAYBE,   /* const char *: --name gives "", --name=VALUE gives VALUE */
	OPTION_NUMBER,  /* double, within [min, max] */
	OPTION_LIST,    /* struct option_list: each use adds one */
	OPTION_CHOICE,  /* const char *, one of `choices` (a|b|c) */
	OPTION_WORDS,   /* struct option_list: takes the words up to the next option, at least `min` and at most `max`;
			 * behind "--name=WORD" no more than `min`, so that operands may follow */
};

struct option_list {
	const char **items; /* ends with NULL; NULL while empty; owned, freed by options_release */
	size_t count;
};

struct option {
	const char *name;     /* without the dashes */
	char letter;          /* 0: no short form */
	enum option_kind kind;
	size_t offset;        /* in the command's own struct of arguments */
	const char *argument; /* name of its argument in help, NULL for flags */
	const char *help;     /* one line */
	const char *fallback; /* default as shown in help, NULL: none */
	const char *choices;
	double min, max;      /* of a number, or how many words; max may be INFINITY */
	const char *hint;     /* behind the error about what is no number; NULL: none */
};

/* An option that users know from elsewhere, and that is called otherwise here: in place of a name that looks alike. */
struct option_elsewhere {
	const char *name; /* with its dashes; NULL ends the list */
	const char *here; /* "...: this is --name here" */
};

#define OPTIONS_END {.name = NULL}

struct command;

/* Fills `args` (already holding the defaults) from argv[1..]. Stops at "--" or at the first word that is no option;
 * that word's index is *ret_rest (behind a "--"). A command with `mixed` has its options wherever they stand: argv is
 * put in order, so that the words that are no options come last. --help is handled: returns 1 after printing the
 * command's help to stdout. Returns 0, or -1 with *err: one line that names the option and, where one is near, what
 * was meant. */
int options_parse(const struct command *cmd, int argc, char **argv, void *args, int *ret_rest, struct error *err);

/* Of a number: whether it is a whole one. */
int options_whole(const char *option, double value, struct error *err);

/* Of --seed: the one that was given, or where that is below 0 a new one that JSON's readers can hold exactly. */
uint64_t options_seed(double given);

/* Frees the lists in args. */
void options_release(const struct command *cmd, void *args);

/* What the user typed, fit for one line of an error: control characters replaced, and not longer than a look. */
#define TYPED_MAX 60

struct typed {
	char text[TYPED_MAX + 4];
};

struct typed typed_show(const char *text, size_t length);

/* The whole help of a command. */
void options_help(const struct command *cmd, FILE *out);

/* The row of --help, which every command has without naming it. */
extern const struct option options_help_row;

/* The two columns of an option's help, also for its man page: "-o, --out DIR", and what it does with its choices and
 * its default in brackets. Cut where `size` is too small. */
void options_spell(const struct option *o, char *text, size_t size);
void options_explain(const struct option *o, char *text, size_t size);

#endif
