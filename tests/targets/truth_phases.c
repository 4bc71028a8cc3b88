/* truth_phases SECONDS: burns a little before its first phase, then in three phases with a hot function each and one
 * that all of them call. */
#include <stdlib.h>

#include "planted.h"
#include "truth.h"

static int64_t early_ns, load_ns, prefill_ns, decode_ns, shared_ns;

static APART void before_any_phase(int64_t ns)
{
	BURN(ns, &early_ns);
}

static APART void called_by_all(int64_t ns)
{
	BURN(ns, &shared_ns);
}

static APART void read_weights(int64_t ns)
{
	BURN(ns * 4 / 5, &load_ns);
	called_by_all(ns / 5);
}

static APART void many_tokens(int64_t ns)
{
	BURN(ns * 4 / 5, &prefill_ns);
	called_by_all(ns / 5);
}

static APART void one_token(int64_t ns)
{
	BURN(ns * 4 / 5, &decode_ns);
	called_by_all(ns / 5);
}

int main(int argc, char **argv)
{
	int64_t ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9 / 10);

	before_any_phase(ns);
	phase("load");
	read_weights(2 * ns);
	phase("prefill");
	many_tokens(3 * ns);
	phase("decode");
	one_token(4 * ns);
	tell("before_any_phase", early_ns);
	tell("read_weights", load_ns);
	tell("many_tokens", prefill_ns);
	tell("one_token", decode_ns);
	tell("called_by_all", shared_ns);
	return 0;
}
