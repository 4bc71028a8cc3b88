/* Any bytes as an ELF file whose code is to be named, without the fence that the program puts around this: frames name
 * functions that were told, each address has frames once, and names are not empty. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbols_plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct symbols_plugin assay_symbols_plugin;

#define COUNT 512

static void require(int condition)
{
	if (!condition)
		abort();
}

struct told {
	uint32_t functions;
	bool seen[COUNT];
};

static int take_function(void *context, bool known, const char *name, const char *file, uint32_t line)
{
	struct told *t = context;

	(void)file, (void)line;
	require(name[0] && (known || strncmp(name, "module!?", 8) == 0));
	t->functions++;
	return 0;
}

static int take_frames(void *context, size_t at, const struct symbols_frame *frames, size_t count)
{
	struct told *t = context;

	require(at < COUNT && count > 0 && count <= 256 && !t->seen[at]);
	for (size_t i = 0; i < count; i++)
		require(frames[i].function < t->functions);
	t->seen[at] = true;
	return 0;
}

static int take_note(void *context, bool refused, const char *text)
{
	(void)context, (void)refused;
	require(text[0]);
	return 0;
}

static int go_on(void *context)
{
	(void)context;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told t = {0};
	const struct symbols_sink sink = {&t, take_function, take_frames, take_note, go_on, NULL};
	uint64_t addresses[COUNT];
	struct symbols_request request = {.path = "/nowhere/module", .name = "module", .debug_folder = "/nowhere",
					  .addresses = addresses, .count = COUNT};
	struct error err;
	struct stat st;

	for (size_t i = 0; i < COUNT; i++)
		addresses[i] = i < COUNT / 2 ? 0x1000 + 3 * i : 0x400000 + 5 * i;
	request.fd = memfd_create("fuzz", MFD_CLOEXEC);
	require(request.fd >= 0);
	require(write(request.fd, data, size) == (ssize_t)size);
	require(fstat(request.fd, &st) == 0);
	request.device = st.st_dev;
	request.inode = st.st_ino;
	request.size = (uint64_t)st.st_size;
	request.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	for (int plain = 0; plain < 2; plain++) {
		request.no_dwarf = plain;
		memset(&t, 0, sizeof t);
		require(assay_symbols_plugin.resolve(&request, &sink, &err) == 0);
	}
	close(request.fd);
	return 0;
}
