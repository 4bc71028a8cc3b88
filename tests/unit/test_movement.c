/* What is told of bytes that moved, on made-up phases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/movement.h"
#include "made_up.h"

static void what_moved_is_told_gravest_first(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_LOAD);
	struct error err;

	(void)state;
	f->read_bytes = 3 * GIB;
	f->read_chars = 4 * GIB;
	f->file_peak = 0;
	f->machine_refault_bytes = 2 * GIB;
	f->psi_memory_some = 0.3;
	f->major_faults = 5000;
	add_disk(&r, 3 * GIB, 5);
	add_series(&r, "input.0.size", "file /data/model.gguf", NAN, 4 * GIB);
	add_series(&r, "input.0.cached", "file /data/model.gguf", NAN, 1 * GIB);
	r.series[r.series_count - 1].last = 4 * GIB;
	assert_int_equal(movement_judge(&r, &err), 0);
	assert_int_equal(r.movement_count, 5);
	assert_int_equal(r.movements[0].level, MOVEMENT_WARNING);
	assert_non_null(strstr(r.movements[0].text, "dropped from memory"));
	if (!strstr(r.movements[1].text, "25% of the 4.00 GiB"))
		fail_msg("%s", r.movements[1].text);
	assert_non_null(strstr(r.movements[2].text, "page faults"));
	assert_non_null(strstr(r.movements[3].text, "model.gguf (4.00 GiB): 25%"));
	assert_int_equal(r.movements[3].level, MOVEMENT_NOTE);
	assert_non_null(strstr(r.movements[4].text, "vda (a virtual disk)"));
	run_release(&r);
}

static void what_was_evicted_is_a_warning(void **state)
{
	struct run r;
	struct error err;

	(void)state;
	quiet(&r, GROUP_LOAD);
	add_series(&r, "input.0.size", "opened /data/model.gguf", NAN, 4 * GIB);
	add_series(&r, "input.0.cached", "opened /data/model.gguf", NAN, 4 * GIB);
	r.series[r.series_count - 1].last = 1 * GIB;
	assert_int_equal(movement_judge(&r, &err), 0);
	assert_int_equal(r.movement_count, 2);
	assert_non_null(strstr(r.movements[0].text, "evicted"));
	assert_non_null(strstr(r.movements[1].text, "when it was first seen open"));
	run_release(&r);
}

static void a_quiet_run_has_nothing_to_tell(void **state)
{
	struct run r;
	struct error err;

	(void)state;
	quiet(&r, GROUP_LOAD);
	assert_int_equal(movement_judge(&r, &err), 0);
	assert_int_equal(r.movement_count, 0);
	run_release(&r);
}

static void of_many_inputs_the_largest_are_told_and_the_rest_together(void **state)
{
	struct run r;
	struct error err;

	(void)state;
	quiet(&r, GROUP_LOAD);
	for (int i = 0; i < 10; i++) {
		char name[32], scope[64];

		snprintf(scope, sizeof scope, "file /models/part %d of it.safetensors", i);
		snprintf(name, sizeof name, "input.%d.size", i);
		add_series(&r, name, scope, NAN, (1 + i) * GIB);
		snprintf(name, sizeof name, "input.%d.cached", i);
		add_series(&r, name, scope, NAN, (1 + i) * GIB / 2);
	}
	assert_int_equal(movement_judge(&r, &err), 0);
	assert_int_equal(r.movement_count, 5);
	assert_non_null(strstr(r.movements[0].text, "part 9 of it.safetensors (10.0 GiB): 50%"));
	assert_non_null(strstr(r.movements[4].text, "6 more input files (21.0 GiB): 50%"));
	run_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_moved_is_told_gravest_first),
		cmocka_unit_test(what_was_evicted_is_a_warning),
		cmocka_unit_test(a_quiet_run_has_nothing_to_tell),
		cmocka_unit_test(of_many_inputs_the_largest_are_told_and_the_rest_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
