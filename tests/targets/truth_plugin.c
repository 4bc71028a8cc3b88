/* A library that is loaded, works and is unloaded. Built twice, with another name for its function: both have the same
 * layout, so the second one comes to where the first one was. */
#include "truth.h"

int64_t PLUGIN_FUNCTION(int64_t ns);

static int64_t plugin_ns;

APART int64_t PLUGIN_FUNCTION(int64_t ns)
{
	BURN(ns, &plugin_ns);
	return plugin_ns;
}
