/* truth_inline SECONDS: a leaf that is inlined into its caller does all the work. With debug information the samples
 * are the leaf's; without, they are the caller's. */
#include <stdlib.h>

#include "truth.h"

static int64_t leaf_ns;

static inline __attribute__((always_inline)) void inlined_leaf(int64_t ns)
{
	BURN(ns, &leaf_ns);
}

static APART void outer_function(int64_t ns)
{
	inlined_leaf(ns);
	tell("inlined_leaf", leaf_ns);
}

int main(int argc, char **argv)
{
	outer_function((int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9));
	return 0;
}
