/* Any bytes as a segment: the reader refuses them, or gives records whose every byte is there to be read, twice the
 * same. An input without the magic is taken for the records behind a good header. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/segments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

struct tally {
	uint64_t records, bytes, sum;
	int end;
};

static struct tally read_all(struct segment_reader *r)
{
	struct tally tally = {0};
	struct segment_record record;
	struct error err;
	const void *payload;

	while ((tally.end = segment_reader_next(r, &record, &payload, &err)) == 1) {
		const uint8_t *bytes = payload;

		require((uintptr_t)payload % 8 == 0);
		require(record.size <= SEGMENT_RECORD_MAX && record.used <= record.size - sizeof record);
		for (uint32_t i = 0; i < record.used; i++)
			tally.sum = tally.sum * 31 + bytes[i];
		tally.bytes += record.size;
		tally.records++;
	}
	require(tally.end == 0 || strlen(err.text) > 0);
	return tally;
}

static void check(struct segment_reader *r, size_t file_size)
{
	struct segment_facts facts;
	struct tally first = read_all(r), second;

	segment_reader_facts(r, &facts);
	require(first.bytes <= file_size);
	require(read_all(r).records == 0);
	segment_reader_rewind(r);
	second = read_all(r);
	require(first.records == second.records && first.bytes == second.bytes && first.sum == second.sum &&
		first.end == second.end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t header[SEGMENT_DATA_OFFSET];
	struct segment_header good = {.version = SEGMENT_VERSION, .kind = 1, .data_offset = sizeof header};
	struct segment_reader *r = NULL;
	struct error err;
	char path[64];
	int fd = memfd_create("segment", MFD_CLOEXEC);

	require(fd >= 0);
	if (size < 8 || memcmp(data, SEGMENT_MAGIC, 8) != 0) {
		memcpy(good.magic, SEGMENT_MAGIC, sizeof good.magic);
		good.committed = sizeof header + size;
		memcpy(header, &good, sizeof good);
		require(fs_write_all(fd, header, sizeof header) == 0);
	}
	require(fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (segment_reader_open(path, 0, &r, &err) == 0)
		check(r, (size_t)lseek(fd, 0, SEEK_END));
	else
		require(r == NULL && strlen(err.text) > 0);
	segment_reader_free(r);
	close(fd);
	return 0;
}
