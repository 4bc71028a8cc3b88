/* truth_exec SECONDS STAGES: burns in a function of its stage and then becomes the next stage by exec: itself, by turns
 * through `sh -c 'exec ...'` and through `env`. All of it is one process. */
#include <stdlib.h>

#include "truth.h"

static int64_t odd_ns, even_ns;

static APART void odd_stage(int64_t ns)
{
	BURN(ns, &odd_ns);
	tell("odd_stage", odd_ns);
}

static APART void even_stage(int64_t ns)
{
	BURN(ns, &even_ns);
	tell("even_stage", even_ns);
}

int main(int argc, char **argv)
{
	int stage = argc > 2 ? atoi(argv[2]) : 0;
	char next[16];

	if (stage < 1)
		return 0;
	if (stage % 2)
		odd_stage((int64_t)(atof(argv[1]) * 1e9));
	else
		even_stage((int64_t)(atof(argv[1]) * 2e9));
	snprintf(next, sizeof next, "%d", stage - 1);
	if (stage % 2)
		execlp("sh", "sh", "-c", "exec \"$@\"", "sh", argv[0], argv[1], next, (char *)NULL);
	else
		execlp("env", "env", argv[0], argv[1], next, (char *)NULL);
	perror("truth_exec");
	return 3;
}
