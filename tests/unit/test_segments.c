#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "scratch.h"
#include "store/segments.h"

#define MIB (UINT64_C(1) << 20)

/* Records whose content follows from their number, so that a reader can tell each from every other. */
static uint32_t length_of(uint64_t number)
{
	return 8 + (uint32_t)(number * 2654435761u % 300) + (number % 1000 == 999 ? 200000 : 0);
}

static void fill_payload(unsigned char *payload, uint64_t number)
{
	uint32_t length = length_of(number);

	memcpy(payload, &number, sizeof number);
	for (uint32_t i = sizeof number; i < length; i++)
		payload[i] = (unsigned char)(number + i);
}

static int append(struct segment_writer *w, uint64_t number)
{
	static unsigned char payload[300000];

	fill_payload(payload, number);
	return segment_append(w, (uint16_t)(1 + number % 9), (uint32_t)number, payload, length_of(number));
}

static void assert_is_record(const struct segment_record *record, const void *payload, uint64_t number)
{
	static unsigned char expected[300000];

	fill_payload(expected, number);
	assert_int_equal(record->type, 1 + number % 9);
	assert_int_equal(record->tid, (uint32_t)number);
	assert_int_equal(record->used, length_of(number));
	assert_int_equal((uintptr_t)payload % 8, 0);
	assert_memory_equal(payload, expected, record->used);
}

static struct segment_reader *open_reader(const char *path)
{
	struct segment_reader *r = NULL;
	struct error err = {""};

	if (segment_reader_open(path, 0, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

/* Reads to the end or to the first damaged record, checks that all are records 0, 1, 2, ..., and returns how many. */
static uint64_t read_all(struct segment_reader *r, int *ret_end, struct error *err)
{
	struct segment_record record;
	const void *payload;
	uint64_t count = 0;

	while ((*ret_end = segment_reader_next(r, &record, &payload, err)) == 1)
		assert_is_record(&record, payload, count++);
	return count;
}

static void write_segment(const char *path, uint64_t count)
{
	struct segment_writer w;

	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, 64 * MIB), 0);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(append(&w, i), 0);
	segment_close(&w);
}

/* Overwrites bytes of the file. */
static void patch(const char *path, off_t at, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, at), length);
	close(fd);
}

static void assert_refused(const char *path, uint32_t kind, const char *why)
{
	struct segment_reader *r = NULL;
	struct error err = {""};

	assert_int_equal(segment_reader_open(path, kind, &r, &err), -1);
	assert_null(r);
	if (!strstr(err.text, path) || !strstr(err.text, why))
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void what_was_written_is_read_back_twice(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_reader *r;
	struct segment_facts facts;
	struct error err;
	int end;

	(void)state;
	write_segment(path, 20000);
	r = open_reader(path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_all(r, &end, &err), 20000);
		assert_int_equal(end, 0);
		assert_int_equal(read_all(r, &end, &err), 0);
		segment_reader_rewind(r);
	}
	segment_reader_facts(r, &facts);
	assert_int_equal(facts.kind, SEGMENT_KIND_MONITOR);
	assert_int_equal(facts.pid, getpid());
	assert_true(facts.closed);
	assert_int_equal(facts.dropped, 0);
	assert_int_equal(facts.stopped, 0);
	segment_reader_free(r);
	segment_reader_free(NULL);
}

static void records_of_the_largest_size_are_read(void **state)
{
	const char *path = scratch_path("a.seg");
	size_t length = SEGMENT_RECORD_MAX - sizeof(struct segment_record);
	unsigned char *payload = malloc(length);
	struct segment_writer w;
	struct segment_reader *r;
	struct segment_record record;
	const void *got;
	struct error err;

	(void)state;
	assert_non_null(payload);
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, 64 * MIB), 0);
	for (int i = 0; i < 6; i++) {
		memset(payload, 'a' + i, length);
		assert_int_equal(segment_append(&w, 1, 0, payload, i % 2 ? 40 : length), 0);
	}
	segment_close(&w);
	r = open_reader(path);
	for (int i = 0; i < 6; i++) {
		memset(payload, 'a' + i, length);
		assert_int_equal(segment_reader_next(r, &record, &got, &err), 1);
		assert_int_equal(record.used, i % 2 ? 40 : length);
		assert_memory_equal(got, payload, record.used);
	}
	assert_int_equal(segment_reader_next(r, &record, &got, &err), 0);
	segment_reader_free(r);
	free(payload);
}

