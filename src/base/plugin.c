#include "base/plugin.h"

#include <dlfcn.h>

#include "base/cleanup.h"
#include "base/fs.h"

const void *plugin_table(const char *file, const char *symbol, unsigned version, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_find_companion(file);
	const unsigned *table;
	void *library;

	if (!path) {
		error_set(err, "%s is neither beside the program nor in %s", file, ASSAY_PLUGIN_DIR);
		return NULL;
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		error_set(err, "%s cannot be loaded: %s", path, dlerror());
		return NULL;
	}
	table = dlsym(library, symbol);
	if (!table || *table != version) {
		error_set(err, "%s is of another version of this program", path);
		return NULL;
	}
	return table;
}
