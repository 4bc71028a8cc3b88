/* Any bytes as the records of a monitor segment: a timeline file is made of what is good in them, whatever they are.
 * Where the plug-in is missing there is nothing to be tested. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/segments.h"
#include "store/timeline_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

/* The plug-in lies two folders above the fuzzers. */
static int find_plugin(void)
{
	char self[4096], version[64];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 32);

	require(length > 0);
	self[length] = '\0';
	strcpy(strrchr(self, '/'), "/assay-hdf5.so");
	require(symlink("../../assay-hdf5.so", self) == 0 || errno == EEXIST);
	return timeline_file_available(version, sizeof version, NULL) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t header[SEGMENT_DATA_OFFSET];
	static int have_plugin = -1;
	struct segment_header good = {.version = SEGMENT_VERSION, .kind = 1, .data_offset = sizeof header};
	struct error err = {""};
	char path[64], out[64];
	int fd, result;

	if (have_plugin < 0)
		have_plugin = find_plugin();
	if (!have_plugin)
		return 0;
	fd = memfd_create("segment", MFD_CLOEXEC);
	require(fd >= 0);
	memcpy(good.magic, SEGMENT_MAGIC, sizeof good.magic);
	good.committed = sizeof header + size;
	memcpy(header, &good, sizeof good);
	require(fs_write_all(fd, header, sizeof header) == 0 && fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	snprintf(out, sizeof out, "/tmp/assay-fuzz-%ld.h5", (long)getpid());
	result = timeline_file_build(path, out, 5, 6, NULL, &err);
	require((result == 0 || result == 1) && (result == 0) == (err.text[0] == '\0'));
	require(unlink(out) == 0);
	close(fd);
	return 0;
}
