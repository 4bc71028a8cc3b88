#include "report/canvas.h"

#include "base/plugin.h"

const struct canvas_plugin *canvas_load(char *version, size_t size, struct error *err)
{
	const struct canvas_plugin *plugin =
		plugin_table(CANVAS_PLUGIN_FILE, CANVAS_PLUGIN_SYMBOL, CANVAS_PLUGIN_VERSION, err);

	if (!plugin) {
		error_prefix(err, "figures cannot be drawn");
		return NULL;
	}
	return plugin->start(version, size, err) < 0 ? NULL : plugin;
}
