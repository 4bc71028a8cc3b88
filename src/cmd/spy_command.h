/* The command of `assay spy -- COMMAND`: started straight from this process while it is small, in the caller's session,
 * with the caller's descriptors and signals. Nothing of its output passes through assay. */
#ifndef ASSAY_CMD_SPY_COMMAND_H
#define ASSAY_CMD_SPY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/spawn.h"

struct spy_command {
	struct spawn spawn;
	char *const *argv;
	int signals; /* a descriptor that is readable when a signal or the end of a child waits; -1 before */
	bool held;   /* made, and not let go yet */
	bool ended, interrupted; /* interrupted: a Ctrl-C at the terminal */
	int status;       /* as from wait4, once it has ended */
	int64_t max_rss;  /* bytes: of it, or of the largest of the children that it waited for; -1 before */
};

void spy_command_init(struct spy_command *c);

/* A command that was not let go is not executed any more. */
void spy_command_release(struct spy_command *c);

/* Makes its process, which waits for spy_command_go. To be called while this process is small: what it holds would
 * count in the command's ru_maxrss. Descendants that lose their parent become children of this process. */
int spy_command_make(struct spy_command *c, char *const *argv, struct error *err);

/* Lets it exec. 0; 127 or 126 where it cannot, with *err. */
int spy_command_go(struct spy_command *c, struct error *err);

/* Takes the signals that wait: children that ended are reaped, what was sent to assay alone is passed on. */
void spy_command_take(struct spy_command *c);

/* As shells count: 128+N for signal N. */
int spy_command_exit_status(const struct spy_command *c);

#endif
