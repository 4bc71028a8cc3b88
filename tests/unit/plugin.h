/* For tests that need a plug-in: it lies beside the program in a build folder, two folders above the tests, and they
 * look for it beside themselves. */
#ifndef ASSAY_TESTS_PLUGIN_H
#define ASSAY_TESTS_PLUGIN_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* Puts a link to it beside the test. `available` asks the product whether it can be loaded. */
static inline int plugin_find(const char *file, int (*available)(char *, unsigned long, struct error *), bool *ret_have)
{
	char self[4096], target[256], version[128];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 128);
	char *end;

	if (length < 0)
		return -1;
	self[length] = '\0';
	end = strrchr(self, '/') + 1;
	snprintf(end, 128, "%s", file);
	snprintf(target, sizeof target, "../../%s", file);
	if (symlink(target, self) < 0 && errno != EEXIST)
		return -1;
	*ret_have = available(version, sizeof version, NULL) == 0;
	return 0;
}

#endif
