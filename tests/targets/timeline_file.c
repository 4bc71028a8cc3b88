/* timeline_file SEGMENT H5 START_NS WALL_NS: builds one timeline file, and ends with what that returned (2 for -1). A
 * scaffold for tests that write segments of their own. */
#include <stdio.h>
#include <stdlib.h>

#include "store/timeline_file.h"

int main(int argc, char **argv)
{
	struct error err = {""};
	int64_t start_ns, wall_ns;
	int result;

	if (argc != 5)
		return 99;
	start_ns = strtoll(argv[3], NULL, 10);
	wall_ns = strtoll(argv[4], NULL, 10);
	result = timeline_file_build(argv[1], argv[2], start_ns, wall_ns, NULL, &err);
	if (result != 0)
		fprintf(stderr, "%s\n", err.text);
	return result < 0 ? 2 : result;
}
