/* Looks at what this machine grants, for doctor. Needs no rights and changes nothing: a thing that can only be found
 * out by trying it out in earnest is not looked at here. */
#ifndef ASSAY_CMD_PROBE_H
#define ASSAY_CMD_PROBE_H

#include <stddef.h>

#include "base/error.h"

/* Each returns 0, or -1 with why not and what would grant it. */

/* Perf events of the user's own processes; *about: by which setting. */
int probe_perf(char *about, size_t size, struct error *why_not);

/* A pseudo-terminal can be opened. */
int probe_pty(struct error *why_not);

/* The cgroup that this process is in can get children; *path: its folder. */
int probe_cgroup(char *path, size_t size, struct error *why_not);

/* A program in $PATH; *path: where. */
int probe_program(const char *name, char *path, size_t size, struct error *why_not);

/* As probe_program, and the first line of what `NAME --version` prints. */
int probe_version(const char *name, char *version, size_t size, struct error *why_not);

#endif
