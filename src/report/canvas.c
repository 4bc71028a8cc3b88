#include "report/canvas.h"

#include <dlfcn.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* The plug-in stays loaded: what cairo keeps for the program's whole life would point nowhere without it. */
const struct canvas_plugin *canvas_load(char *version, size_t size, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_find_companion(CANVAS_PLUGIN_FILE);
	const struct canvas_plugin *plugin;
	void *library;

	if (!path) {
		error_set(err, "figures need %s, which is neither beside the program nor in %s", CANVAS_PLUGIN_FILE,
			  ASSAY_PLUGIN_DIR);
		return NULL;
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		error_set(err, "figures need %s, which cannot be loaded: %s", path, dlerror());
		return NULL;
	}
	plugin = dlsym(library, CANVAS_PLUGIN_SYMBOL);
	if (!plugin || plugin->version != CANVAS_PLUGIN_VERSION) {
		error_set(err, "%s is of another version of this program", path);
		return NULL;
	}
	return plugin->start(version, size, err) < 0 ? NULL : plugin;
}
