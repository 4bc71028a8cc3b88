/* The table of the process: a segment of few and small records. Its writer is kept outside the memory that a fork
 * wipes, so that a child can let go of its parent's. Guarded by the recording's lock. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/recording.h"
#include "wire/records.h"

#define CAPACITY (UINT64_C(256) << 20) /* of a sparse file: 65,535 names of 1,000 bytes and what else there is */
#define CAPACITY_LITTLE (UINT64_C(4) << 20) /* where the address space is limited: the program needs it more */

static struct segment_writer table = {.fd = -1};

int table_create(struct recording *r)
{
	uint64_t capacity = CAPACITY;
	struct rlimit limit;
	char path[PATH_MAX];
	int failed;

	segment_abandon(&table);
	failed = recording_path(r->nonce, path, REGION_TABLE_SUFFIX);
	if (failed)
		return failed;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		capacity = CAPACITY_LITTLE;
	return -segment_create(&table, path, SEGMENT_KIND_REGIONS, capacity);
}

/* The last quarter is kept for names, without which calls are of nothing, and the last half for names and threads: a
 * program may set metadata or flush in a loop. */
static bool has_room_for(uint16_t type)
{
	uint64_t quarter = table.capacity / 4;

	switch (type) {
	case REGION_RECORD_NAME:
	case WIRE_END:
		return true;
	case REGION_RECORD_THREAD:
	case REGION_RECORD_THREAD_END:
		return table.committed < 3 * quarter;
	default:
		return table.committed < 2 * quarter;
	}
}

int table_append(uint16_t type, const void *fixed, size_t length, const char *const *texts, size_t text_count)
{
	size_t size = length;
	char *at;

	for (size_t i = 0; i < text_count; i++)
		size += strlen(texts[i]) + 1;
	at = has_room_for(type) ? segment_reserve(&table, type, 0, size) : NULL;
	if (!at)
		return -1;
	if (length)
		memcpy(at, fixed, length);
	at += length;
	for (size_t i = 0; i < text_count; i++) {
		size_t text = strlen(texts[i]) + 1;

		memcpy(at, texts[i], text);
		at += text;
	}
	segment_commit(&table);
	return 0;
}

void table_clock(void)
{
	struct region_clock_pair pair = clock_pair(settings.tsc);

	table_append(REGION_RECORD_CLOCK, &pair, sizeof pair, NULL, 0);
}

void table_rank(int rank, int size, uint32_t source)
{
	struct region_rank record = {rank, size, source, 0};

	table_append(REGION_RECORD_RANK, &record, sizeof record, NULL, 0);
}

int table_flush(void)
{
	return table.header && fdatasync(table.fd) < 0 ? errno : 0;
}

void table_close(void)
{
	struct wire_end end = {monotonic_ns()};

	table_append(WIRE_END, &end, sizeof end, NULL, 0);
	segment_close(&table);
}
