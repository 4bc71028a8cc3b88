/* Any bytes as a file of regions, .spt or HDF5: refused with a sentence, or all its calls can be gone through, as many
 * as its parts say. Where the plug-in was not built, HDF5 is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/region_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

/* It lies two folders above the fuzz targets, and is looked for beside them. */
__attribute__((constructor)) static void find_plugin(void)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 32);

	require(length > 0);
	self[length] = '\0';
	strcpy(strrchr(self, '/'), "/assay-hdf5.so");
	require(symlink("../../assay-hdf5.so", self) == 0 || errno == EEXIST);
}

static int count_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	(void)worker, (void)err;
	require(block->n > 0 && block->columns[REGION_START] && block->columns[REGION_END]);
	*(uint64_t *)context += block->n;
	return 0;
}

static void look_at(struct region_file *f)
{
	const struct regions *r = region_file_regions(f);
	uint64_t wanted = 0, calls = 0;
	struct region_scan scan = {.columns = r->columns, .workers = 1, .block = count_block, .context = &calls};
	struct error err;

	for (size_t i = 0; i < r->part_count; i++) {
		require(r->parts[i].region < r->name_count);
		require(r->parts[i].first <= r->call_count && r->parts[i].count <= r->call_count - r->parts[i].first);
		require(i == 0 || r->parts[i].first >= r->parts[i - 1].first);
		wanted += r->parts[i].count;
	}
	if (region_file_scan(f, &scan, &err) < 0)
		require(strlen(err.text) > 0);
	else
		require(calls == wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct region_file *f = NULL;
	struct error err = {{0}};
	char path[64];
	int fd = memfd_create("regions", MFD_CLOEXEC);

	require(fd >= 0 && fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (region_file_open(path, &f, &err) < 0)
		require(strlen(err.text) > 0);
	else
		look_at(f);
	region_file_free(f);
	close(fd);
	return 0;
}
