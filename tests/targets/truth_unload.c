/* truth_unload SECONDS LIBRARY FUNCTION LIBRARY FUNCTION: loads the one library, has its function burn, unloads it, and
 * the same with the other, in turn, twice as long in the second. Tells whether both came to the same address. */
#include <dlfcn.h>
#include <stdlib.h>

#include "truth.h"

#define TURNS 20

typedef int64_t work(int64_t ns);

/* ns that it burnt, or -1. */
static int64_t one_turn(const char *library, const char *function, int64_t ns, void **ret_address)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	work *burn = handle ? (work *)dlsym(handle, function) : NULL;
	int64_t burnt;

	if (!burn) {
		fprintf(stderr, "truth_unload: %s\n", dlerror());
		return -1;
	}
	*ret_address = (void *)burn;
	burnt = burn(ns);
	return dlclose(handle) == 0 ? burnt : -1;
}

int main(int argc, char **argv)
{
	int64_t ns, sums[2] = {0, 0};
	int same = 0;

	if (argc != 6)
		return 2;
	ns = (int64_t)(atof(argv[1]) * 1e9 / TURNS / 3);
	for (int turn = 0; turn < TURNS; turn++) {
		void *at[2];

		for (int i = 0; i < 2; i++) {
			int64_t burnt = one_turn(argv[2 + 2 * i], argv[3 + 2 * i], ns * (i + 1), &at[i]);

			if (burnt < 0)
				return 3;
			sums[i] += burnt;
		}
		same += at[0] == at[1];
	}
	for (int i = 0; i < 2; i++)
		tell(argv[3 + 2 * i], sums[i]);
	printf("same address: %d of %d\n", same, TURNS);
	return 0;
}