static void what_is_no_segment_is_refused_by_name(void **state)
{
	const char *path = scratch_path("a.seg");
	uint32_t number;

	(void)state;
	assert_refused(path, 0, "No such file or directory");
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_refused(path, 0, "not a file");
	assert_int_equal(unlink(path), 0);
	assert_refused(scratch_dir, 0, "not a file");
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	assert_refused(path, 0, "not a segment");
	assert_int_equal(unlink(path), 0);

	write_segment(path, 1);
	assert_refused(path, SEGMENT_KIND_OUTPUT, "of kind 1 where kind 2 is expected");
	number = 2;
	patch(path, offsetof(struct segment_header, version), &number, 4);
	assert_refused(path, 0, "of version 2; this program reads version 1");
	number = 0x01000000;
	patch(path, offsetof(struct segment_header, version), &number, 4);
	assert_refused(path, 0, "the other byte order");
	number = 1;
	patch(path, offsetof(struct segment_header, version), &number, 4);
	number = 4;
	patch(path, offsetof(struct segment_header, data_offset), &number, 4);
	assert_refused(path, 0, "cannot start at byte 4");
	patch(path, 0, "NOTASEG!", 8);
	assert_refused(path, 0, "not a segment");
}

static void a_file_cut_at_any_byte_gives_its_whole_records(void **state)
{
	const char *path = scratch_path("a.seg");
	struct stat st;
	struct error err;
	uint64_t before = 20;
	int end;

	(void)state;
	write_segment(path, 20);
	assert_int_equal(stat(path, &st), 0);
	for (off_t length = st.st_size - 1; length >= 0; length--) {
		struct segment_reader *r;
		struct segment_facts facts;
		uint64_t count;

		assert_int_equal(truncate(path, length), 0);
		if (length < (off_t)sizeof(struct segment_header)) {
			assert_refused(path, 0, "not a segment");
			continue;
		}
		r = open_reader(path);
		segment_reader_facts(r, &facts);
		assert_true(facts.committed <= (uint64_t)length || facts.committed == SEGMENT_DATA_OFFSET);
		count = read_all(r, &end, &err);
		assert_true(count == before || count == before - 1);
		if (end < 0) {
			assert_non_null(strstr(err.text, path));
			/* Nothing is read behind a damaged record. */
			assert_int_equal(read_all(r, &end, &err), 0);
			assert_int_equal(end, -1);
		}
		before = count;
		segment_reader_free(r);
	}
	assert_int_equal(before, 0);
}

static void sizes_that_cannot_be_end_the_reading(void **state)
{
	static const struct {
		uint32_t size, used;
		const char *says;
	} cases[] = {
		{0, 0, "a record of 0 bytes cannot be"},
		{8, 0, "a record of 8 bytes cannot be"},
		{20, 4, "a record of 20 bytes cannot be"},
		{24, 9, "9 bytes in a record of 24 bytes"},
		{24, UINT32_MAX, "bytes in a record of 24 bytes"},
		{SEGMENT_RECORD_MAX, 8, "cut short"},
		{SEGMENT_RECORD_MAX + 8, 8, "cannot be"},
		{UINT32_MAX - 7, 8, "cannot be"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *path = scratch_path("a.seg");
		struct segment_record record = {.size = cases[i].size, .used = cases[i].used};
		uint64_t offset = SEGMENT_DATA_OFFSET;
		struct segment_reader *r;
		struct error err;
		int end;

		write_segment(path, 5);
		for (uint64_t number = 0; number < 3; number++)
			offset += sizeof record + (length_of(number) + 7) / 8 * 8;
		patch(path, (off_t)offset, &record, sizeof record);
		r = open_reader(path);
		assert_int_equal(read_all(r, &end, &err), 3);
		assert_int_equal(end, -1);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		segment_reader_free(r);
		assert_int_equal(unlink(path), 0);
	}
}

static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_reader *r;
	struct error err;
	int end;

	(void)state;
	write_segment(path, 20000);
	r = open_reader(path);
	assert_int_equal(truncate(path, (off_t)MIB), 0);
	assert_true(read_all(r, &end, &err) > 0);
	assert_int_equal(end, -1);
	assert_non_null(strstr(err.text, "became shorter while it was read"));
	segment_reader_free(r);
}

