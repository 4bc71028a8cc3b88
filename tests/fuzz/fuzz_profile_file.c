/* Any bytes as profile.json of a run with two modules and three places: refused with a sentence, or every name that it
 * gives leads somewhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/profile_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void fill(struct profile *p)
{
	struct profile_module a = {.path = (char *)"/lib/a.so", .build_id = {0xab, 0x01}, .build_id_length = 2};
	struct profile_module b = {.kind = PROFILE_ANON, .path = (char *)"[jit]"};
	struct error err;

	profile_init(p);
	require(profile_add_image(p, 1, 0, 0, "x", "", &err) == 0);
	require(profile_add_module(p, &a, &err) == 0 && profile_add_module(p, &b, &err) == 1);
	require(profile_add_node(p, 0, 0, 0x10, &err) == 1 && profile_add_node(p, 1, 1, UINT64_MAX - 1, &err) == 2 &&
		profile_add_node(p, 1, 0, 0x30, &err) == 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct error err;
	char path[64];
	int fd = memfd_create("profile", MFD_CLOEXEC);

	require(fd >= 0 && fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	fill(&p);
	if (profile_file_read(path, &p, &err) < 0)
		require(strlen(err.text) > 0);
	require(p.location_count == 3);
	for (size_t i = 0; i < p.location_count; i++)
		for (uint32_t k = 0; k < p.locations[i].count; k++)
			require(p.frames[p.locations[i].first + k].function < p.function_count);
	profile_release(&p);
	close(fd);
	return 0;
}
