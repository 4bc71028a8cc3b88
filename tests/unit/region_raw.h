/* Reads what the library left in a folder, straight by wire/regions.h, for the library's own tests. Bounds are checked
 * by asserts: a broken file fails the test. Include it after cmocka.h and scratch.h. */
#ifndef ASSAY_TESTS_REGION_RAW_H
#define ASSAY_TESTS_REGION_RAW_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "wire/records.h"
#include "wire/regions.h"
#include "wire/segment.h"

#define RAW_NAMES 1024

struct raw_call {
	struct region_event event;
	const char *name;
	uint32_t thread, process;
};

struct raw_total {
	const char *name;
	uint64_t calls, timed, total, exclusive, shortest, longest, dropped, in_buckets;
};

static struct {
	struct raw_call *calls;
	size_t count, room;
	struct raw_total totals[RAW_NAMES];
	size_t total_count;
	uint64_t troubles[REGION_TROUBLES];
	uint64_t records[64]; /* of tables, by type */
	uint64_t clock_events, dropped;
	uint32_t processes, files, closed;
	struct region_process process; /* the last one that was read */
	struct region_rank rank;
	char metadata[65536]; /* "key=value\n" */
	char names[16][RAW_NAMES][80]; /* by process, id */
} raw;

static inline const void *raw_map(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return at;
}

static inline void raw_record(const struct segment_record *record, const char *payload)
{
	const struct region_name *name = (const void *)payload;

	assert_true(record->type < 64);
	raw.records[record->type]++;
	if (record->type == REGION_RECORD_PROCESS) {
		raw.process = *(const struct region_process *)(const void *)payload;
	} else if (record->type == REGION_RECORD_RANK) {
		raw.rank = *(const struct region_rank *)(const void *)payload;
	} else if (record->type == REGION_RECORD_METADATA) {
		size_t used = strlen(raw.metadata);

		snprintf(raw.metadata + used, sizeof raw.metadata - used, "%s=%s\n", payload,
			 payload + strlen(payload) + 1);
	} else if (record->type == REGION_RECORD_NAME) {
		assert_true(name->id > 0);
		if (name->id < RAW_NAMES)
			snprintf(raw.names[raw.processes % 16][name->id], 80, "%s", (const char *)(name + 1));
	}
}

static inline void raw_table(const char *path)
{
	size_t size;
	const char *start = raw_map(path, &size);
	const struct segment_header *h = (const void *)start;
	uint64_t end = atomic_load_explicit(&h->committed, memory_order_acquire);

	assert_memory_equal(h->magic, SEGMENT_MAGIC, 8);
	assert_true(h->kind == SEGMENT_KIND_REGIONS && end <= size);
	for (uint64_t at = h->data_offset; at < end;) {
		const struct segment_record *record = (const void *)(start + at);

		assert_true(record->size >= sizeof *record && at + record->size <= end);
		raw_record(record, (const char *)(record + 1));
		at += record->size;
	}
	munmap((void *)(uintptr_t)start, size);
}

static inline struct raw_total *raw_total_of(const char *name)
{
	for (size_t i = 0; i < raw.total_count; i++)
		if (strcmp(raw.totals[i].name, name) == 0)
			return &raw.totals[i];
	assert_true(raw.total_count < RAW_NAMES);
	raw.totals[raw.total_count] = (struct raw_total){.name = name};
	return &raw.totals[raw.total_count++];
}

static inline void raw_totals(const char *start, size_t size, const struct region_thread *thread)
{
	const struct region_total *totals = (const void *)(start + thread->totals_offset);

	for (uint32_t id = 1; id < RAW_NAMES && thread->totals_offset + (id + 1) * sizeof *totals <= size; id++) {
		const uint64_t *buckets =
			(const void *)(start + thread->buckets_offset + id * REGION_BUCKETS * sizeof(uint64_t));
		struct raw_total *total;

		if (totals[id].calls == 0 && totals[id].dropped == 0)
			continue;
		total = raw_total_of(raw.names[raw.processes % 16][id]);
		total->calls += totals[id].calls;
		total->timed += totals[id].timed;
		total->total += totals[id].total;
		total->exclusive += totals[id].exclusive;
		total->shortest = totals[id].shortest;
		total->longest = totals[id].longest;
		total->dropped += totals[id].dropped;
		for (size_t i = 0; i < REGION_BUCKETS; i++)
			total->in_buckets += buckets[i];
	}
}