static void why_a_writer_stopped_is_known(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	struct segment_reader *r;
	struct segment_facts facts;
	uint64_t kept = 0;
	struct error err;
	int end;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_OUTPUT, 64 << 10), 0);
	while (append(&w, kept) == 0)
		kept++;
	r = open_reader(path);
	segment_reader_facts(r, &facts);
	assert_int_equal(facts.stopped, ENOSPC);
	assert_int_equal(facts.dropped, 1);
	assert_false(facts.closed);
	assert_int_equal(read_all(r, &end, &err), kept);
	assert_int_equal(end, 0);
	segment_reader_free(r);
	segment_close(&w);
}

/* A writer tells its parent, through shared memory, how far it is for sure. */
static void write_until_killed(const char *path, _Atomic uint64_t *committed)
{
	struct segment_writer w;

	if (segment_create(&w, path, SEGMENT_KIND_MONITOR, 1024 * MIB) < 0)
		_exit(1);
	atomic_store(committed, 1);
	for (uint64_t i = 0; append(&w, i) == 0; i++) {
		atomic_store(committed, i + 2);
		if (i % 5000 == 0)
			segment_trim(&w);
	}
	_exit(2);
}

static void a_writer_that_was_killed_leaves_every_committed_record(void **state)
{
	_Atomic uint64_t *committed =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(committed != MAP_FAILED);
	srandom(1);
	for (int round = 0; round < 40; round++) {
		struct timespec wait = {.tv_nsec = random() % 8000000};
		const char *path = scratch_path("a.seg");
		struct segment_reader *r;
		struct segment_facts facts;
		uint64_t known, count;
		struct error err;
		int status, end;
		pid_t pid;

		atomic_store(committed, 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			write_until_killed(path, committed);
		while (atomic_load(committed) == 0)
			assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		nanosleep(&wait, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		known = atomic_load(committed) - 1;
		r = open_reader(path);
		segment_reader_facts(r, &facts);
		assert_false(facts.closed);
		count = read_all(r, &end, &err);
		assert_int_equal(end, 0);
		/* The one that was committed, but not told yet. */
		assert_true(count == known || count == known + 1);
		segment_reader_free(r);
		assert_int_equal(unlink(path), 0);
	}
	munmap(committed, 4096);
}

static struct segment_writer live;
static _Atomic bool enough;

static void *write_on(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; !atomic_load(&enough) && append(&live, i) == 0; i++)
		if (i % 1000 == 0)
			segment_trim(&live);
	return NULL;
}

static void reading_while_it_is_written_gives_whole_records(void **state)
{
	const char *path = scratch_path("a.seg");
	uint64_t before = 0;
	pthread_t writer;

	(void)state;
	atomic_store(&enough, false);
	assert_int_equal(segment_create(&live, path, SEGMENT_KIND_MONITOR, 64 * MIB), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
	for (int i = 0; i < 20 || before < 50000; i++) {
		struct segment_reader *r = open_reader(path);
		struct error err = {""};
		uint64_t count;
		int end;

		count = read_all(r, &end, &err);
		if (end != 0)
			fail_msg("%s", err.text);
		assert_true(count >= before);
		before = count;
		segment_reader_free(r);
	}
	atomic_store(&enough, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
	segment_close(&live);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read_back_twice),
		TEST(records_of_the_largest_size_are_read),
		TEST(what_is_no_segment_is_refused_by_name),
		TEST(a_file_cut_at_any_byte_gives_its_whole_records),
		TEST(sizes_that_cannot_be_end_the_reading),
		TEST(a_file_that_shrinks_while_it_is_read_is_an_error),
		TEST(why_a_writer_stopped_is_known),
		TEST(a_writer_that_was_killed_leaves_every_committed_record),
		TEST(reading_while_it_is_written_gives_whole_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
