#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "scratch.h"

/* The file as it is compiled into the sampler library, which exports nothing of it. */
#include "preload/ring.c"

struct process process;

static uint32_t troubles;

int64_t process_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void process_trouble(uint32_t bit)
{
	troubles |= bit;
}

void tick_disarm(struct slot *s)
{
	(void)s;
}

static int make_ring(void **state)
{
	troubles = 0;
	process.pid = getpid();
	return scratch_make(state) == 0 && ring_open(scratch_dir, 199, 61) == 0 ? 0 : -1;
}

static int remove_ring(void **state)
{
	ring_forget();
	return scratch_remove(state);
}

/* Reads one record as the recorder does. Returns its size, or 0 where there is none. */
static uint32_t next(struct slot *s, uint16_t *ret_type, unsigned char *ret_fill)
{
	uint64_t tail = atomic_load(&s->shared.tail), head = atomic_load(&s->shared.head);
	const unsigned char *ring = (const unsigned char *)s + SAMPLER_RING_OFFSET;
	const struct sampler_record *record;

	if (tail == head)
		return 0;
	record = (const struct sampler_record *)(ring + tail % SAMPLER_RING_BYTES);
	assert_true(record->size >= 8 && record->size % 8 == 0);
	assert_true(tail % SAMPLER_RING_BYTES + record->size <= SAMPLER_RING_BYTES && tail + record->size <= head);
	*ret_type = record->type;
	*ret_fill = record->size > 8 ? *(const unsigned char *)(record + 1) : 0;
	for (uint32_t i = 8; record->type != SAMPLER_PAD && i < record->size; i++)
		assert_int_equal(((const unsigned char *)record)[i], *ret_fill);
	atomic_store(&s->shared.tail, tail + record->size);
	return record->size;
}

static bool put(struct slot *s, uint32_t size, unsigned char fill)
{
	struct sampler_record *record = ring_reserve(s, size, SAMPLER_SAMPLE);

	if (!record)
		return false;
	memset(record + 1, fill, size - sizeof *record);
	ring_commit(s, record);
	return true;
}

static void records_come_out_as_they_went_in_however_often_the_ring_wraps(void **state)
{
	struct slot *s = ring_take(1);
	uint64_t written = 0, read = 0;
	uint32_t random = 1;

	(void)state;
	assert_non_null(s);
	while (written < 50000) {
		unsigned char fill;
		uint16_t type;

		random = random * 1664525 + 1013904223;
		written += put(s, 16 + (random >> 16) % 1024 * 8, (unsigned char)written);
		for (uint32_t i = random >> 30; i > 0 && next(s, &type, &fill); i--)
			if (type != SAMPLER_PAD)
				assert_int_equal(fill, (unsigned char)read++);
	}
	assert_true(read > 40000);
	assert_true(atomic_load(&s->shared.head) > 100 * SAMPLER_RING_BYTES);
}

static void a_full_ring_takes_nothing_until_it_is_read(void **state)
{
	struct slot *s = ring_take(1);
	unsigned char fill;
	uint16_t type;

	(void)state;
	for (uint32_t i = 0; i < SAMPLER_RING_BYTES / 64; i++)
		assert_true(put(s, 64, 1));
	assert_false(put(s, 16, 2));
	assert_int_equal(next(s, &type, &fill), 64);
	assert_false(put(s, 72, 2));
	assert_true(put(s, 64, 2));
	assert_false(put(s, 16, 2));
}

static void what_a_reader_scribbles_does_no_harm(void **state)
{
	static const uint64_t tails[] = {1, 65, UINT64_MAX, UINT64_C(1) << 40, UINT64_MAX - SAMPLER_RING_BYTES};
	struct slot *s = ring_take(1);

	(void)state;
	assert_true(put(s, 64, 1));
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		atomic_store(&s->shared.tail, tails[i]);
		put(s, 4096, 1);
		assert_true(atomic_load(&s->shared.head) % 8 == 0);
	}
	assert_int_equal(((unsigned char *)s)[SAMPLER_SLOT_BYTES - 1], 0);
}

static void slots_are_given_out_lowest_first_and_the_file_grows(void **state)
{
	struct slot *slots[100];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		slots[i] = ring_take((int)i + 1);
		assert_non_null(slots[i]);
		assert_int_equal(slots[i]->index, i);
		assert_ptr_equal(ring_slot(i), slots[i]);
		assert_int_equal(atomic_load(&slots[i]->shared.state), SAMPLER_SLOT_TAKEN);
	}
	assert_int_equal(atomic_load(&ring_header->slots), 100);
	ring_give(slots[50]);
	ring_give(slots[7]);
	assert_int_equal(atomic_load(&slots[7]->shared.state), SAMPLER_SLOT_FREE);
	assert_ptr_equal(ring_take(1), slots[7]);
	assert_ptr_equal(ring_take(1), slots[50]);
	assert_int_equal(atomic_load(&ring_header->slots), 100);
	assert_null(ring_slot(ring_slots()));
	assert_int_equal(troubles, 0);
}

static void where_the_file_is_gone_threads_go_without_a_slot(void **state)
{
	int fd;

	(void)state;
	for (uint32_t i = 0; i < STEP; i++)
		assert_non_null(ring_take(1));
	assert_int_equal(rename(path, scratch_path("elsewhere")), 0);
	assert_null(ring_take(1));
	assert_int_equal(troubles, SAMPLER_NO_ROOM);
	/* Somebody else's file of that name is not touched. */
	assert_int_equal(link(scratch_path("elsewhere"), scratch_path("kept")), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && close(fd) == 0);
	assert_null(ring_take(1));
	assert_int_equal(rename(scratch_path("elsewhere"), path), 0);
	assert_non_null(ring_take(1));
}

static void slots_of_dead_threads_without_a_hook_come_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < STEP; i++) {
		struct slot *s = ring_take(INT32_MAX); /* no thread has that number */

		s->raw = i == STEP - 1;
	}
	assert_int_equal(ring_take(1)->index, STEP - 1);
	assert_int_equal(ring_take(1)->index, STEP);
}

static void a_folder_that_is_not_there_leaves_nothing(void **state)
{
	(void)state;
	ring_forget();
	assert_int_equal(ring_open(scratch_path("missing"), 199, 61), -ENOENT);
	assert_null(ring_header);
	assert_int_equal(ring_slots(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, make_ring, remove_ring)
		RING_TEST(records_come_out_as_they_went_in_however_often_the_ring_wraps),
		RING_TEST(a_full_ring_takes_nothing_until_it_is_read),
		RING_TEST(what_a_reader_scribbles_does_no_harm),
		RING_TEST(slots_are_given_out_lowest_first_and_the_file_grows),
		RING_TEST(where_the_file_is_gone_threads_go_without_a_slot),
		RING_TEST(slots_of_dead_threads_without_a_hook_come_back),
		RING_TEST(a_folder_that_is_not_there_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
