/* The helper's side of launch.h. */
#ifndef ASSAY_EXEC_HELPER_H
#define ASSAY_EXEC_HELPER_H

#include "exec/caller.h"
#include "exec/launch.h"

/* Runs in the forked helper, with its end of the socket pair and the pid of assay, until the helper ends. */
_Noreturn void helper_main(int socket, pid_t assay, const struct launch_options *options, const struct caller *caller);

#endif
