#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "base/cleanup.h"
#include "scratch.h"
#include "store/region_clocks.h"
#include "store/region_merge.h"
#include "store/region_scatter.h"
#include "store/region_time.h"

#define MS INT64_C(1000000)

static void a_ramp_without_knots_changes_nothing(void **state)
{
	struct region_ramp r;

	(void)state;
	region_ramp_init(&r);
	assert_int_equal(region_ramp_y(&r, 12345), 12345);
	assert_true(region_ramp_y(&r, UINT64_MAX) > 0);
	region_ramp_release(&r);
}

static void time_is_linear_between_readings_and_beyond_them(void **state)
{
	struct region_ramp r;

	(void)state;
	region_ramp_init(&r);
	assert_int_equal(region_ramp_add(&r, 3000 * MS, 1500 * MS, NULL), 0); /* in any order */
	assert_int_equal(region_ramp_add(&r, 1000 * MS, 1000 * MS, NULL), 0);
	assert_int_equal(region_ramp_add(&r, 7000 * MS, 3500 * MS, NULL), 0);
	assert_int_equal(region_ramp_finish(&r, 10 * MS, 0.05, 10), 3);
	assert_int_equal(region_ramp_y(&r, 2000 * MS), 1250 * MS);
	assert_int_equal(region_ramp_y(&r, 5000 * MS), 2500 * MS);
	assert_int_equal(region_ramp_y(&r, 9000 * MS), 4500 * MS);
	assert_int_equal(region_ramp_y(&r, 600 * MS), 900 * MS);
	assert_int_equal(region_ramp_y(&r, 3000 * MS), 1500 * MS);
	region_ramp_release(&r);
}

static void time_never_runs_back(void **state)
{
	struct region_ramp r;
	int64_t last = INT64_MIN;

	(void)state;
	region_ramp_init(&r);
	for (uint64_t i = 0; i < 1000; i++) /* readings that err by up to 40 us, to and fro */
		region_ramp_add(&r, i * 2500000, (int64_t)(i * 1000000 + i * 7919 % 40000), NULL);
	region_ramp_finish(&r, 10 * MS, 0.05, 10);
	for (uint64_t x = 0; x < UINT64_C(2600000000); x += 9973) {
		int64_t y = region_ramp_y(&r, x);

		assert_true(y >= last);
		last = y;
	}
	region_ramp_release(&r);
}

static void readings_too_close_or_absurd_are_passed_over(void **state)
{
	struct region_ramp r;

	(void)state;
	region_ramp_init(&r);
	region_ramp_add(&r, 0, 0, NULL);
	region_ramp_add(&r, 1, 9 * MS, NULL);
	assert_int_equal(region_ramp_finish(&r, 10 * MS, 0.05, 10), 1);
	region_ramp_add(&r, 2, INT64_MAX, NULL);
	region_ramp_add(&r, 3, INT64_MIN, NULL);
	region_ramp_add(&r, UINT64_MAX, 20 * MS, NULL); /* no counter is that fast */
	assert_int_equal(region_ramp_finish(&r, 10 * MS, 0.05, 10), 1);
	region_ramp_release(&r);
}

static void rows_come_out_in_the_order_of_their_places(uint64_t rows, size_t lanes)
{
	CLEANUP(region_scatter_cleanup) struct region_scatter *s = NULL;
	uint64_t *next = calloc(lanes, sizeof *next), each = rows / lanes;
	struct scatter_row row;
	struct error err;

	assert_int_equal(region_scatter_new(scratch_path("out.h5"), &s, &err), 0);
	assert_int_equal(region_scatter_begin(s, each * lanes, &err), 0);
	assert_int_equal(region_scatter_lanes(s, lanes, &err), 0);
	for (size_t i = 0; i < lanes; i++)
		next[i] = (i + 1) * each;
	for (uint64_t k = 0; k < each; k++)
		for (size_t i = 0; i < lanes; i++) {
			row = (struct scatter_row){(int64_t)--next[i], (int64_t)i, (int64_t)k, -1};
			assert_int_equal(region_scatter_put(s, i, next[i], &row, &err), 0);
		}
	assert_int_equal(region_scatter_flush(s, &err), 0);
	for (uint64_t i = 0; i < each * lanes; i += 97) {
		assert_int_equal(region_scatter_read(s, i, 1, &row, &err), 0);
		assert_int_equal(row.start, i);
		assert_int_equal(row.end, i / each);
	}
	free(next);
}

static void few_rows_are_scattered_in_memory(void **state)
{
	(void)state;
	rows_come_out_in_the_order_of_their_places(1000, 7);
	assert_int_not_equal(access(scratch_path("out.h5"), F_OK), 0);
}

static void many_rows_are_scattered_in_an_unlinked_file(void **state)
{
	(void)state;
	rows_come_out_in_the_order_of_their_places(5000000, 3);
	rows_come_out_in_the_order_of_their_places(2200000, 65535);
	assert_int_equal(rmdir(scratch_dir), 0); /* nothing is left there */
	assert_int_equal(mkdir(scratch_dir, 0700), 0);
}