static inline void raw_add(const struct region_event *event, uint32_t thread)
{
	if (raw.count == raw.room) {
		raw.room = raw.room ? 2 * raw.room : 1024;
		raw.calls = reallocarray(raw.calls, raw.room, sizeof *raw.calls);
		assert_non_null(raw.calls);
	}
	assert_true(event->region > 0 && event->region <= REGION_ID_MAX);
	raw.calls[raw.count++] = (struct raw_call){
		*event, event->region < RAW_NAMES ? raw.names[raw.processes % 16][event->region] : "(beyond)", thread,
		raw.processes};
}

static inline void raw_thread(const char *path)
{
	size_t size;
	const char *start = raw_map(path, &size);
	const struct segment_header *h = (const void *)start;
	const struct region_thread *thread = (const void *)(start + REGION_THREAD_OFFSET);
	uint64_t end = atomic_load_explicit(&h->committed, memory_order_acquire);
	uint32_t index = UINT32_MAX;

	assert_memory_equal(h->magic, SEGMENT_MAGIC, 8);
	assert_true(h->kind == SEGMENT_KIND_CALLS && end <= size && (end - h->data_offset) % 24 == 0);
	for (uint64_t at = h->data_offset; at < end; at += 24) {
		const struct region_event *event = (const void *)(start + at);

		if (event->kind == REGION_EVENT_THREAD)
			index = (uint32_t)event->start;
		else if (event->kind == REGION_EVENT_CLOCK)
			raw.clock_events++;
		else if (event->region) /* 0: reserved, and never filled */
			raw_add(event, index);
		assert_true(index != UINT32_MAX);
	}
	for (size_t i = 0; i < REGION_TROUBLES; i++)
		raw.troubles[i] += thread->troubles[i];
	raw_totals(start, size, thread);
	raw.dropped += h->dropped;
	raw.closed += h->closed;
	raw.files++;
	munmap((void *)(uintptr_t)start, size);
}

/* All of a folder, in place of what was read before. */
static inline void raw_read(const char *folder)
{
	struct raw_call *calls = raw.calls;
	size_t room = raw.room;
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, alphasort);

	memset(&raw, 0, sizeof raw);
	raw.calls = calls;
	raw.room = room;
	assert_true(count >= 0);
	for (int i = 0; i < count; i++) {
		char *suffix = strrchr(entries[i]->d_name, '.'), path[1024];

		if (strncmp(entries[i]->d_name, REGION_FILE_PREFIX, 8) != 0 ||
		    !suffix || strcmp(suffix, REGION_TABLE_SUFFIX) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		raw_table(path);
		for (int j = 0; j < count; j++) {
			size_t length = (size_t)(suffix - entries[i]->d_name) + 1;

			snprintf(path, sizeof path, "%s/%s", folder, entries[j]->d_name);
			if (j != i && strncmp(entries[i]->d_name, entries[j]->d_name, length) == 0)
				raw_thread(path);
		}
		raw.processes++;
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
}

static inline size_t raw_calls_of(const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < raw.count; i++)
		count += strcmp(raw.calls[i].name, name) == 0;
	return count;
}

/* The first one of that name. */
static inline const struct region_event *raw_call(const char *name)
{
	for (size_t i = 0; i < raw.count; i++)
		if (strcmp(raw.calls[i].name, name) == 0)
			return &raw.calls[i].event;
	fail_msg("no call of %s", name);
	return NULL;
}

static inline uint64_t raw_trouble_sum(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < REGION_TROUBLES; i++)
		sum += raw.troubles[i];
	return sum;
}

/* Runs it in a process of its own, which records into the test's folder; returns how that ended, as of wait(2). */
static inline int raw_run_for(void (*program)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* cmocka's handlers would have the child go on with the next test. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		setenv("ASSAY_DIR", scratch_dir, 1);
		program();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* The same, to its end; then reads. */
static inline void raw_run(void (*program)(void))
{
	assert_int_equal(raw_run_for(program), 0);
	raw_read(scratch_dir);
}

#endif
