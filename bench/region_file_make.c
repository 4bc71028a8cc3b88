/* Writes a recording of regions as libassay leaves it (wire/regions.h), fast: so many calls in so many threads, of a
 * program that is a loop with two regions inside one, and lengths that scatter as those of real ones do.
 *
 *   bench_region_file_make FOLDER CALLS THREADS
 *
 * Prints the bytes that it wrote per call. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/regions.h"
#include "wire/segment.h"

#define NONCE UINT64_C(0x0123456789abcdef)
#define PID 4242
#define BLOCK 65536u /* events that are written at a time */
#define TICKS_PER_NS 2.5

#define STACK_OFFSET UINT64_C(4096)
#define TOTALS_OFFSET (STACK_OFFSET + REGION_DEPTH_MAX * sizeof(struct region_slot))
#define BUCKETS_OFFSET (TOTALS_OFFSET + (REGION_ID_MAX + 1) * sizeof(struct region_total))
#define DATA_OFFSET (BUCKETS_OFFSET + (REGION_ID_MAX + 1) * (uint64_t)REGION_BUCKETS * 8)

static const char *const names[] = {"step", "assemble", "solve"};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void path_of(char *path, size_t size, const char *folder, const char *suffix)
{
	snprintf(path, size, "%s/" REGION_FILE_PREFIX "%d-%016" PRIx64 "%s", folder, PID, NONCE, suffix);
}

static void append(struct segment_writer *w, uint16_t type, const void *payload, size_t length)
{
	if (segment_append(w, type, 0, payload, length) != 0)
		die("table");
}

static void append_name(struct segment_writer *w, uint32_t id, const char *name)
{
	char payload[256] = {0};
	struct region_name head = {.id = id, .line = 10 * id};
	size_t length = sizeof head;

	memcpy(payload, &head, sizeof head);
	length += (size_t)snprintf(payload + length, sizeof payload - length, "%s", name) + 1;
	length += (size_t)snprintf(payload + length, sizeof payload - length, "model.c") + 1;
	append(w, REGION_RECORD_NAME, payload, length + 1);
}

static uint64_t ticks_of(int64_t ns)
{
	return (uint64_t)((double)ns * TICKS_PER_NS);
}

