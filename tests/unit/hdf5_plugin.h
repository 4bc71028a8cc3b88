/* For tests that read or write HDF5. */
#ifndef ASSAY_TESTS_HDF5_PLUGIN_H
#define ASSAY_TESTS_HDF5_PLUGIN_H

#include "need.h"
#include "plugin.h"
#include "store/region_file.h"
#include "store/timeline_file.h"

static bool have_plugin;

static inline int find_plugin(void **state)
{
	(void)state;
	return plugin_find("assay-hdf5.so", timeline_file_available, &have_plugin);
}

static inline void need_plugin(void)
{
	need("hdf5", have_plugin, "assay-hdf5.so or its library is not there");
}

/* A region file that must open. */
static inline struct region_file *open_file(const char *path)
{
	struct region_file *f = NULL;
	struct error err = {{0}};

	if (region_file_open(path, &f, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

#endif
