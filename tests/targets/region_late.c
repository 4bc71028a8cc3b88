/* Loads the library late, by a plug-in that needs it: region_late PLUGIN TIMES. Unloads it each time. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long times = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	while (times-- > 0) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		void (*call)(void) = plugin ? (void (*)(void))dlsym(plugin, "call_the_plugin") : NULL;

		if (!call) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		call();
		dlclose(plugin);
	}
	return 0;
}
