/* A subcommand as data. Only this layer prints, and only main() exits.
 *
 * To add one: write src/cmd/NAME.c with `const struct command cmd_NAME`, name it in meson.build, add its row to
 * list.def, and write docs/NAME.md. */
#ifndef ASSAY_CMD_COMMAND_H
#define ASSAY_CMD_COMMAND_H

#include "cmd/options.h"

enum exit_status {
	EXIT_DONE = 0,      /* done, and nothing wrong */
	EXIT_DIFFERENT = 1, /* the answer is "regression", "over budget", "not equal" */
	EXIT_USAGE = 2,     /* bad usage or a bad input file */
	EXIT_TROUBLE = 3,   /* assay itself could not do its work */
	EXIT_UNDECIDED = 4,
};

struct command {
	const char *name;
	const char *summary;     /* one line of `assay --help` */
	const char *usage;       /* after the name, in its own help */
	const char *description; /* a paragraph or two for its help, lines of at most 79 characters */
	const struct option *options;
	const char *examples;    /* at least two, each a comment line and a command line */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
	bool mixed; /* options may stand behind and between its operands */
	const struct option_elsewhere *elsewhere; /* NULL: none */
};

#define COMMAND(name) extern const struct command cmd_##name;
#include "cmd/list.def"
#undef COMMAND

extern const struct command *const commands[];
extern const size_t command_count;

/* The command of that name, or NULL; *ret_nearest (may be NULL): the nearest name, or NULL. */
const struct command *command_find(const char *name, const char **ret_nearest);

/* Says on stderr that there is no such command, and which one may have been meant. `who` begins the line: "assay help".
 * Returns EXIT_USAGE. */
int command_unknown(const char *who, const char *typed);

#endif
