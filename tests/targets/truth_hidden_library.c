/* A library whose hot function is static, between two exported ones. Built stripped: only the two have names then, and
 * a sampler that takes the nearest name is wrong. The program gets at it through a table, so that neither of the two
 * is ever on the stack beside it. */
#include "truth.h"

typedef void work(int64_t ns);
extern work *const hidden_table[];
void exported_before(int64_t ns);
void exported_after(int64_t ns);

static int64_t before_ns, hidden_ns, after_ns;

APART void exported_before(int64_t ns)
{
	BURN(ns, &before_ns);
	tell("exported_before", before_ns);
}

static APART void hot_and_hidden(int64_t ns)
{
	BURN(ns, &hidden_ns);
	tell("hidden", hidden_ns);
}

APART void exported_after(int64_t ns)
{
	BURN(ns, &after_ns);
	tell("exported_after", after_ns);
}

work *const hidden_table[] = {hot_and_hidden};
