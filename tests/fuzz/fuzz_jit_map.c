/* Any bytes as a perf-PID.map: each asked address gets at most one name, of a line that covers it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/jit_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static const uint64_t addresses[] = {0, 1, 0x10, 0x1000, 0x1001, 0x10ff, 0x2000, UINT64_C(0x7fff00000000), UINT64_MAX};

struct told {
	uint32_t functions;
	unsigned times[sizeof addresses / sizeof *addresses];
};

static int take_function(void *context, bool known, const char *name, const char *file, uint32_t line)
{
	struct told *t = context;

	require(known && name && strlen(name) < 4096 && !file && !line);
	t->functions++;
	return 0;
}

static int take_frames(void *context, size_t at, const struct symbols_frame *frames, size_t count)
{
	struct told *t = context;

	require(count == 1 && at < sizeof addresses / sizeof *addresses && frames[0].function + 1 == t->functions);
	require(++t->times[at] == 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told t = {0};
	const struct symbols_sink sink = {&t, take_function, take_frames, NULL, NULL, NULL};

	require(jit_map_parse((const char *)data, size, addresses, sizeof addresses / sizeof *addresses, &sink, NULL) ==
		0);
	return 0;
}
