/* Any bytes as a recording of regions: it is refused, or merged, and both without a crash, a hang or memory that grows
 * with what it claims. The first two bytes say how long the table is, the rest is a file of calls. Without the magic
 * each of them is laid out behind a good header (of calls: thread's part, stack, sums, then events). */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "store/region_merge.h"
#include "wire/regions.h"
#include "wire/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "regions-1-0000000000000001"
#define STACK_BYTES 96u
#define SUMS_BYTES 256u
#define AREA 4096u
#define DATA_OFFSET (4 * AREA)

static char folder[] = "/tmp/assay-fuzz-regions-XXXXXX";
static char table_path[96], calls_path[96], out_path[96];

static void require(int condition)
{
	if (!condition)
		abort();
}

static void remove_folder(void)
{
	unlink(table_path);
	unlink(calls_path);
	unlink(out_path);
	rmdir(folder);
}

/* The plug-in lies beside the program in a build folder, and two folders above the fuzz targets. Without it nothing is
 * written, and so nothing merged. */
static void find_plugin(void)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 32);

	require(length > 0);
	self[length] = 0;
	strcpy(strrchr(self, '/'), "/assay-hdf5.so");
	require(symlink("../../assay-hdf5.so", self) == 0 || errno == EEXIST);
}

static void make_folder(void)
{
	find_plugin();
	require(mkdtemp(folder) != NULL);
	snprintf(table_path, sizeof table_path, "%s/" NAME ".table", folder);
	snprintf(calls_path, sizeof calls_path, "%s/" NAME ".0", folder);
	snprintf(out_path, sizeof out_path, "%s/out.h5", folder);
	atexit(remove_folder);
}

static void put_header(struct buf *b, uint32_t kind, uint32_t data_offset, uint64_t committed)
{
	struct segment_header h = {.version = SEGMENT_VERSION, .kind = kind, .data_offset = data_offset,
				   .committed = committed};
	static const char zeros[AREA];

	memcpy(h.magic, SEGMENT_MAGIC, sizeof h.magic);
	buf_append(b, &h, sizeof h);
	buf_append(b, zeros, AREA - sizeof h);
}

/* A process' first record, then what came. */
static void write_table(const uint8_t *data, size_t size)
{
	struct segment_record record = {.type = REGION_RECORD_PROCESS};
	struct region_process p = {.layout = REGION_LAYOUT_VERSION, .clock = REGION_CLOCK_MONOTONIC};
	struct buf b;

	buf_init(&b);
	if (size < 8 || memcmp(data, SEGMENT_MAGIC, 8) != 0) {
		p.clock += size & 1;
		record.used = sizeof p;
		record.size = (uint32_t)((sizeof record + sizeof p + 7) / 8 * 8);
		put_header(&b, SEGMENT_KIND_REGIONS, AREA, UINT64_MAX);
		buf_append(&b, &record, sizeof record);
		buf_append(&b, &p, record.size - sizeof record);
	}
	buf_append(&b, data, size);
	require(!b.failed && fs_write_file(table_path, b.text, b.length, NULL) == 0);
	buf_release(&b);
}

static void put_area(struct buf *b, size_t bytes, const uint8_t **data, size_t *size)
{
	static const char zeros[AREA];
	size_t length = *size < bytes ? *size : bytes;

	buf_append(b, *data, length);
	buf_append(b, zeros, AREA - length);
	*data += length;
	*size -= length;
}

static void write_calls(const uint8_t *data, size_t size)
{
	struct region_thread t = {.layout = REGION_LAYOUT_VERSION,
				  .clock = REGION_CLOCK_MONOTONIC,
				  .stack_offset = AREA,
				  .totals_offset = (uint64_t)2 * AREA,
				  .buckets_offset = (uint64_t)3 * AREA};
	struct buf b;

	buf_init(&b);
	if (size < 8 || memcmp(data, SEGMENT_MAGIC, 8) != 0) {
		t.clock += size & 1;
		t.depth = size ? data[0] & 7 : 0;
		put_header(&b, SEGMENT_KIND_CALLS, DATA_OFFSET, UINT64_MAX);
		memcpy(b.text + REGION_THREAD_OFFSET, &t, sizeof t);
		put_area(&b, STACK_BYTES, &data, &size);
		put_area(&b, SUMS_BYTES, &data, &size);
		put_area(&b, 0, &data, &size);
	}
	buf_append(&b, data, size);
	require(!b.failed && fs_write_file(calls_path, b.text, b.length, NULL) == 0);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *folders[] = {folder};
	struct region_merge_options o = {.folders = folders, .folder_count = 1, .out = out_path};
	struct region_merge_result result;
	struct error err;
	size_t table;
	int got;

	if (!*out_path)
		make_folder();
	if (size < 2)
		return 0;
	table = (size_t)data[0] | (size_t)data[1] << 8;
	if (table > size - 2)
		table = size - 2;
	write_table(data + 2, table);
	write_calls(data + 2 + table, size - 2 - table);
	region_merge_result_init(&result);
	got = region_merge(&o, &result, &err);
	require(got == 0 || got == 1 || strlen(err.text) > 0);
	region_merge_result_release(&result);
	return 0;
}
