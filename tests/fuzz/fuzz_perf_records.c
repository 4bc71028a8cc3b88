/* Any bytes as what a perf ring holds: each record is refused, or gives nothing but what lies within it. The first byte
 * chooses the layout. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/perf_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void within(const void *at, size_t bytes, const void *record, size_t size)
{
	const uint8_t *from = at, *start = record;

	require(bytes == 0 || (from >= start && bytes <= size && (size_t)(from - start) <= size - bytes));
}

static void check(const struct perf_record *r, const struct perf_layout *layout, const void *record, size_t size)
{
	const struct perf_sample *s = &r->sample;

	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		within(s->chain, s->chain_count * 8, record, size);
		if (s->registers)
			within(s->registers, layout->registers * 8, record, size);
		within(s->stack, s->stack_size, record, size);
		break;
	case PERF_RECORD_MMAP2:
		within(r->mapping.path, strlen(r->mapping.path) + 1, record, size);
		require(r->mapping.build_id_length <= sizeof r->mapping.build_id);
		break;
	case PERF_RECORD_COMM:
		within(r->comm.name, strlen(r->comm.name) + 1, record, size);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct perf_layout layouts[] = {
		{PERF_FIELDS_ALWAYS | PERF_FIELDS_STACK, 17},
		{PERF_FIELDS_ALWAYS | PERF_FIELDS_STACK, 1},
		{PERF_FIELDS_ALWAYS, 0},
	};
	const struct perf_layout *layout = &layouts[size ? data[0] % 3 : 0];
	size_t at = 1;

	while (at + sizeof(struct perf_event_header) <= size) {
		struct perf_event_header header;
		struct perf_record record;
		uint64_t *exact;

		memcpy(&header, data + at, sizeof header);
		if (header.size < sizeof header || header.size > size - at)
			break;
		exact = malloc(header.size); /* aligned, and of the exact size */
		require(exact != NULL);
		memcpy(exact, data + at, header.size);
		if (perf_record_decode(exact, header.size, layout, &record))
			check(&record, layout, exact, header.size);
		free(exact);
		at += header.size;
	}
	return 0;
}
