/* truth_recursion SECONDS: one function that calls itself, and two that call each other, down to 300 levels; all burn
 * at every level. Each is on the stack of all samples of its half, however often. */
#include <stdlib.h>

#include "truth.h"

#define LEVELS 300

static int64_t self_ns, even_ns, odd_ns;

static APART void odd_level(int level, int64_t ns);

static APART int call_itself(int level, int64_t ns)
{
	int below = 0;

	if (level < LEVELS)
		below = call_itself(level + 1, ns);
	BURN(ns, &self_ns);
	return below + 1;
}

static APART void even_level(int level, int64_t ns)
{
	if (level < LEVELS)
		odd_level(level + 1, ns);
	BURN(ns, &even_ns);
}

static APART void odd_level(int level, int64_t ns)
{
	if (level < LEVELS)
		even_level(level + 1, ns);
	BURN(ns, &odd_ns);
}

int main(int argc, char **argv)
{
	int64_t each_ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9 / 2 / (LEVELS + 1));

	if (call_itself(0, each_ns) != LEVELS + 1)
		return 3;
	even_level(0, each_ns);
	tell("call_itself", self_ns);
	tell("even_level", even_ns);
	tell("odd_level", odd_ns);
	return 0;
}
