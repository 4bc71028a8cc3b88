/* sampled_modules MS LIBRARY...: loads each library, has its work() use MS milliseconds of CPU time, unloads it, and
 * prints where work() was. */
#include <dlfcn.h>
#include <string.h>

#include "sampled.h"

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		void *at = library ? dlsym(library, "work") : NULL;
		void (*work)(long ms);

		if (!at) {
			fprintf(stderr, "sampled_modules: %s\n", dlerror());
			return 1;
		}
		memcpy(&work, &at, sizeof work);
		work(atol(argv[1]));
		printf("%p\n", at);
		if (dlclose(library) != 0)
			return 1;
	}
	return 0;
}
