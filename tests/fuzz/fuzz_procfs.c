/* Any bytes as a file of /proc: what is found in them must lie in them. */
#include <stdint.h>
#include <stdlib.h>

#include "base/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *at = text, *end = text + size;
	struct scan_key keys[] = {{.name = "VmSwap:"}, {.name = "pgmajfault"}, {.name = "rchar:"}};
	struct proc_stat stat;
	uint64_t number;
	size_t found;

	if (proc_stat_scan(text, size, &stat)) {
		require(stat.ppid >= 0);
		require(stat.comm > text && stat.comm + stat.comm_length < end);
		require(stat.comm[-1] == '(' && stat.comm[stat.comm_length] == ')');
	}
	found = scan_keys(text, size, keys, 3);
	require(found == (size_t)keys[0].found + keys[1].found + keys[2].found);
	while (scan_words(&at, end, 1) && scan_u64(&at, end, &number))
		require(at > text && at <= end);
	return 0;
}
