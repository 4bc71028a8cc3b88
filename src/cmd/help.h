/* Help that is about all commands. Everything in it comes from the tables; a command's own help is options_help. */
#ifndef ASSAY_CMD_HELP_H
#define ASSAY_CMD_HELP_H

#include <stdio.h>

#include "cmd/command.h"

/* What assay is, its commands, its exit status, where the documentation is. */
void help_overview(FILE *out);

/* What each exit status means; ends with a row whose meaning is NULL. */
struct help_status {
	enum exit_status status;
	const char *meaning;
};

extern const struct help_status help_statuses[];
extern const char help_status_note[];
extern const char help_purpose[];

/* Man pages: assay(1), and that of one command. */
void man_overview(FILE *out);
void man_command(const struct command *cmd, FILE *out);

#endif
