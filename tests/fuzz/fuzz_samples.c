/* Any bytes as the records of a samples segment: the reader refuses them, or gives a profile whose every number leads
 * somewhere, which can be stored with names and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/profile_file.h"
#include "store/samples.h"
#include "wire/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct profile *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		require(p->threads[i].image < p->image_count);
	for (size_t i = 1; i < p->node_count; i++)
		require(p->nodes[i].parent < i && p->nodes[i].location < p->location_count);
	for (size_t i = 0; i < p->location_count; i++)
		require(p->locations[i].module < p->module_count);
	for (size_t i = 0; i < p->sample_count; i++)
		require(p->samples[i].thread < p->thread_count && p->samples[i].node < p->node_count);
	require(!p->damaged || strlen(p->trouble) > 0);
}

/* Each place is given a name, and found again. */
static void check_names(struct profile *p, struct profile *again)
{
	/* No /proc/self/fd: a result is never written through a link. */
	char path[] = "/tmp/assay-fuzz-names-XXXXXX";
	int fd = mkstemp(path);
	struct error err;

	require(fd >= 0);
	close(fd);
	for (size_t i = 0; i < p->location_count; i++) {
		struct profile_frame frame = {0};

		require(profile_add_function(p, p->locations[i].module, true, p->modules[p->locations[i].module].path,
					     NULL, 1, &frame.function, &err) >= 0);
		require(profile_set_frames(p, (uint32_t)i, &frame, 1, &err) >= 0);
	}
	require(profile_file_write(path, p, &err) == 0);
	require(profile_file_read(path, again, &err) == 0);
	for (size_t i = 0; i < again->location_count; i++)
		require(again->locations[i].count == 1);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t header[SEGMENT_DATA_OFFSET];
	struct segment_header good = {.version = SEGMENT_VERSION, .kind = SEGMENT_KIND_SAMPLES};
	struct profile first, second;
	struct error err;
	char path[64];
	int fd = memfd_create("segment", MFD_CLOEXEC);

	require(fd >= 0);
	memcpy(good.magic, SEGMENT_MAGIC, sizeof good.magic);
	good.data_offset = sizeof header;
	good.committed = sizeof header + size;
	memcpy(header, &good, sizeof good);
	require(fs_write_all(fd, header, sizeof header) == 0 && fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	profile_init(&first);
	profile_init(&second);
	if (samples_read(path, &first, &err) == 0) {
		check(&first);
		require(samples_read(path, &second, &err) == 0);
		require(first.sample_count == second.sample_count && first.node_count == second.node_count);
		check_names(&first, &second);
	} else {
		require(strlen(err.text) > 0);
	}
	profile_release(&first);
	profile_release(&second);
	close(fd);
	return 0;
}
