/* How many descriptors the test itself has open, to see that none was left behind. */
#ifndef ASSAY_TESTS_DESCRIPTORS_H
#define ASSAY_TESTS_DESCRIPTORS_H

#include <dirent.h>
#include <stddef.h>

static size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

#endif