static void write_table(const char *folder, unsigned threads, int64_t length)
{
	struct region_process process = {.layout = REGION_LAYOUT_VERSION,
					 .clock = REGION_CLOCK_TSC,
					 .pid = PID,
					 .wall_ns = clock_wall_ns(),
					 .nonce = NONCE,
					 .mode = REGION_TRACE,
					 .boot_id = "made up"};
	struct region_rank rank = {.rank = 0, .size = 1, .source = 1};
	char payload[sizeof process + 2], path[4096];
	struct segment_writer w;

	path_of(path, sizeof path, folder, REGION_TABLE_SUFFIX);
	if (segment_create(&w, path, SEGMENT_KIND_REGIONS, 1 << 20) != 0)
		die(path);
	memset(payload, 0, sizeof payload);
	memcpy(payload, &process, sizeof process);
	append(&w, REGION_RECORD_PROCESS, payload, sizeof payload);
	append(&w, REGION_RECORD_RANK, &rank, sizeof rank);
	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
		append_name(&w, i + 1, names[i]);
	for (unsigned i = 0; i < threads; i++) {
		char born[sizeof(struct region_thread_born) + 1] = {0};
		struct region_thread_born head = {.index = i, .tid = (int32_t)(PID + i), .file = i};

		memcpy(born, &head, sizeof head);
		append(&w, REGION_RECORD_THREAD, born, sizeof born);
	}
	for (int64_t at = 0; at <= length; at += length / 8 + 1) {
		struct region_clock_pair pair = {.clock = ticks_of(at), .mono_ns = at, .bound_ns = 20};

		append(&w, REGION_RECORD_CLOCK, &pair, sizeof pair);
	}
	segment_close(&w);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Most calls take about as long as each other, and a few much longer. */
static uint64_t some_ticks(uint64_t *state, uint64_t about)
{
	uint64_t r = next_random(state), ticks = about + (r & 1023) % (about / 4 + 1);

	return (r >> 32 & 1023) == 0 ? ticks * (8 + (r >> 48 & 31)) : ticks;
}

struct maker {
	FILE *out;
	struct region_event *block;
	size_t used;
};

static void put(struct maker *m, struct region_event e)
{
	m->block[m->used++] = e;
	if (m->used == BLOCK) {
		if (fwrite(m->block, sizeof *m->block, m->used, m->out) != m->used)
			die("events");
		m->used = 0;
	}
}

/* A loop of steps: assemble, solve, and around them the step itself. Returns when it ended, in ticks. */
static uint64_t put_calls(struct maker *m, uint64_t calls, unsigned thread)
{
	uint64_t state = UINT64_C(88172645463325252) + thread, now = 1000, step = now;

	for (uint64_t i = 0; i < calls; i++) {
		uint32_t which = i % 3 == 2 ? 1 : (uint32_t)(i % 3) + 2;
		uint64_t start;

		now += 40 + (next_random(&state) & 15);
		if (i % 3 == 0)
			step = now - 25;
		start = which == 1 ? step : now;
		now += which == 1 ? 30 : some_ticks(&state, which == 2 ? 700 : 2500);
		put(m, (struct region_event){start, now, which, (uint16_t)(which != 1), 0, REGION_EVENT_CALL});
	}
	return now;
}

static void write_header(FILE *out, uint64_t events, unsigned thread, uint64_t last)
{
	uint64_t end = DATA_OFFSET + events * sizeof(struct region_event);
	struct segment_header h = {.magic = SEGMENT_MAGIC,
				   .version = SEGMENT_VERSION,
				   .kind = SEGMENT_KIND_CALLS,
				   .pid = PID,
				   .data_offset = (uint32_t)DATA_OFFSET,
				   .capacity = end,
				   .allocated = end,
				   .committed = end,
				   .closed = 1};
	struct region_thread t = {.layout = REGION_LAYOUT_VERSION,
				  .clock = REGION_CLOCK_TSC,
				  .stack_offset = STACK_OFFSET,
				  .totals_offset = TOTALS_OFFSET,
				  .buckets_offset = BUCKETS_OFFSET,
				  .thread = thread,
				  .last = last};

	rewind(out);
	if (fwrite(&h, sizeof h, 1, out) != 1 || fseek(out, REGION_THREAD_OFFSET, SEEK_SET) != 0 ||
	    fwrite(&t, sizeof t, 1, out) != 1)
		die("header");
}

static uint64_t write_thread(const char *folder, unsigned thread, uint64_t calls)
{
	char path[4096], suffix[32];
	struct maker m = {.block = calloc(BLOCK, sizeof *m.block)};
	uint64_t last;

	snprintf(suffix, sizeof suffix, ".%u", thread);
	path_of(path, sizeof path, folder, suffix);
	m.out = fopen(path, "wbx");
	if (!m.out || !m.block || fseek(m.out, (long)DATA_OFFSET, SEEK_SET) != 0)
		die(path);
	put(&m, (struct region_event){.start = thread, .end = PID + thread, .kind = REGION_EVENT_THREAD});
	last = put_calls(&m, calls, thread);
	if (fwrite(m.block, sizeof *m.block, m.used, m.out) != m.used)
		die("events");
	write_header(m.out, calls + 1, thread, last);
	if (fclose(m.out) != 0)
		die(path);
	free(m.block);
	return last;
}

static uint64_t bytes_of(const char *folder, unsigned threads)
{
	char path[4096], suffix[32];
	uint64_t bytes = 0;
	struct stat st;

	for (unsigned i = 0; i < threads; i++) {
		snprintf(suffix, sizeof suffix, ".%u", i);
		path_of(path, sizeof path, folder, suffix);
		if (stat(path, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512; /* the file is sparse */
	}
	return bytes;
}

int main(int argc, char **argv)
{
	uint64_t calls = argc == 4 ? strtoull(argv[2], NULL, 10) : 0, last = 0;
	unsigned threads = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;

	if (!calls || !threads) {
		fprintf(stderr, "usage: %s FOLDER CALLS THREADS\n", argv[0]);
		return 2;
	}
	for (unsigned i = 0; i < threads; i++) {
		uint64_t end = write_thread(argv[1], i, calls / threads + (i < calls % threads));

		last = end > last ? end : last;
	}
	write_table(argv[1], threads, (int64_t)((double)last / TICKS_PER_NS));
	printf("%.2f\n", (double)bytes_of(argv[1], threads) / (double)calls);
	return 0;
}
