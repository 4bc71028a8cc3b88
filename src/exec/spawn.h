/* The target's process: forked, held until it may exec, and given back everything that the caller gave. */
#ifndef ASSAY_EXEC_SPAWN_H
#define ASSAY_EXEC_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "exec/caller.h"

struct spawn {
	pid_t pid;
	int hold;   /* a byte written here lets it exec; closed instead, it exits */
	int report; /* what came of exec: see spawn_report */
	int64_t t;  /* just before exec; 0: not known yet */
};

#define SPAWN_PENDING (-1)

/* Forks it. `out` and `err` become its descriptors 1 and 2; -1 leaves those as they are. Nothing else of its
 * descriptors is touched. Call while this process has one thread. */
int spawn_held(char *const *argv, char *const *environment, const struct caller *caller, int out, int err_fd,
	       struct spawn *ret, struct error *err);

/* Lets it go. */
void spawn_go(struct spawn *s);

/* Reads what came of exec when `report` is readable, without waiting: a process may be stopped between telling the time
 * and its exec. SPAWN_PENDING: not known yet; 0, with s->t; else exec's errno. A process that was killed before it
 * could exec counts as started. Closes `report` when it is known. */
int spawn_report(struct spawn *s);

/* The value of PATH that exec will use; borrowed. */
const char *spawn_path(char *const *environment);

/* Why exec failed with `code`, as a sentence that names the command. Returns the exit status that shells give: 127
 * where there is no such command along the path, 126 where there is one that cannot be run. */
int spawn_explain(const char *name, const char *path, int code, struct error *err);

#endif
