/* For tests that read or write HDF5: the plug-in lies beside the program in a build folder, and two folders above the
 * tests; they look for it beside themselves. */
#ifndef ASSAY_TESTS_REGION_PLUGIN_H
#define ASSAY_TESTS_REGION_PLUGIN_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/timeline_file.h"

static bool have_plugin;

static inline int find_plugin(void **state)
{
	char self[4096], version[64];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 32);

	(void)state;
	if (length < 0)
		return -1;
	self[length] = '\0';
	strcpy(strrchr(self, '/'), "/assay-hdf5.so");
	if (symlink("../../assay-hdf5.so", self) < 0 && errno != EEXIST)
		return -1;
	have_plugin = timeline_file_available(version, sizeof version, NULL) == 0;
	return 0;
}

static inline void need_plugin(void)
{
	need("hdf5", have_plugin, "assay-hdf5.so or its library is not there");
}

#endif