/* A process of a made-up job: its clock is CLOCK_MONOTONIC of its machine. */
static void add_process(struct region_job *j, const char *boot, int64_t mono, int64_t wall)
{
	struct region_log *l;

	j->logs = reallocarray(j->logs, j->count + 1, sizeof *j->logs);
	assert_non_null(j->logs);
	l = &j->logs[j->count++];
	*l = (struct region_log){.process = {.clock = REGION_CLOCK_MONOTONIC, .mono_ns = mono, .wall_ns = wall}};
	strcpy(l->process.boot_id, boot);
}

static void one_machine_has_one_clock_and_others_are_put_beside_it(void **state)
{
	struct region_offset offsets[] = {{1000 * MS, 50 * MS, 10}, {2000 * MS, 51 * MS, 10}};
	struct region_machines machines = {0};
	struct region_ramp none;
	struct region_clocks c[4] = {0};
	struct region_job j;
	struct error err;

	(void)state;
	region_job_init(&j);
	region_ramp_init(&none);
	add_process(&j, "a", 100 * MS, 5000 * MS);
	add_process(&j, "a", 200 * MS, 5101 * MS); /* the wall clock of one machine counts for nothing */
	add_process(&j, "b", 1000 * MS, 5000 * MS);
	add_process(&j, "c", 10 * MS, 6000 * MS);
	j.logs[2].offsets = offsets;
	j.logs[2].offset_count = 2;
	assert_int_equal(region_machines_find(&j, &j.logs[0], &machines, &err), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(region_clocks_make(&j.logs[i], &machines, &none, &c[i], &err), 0);
	assert_int_equal(region_clocks_at(&c[0], 700), 700);
	assert_int_equal(region_clocks_at(&c[1], 700), 700);
	assert_int_equal(region_clocks_at(&c[2], 1500 * MS), 1550 * MS + 500000);
	assert_int_equal(region_clocks_at(&c[2], 3000 * MS), 3051 * MS);
	assert_int_equal(region_clocks_at(&c[3], 10 * MS), 1100 * MS); /* 6 s of the day is 1.1 s of a */
	assert_false(c[0].by_wall || c[1].by_wall || c[2].by_wall);
	assert_true(c[3].by_wall);
	for (size_t i = 0; i < 4; i++)
		region_clocks_release(&c[i]);
	region_machines_release(&machines);
	free(j.logs);
}

static void a_counter_without_a_rate_takes_that_of_its_machine(void **state)
{
	struct region_clock_pair good[] = {{1000, 0, 1}, {UINT64_C(2500001000), 1000 * MS, 1}}, lone[] = {{5000, 7, 1}};
	struct region_machines machines = {0};
	struct region_clocks c = {0}, lost = {0};
	struct region_ramp none;
	struct region_job j;
	struct error err;

	(void)state;
	region_job_init(&j);
	region_ramp_init(&none);
	add_process(&j, "a", 0, 0);
	add_process(&j, "a", 0, 0);
	add_process(&j, "b", 0, 0);
	for (size_t i = 0; i < 3; i++)
		j.logs[i].process.clock = REGION_CLOCK_TSC;
	j.logs[0].pairs = good;
	j.logs[0].pair_count = 2;
	j.logs[1].pairs = j.logs[2].pairs = lone;
	j.logs[1].pair_count = j.logs[2].pair_count = 1;
	assert_int_equal(region_machines_find(&j, &j.logs[0], &machines, &err), 0);
	assert_int_equal(region_clocks_make(&j.logs[1], &machines, &none, &c, &err), 0);
	assert_true(c.usable && !c.uncertain);
	assert_int_equal(region_clocks_at(&c, 5000 + 2500), 7 + 1000);
	assert_int_equal(region_clocks_make(&j.logs[2], &machines, &none, &lost, &err), 0);
	assert_false(lost.usable);
	region_clocks_release(&c);
	region_clocks_release(&lost);
	region_machines_release(&machines);
	free(j.logs);
}

static void a_folder_without_recordings_gives_no_file(void **state)
{
	const char *folder = scratch_path("empty"), *out = scratch_path("out.h5");
	struct region_merge_options o = {.folders = &folder, .folder_count = 1, .out = out};
	struct region_merge_result result;
	struct error err;

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	region_merge_result_init(&result);
	assert_int_equal(region_merge(&o, &result, &err), 1);
	assert_int_not_equal(access(out, F_OK), 0);
	region_merge_result_release(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ramp_without_knots_changes_nothing),
		cmocka_unit_test(time_is_linear_between_readings_and_beyond_them),
		cmocka_unit_test(time_never_runs_back),
		cmocka_unit_test(readings_too_close_or_absurd_are_passed_over),
		cmocka_unit_test_setup_teardown(few_rows_are_scattered_in_memory, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(many_rows_are_scattered_in_an_unlinked_file, scratch_make,
						scratch_remove),
		cmocka_unit_test(one_machine_has_one_clock_and_others_are_put_beside_it),
		cmocka_unit_test(a_counter_without_a_rate_takes_that_of_its_machine),
		cmocka_unit_test_setup_teardown(a_folder_without_recordings_gives_no_file, scratch_make,
						scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
