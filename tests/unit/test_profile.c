#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "made_profile.h"

static void a_place_is_there_once_and_a_stack_shares_what_it_can(void **state)
{
	struct profile p;

	(void)state;
	made_profile(&p, 1);
	made_samples(&p, 0, 0, "main;work;leaf", 1, 1);
	made_samples(&p, 5, 1, "main;work", 1, 1);
	assert_int_equal(p.location_count, 3);
	assert_int_equal(p.function_count, 3);
	assert_int_equal(p.nodes[0].location, PROFILE_NONE);
	for (size_t i = 1; i < p.node_count; i++)
		assert_true(p.nodes[i].parent < i);
	profile_release(&p);
}

static void samples_come_in_the_order_of_time_after_sorting_and_places_can_still_be_added(void **state)
{
	struct profile p;
	struct error err;

	(void)state;
	made_profile(&p, 1);
	made_samples(&p, 50, 0, "main", 3, 1);
	made_samples(&p, 10, 1, "main", 2, 1);
	made_samples(&p, 50, 1, "main", 1, 1);
	assert_int_equal(profile_sort(&p, &err), 0);
	for (size_t i = 1; i < p.sample_count; i++)
		assert_true(p.samples[i - 1].t < p.samples[i].t ||
			    (p.samples[i - 1].t == p.samples[i].t && p.samples[i - 1].thread < p.samples[i].thread));
	assert_int_equal(p.location_count, 1);
	made_samples(&p, 60, 0, "main;late", 1, 1);
	assert_int_equal(p.location_count, 2);
	assert_int_equal(p.function_count, 2);
	profile_release(&p);
}

static void a_module_is_called_by_its_file_or_its_kind(void **state)
{
	static const struct {
		enum profile_module_kind kind;
		const char *path, *name;
	} known[] = {
		{PROFILE_FILE, "/usr/lib/libc.so.6", "libc.so.6"},
		{PROFILE_FILE, "/tmp/prog (deleted)", "prog"},
		{PROFILE_FILE, "prog", "prog"},
		{PROFILE_FILE, "/odd/", "/odd/"},
		{PROFILE_FILE, "", "[unknown]"},
		{PROFILE_VDSO, "linux-vdso.so.1", "[vdso]"},
		{PROFILE_ANON, "", "[jit]"},
		{PROFILE_KERNEL, "", "[kernel]"},
		{PROFILE_UNKNOWN, "", "[unknown]"},
	};
	struct profile p;
	struct error err;

	(void)state;
	made_profile(&p, 0);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct profile_module like = {.kind = known[i].kind, .path = (char *)known[i].path};
		int module = profile_add_module(&p, &like, &err);

		assert_true(module >= 0);
		assert_string_equal(p.modules[module].name, known[i].name);
		assert_string_equal(p.modules[module].path, known[i].path);
	}
	profile_release(&p);
}

static void what_is_none_is_refused_and_changes_nothing(void **state)
{
	const struct profile_sample no_thread = {0, 7, 0, 1, 0}, no_node = {0, 0, 7, 1, 0};
	const struct profile_module no_kind = {.kind = 77}, no_image = {.kind = PROFILE_ANON, .image = 9};
	const struct profile_frame no_function = {9, 0}, first = {0, 0};
	struct profile p;
	struct error err;
	uint32_t function;

	(void)state;
	made_profile(&p, 0);
	assert_int_equal(profile_add_thread(&p, 9, 1, "x", &err), -1);
	assert_string_equal(err.text, "A thread names program image 9 of 1.");
	assert_int_equal(profile_rename_thread(&p, 9, "x", &err), -1);
	assert_int_equal(profile_add_module(&p, &no_kind, &err), -1);
	assert_int_equal(profile_add_module(&p, &no_image, &err), -1);
	assert_int_equal(profile_add_node(&p, 5, 0, 1, &err), -1);
	assert_int_equal(profile_add_node(&p, 0, 5, 1, &err), -1);
	assert_int_equal(profile_add_sample(&p, &no_thread, &err), -1);
	assert_int_equal(profile_add_sample(&p, &no_node, &err), -1);
	assert_int_equal(profile_add_function(&p, 5, true, "f", NULL, 0, &function, &err), -1);
	assert_int_equal(profile_set_frames(&p, 0, &first, 1, &err), -1);
	assert_int_equal(profile_add_node(&p, 0, 0, 1, &err), 1);
	assert_int_equal(profile_set_frames(&p, 0, &no_function, 1, &err), -1);
	assert_int_equal(profile_add_function(&p, 0, true, "f", NULL, 0, &function, &err), 0);
	assert_int_equal(profile_set_frames(&p, 0, &first, 1, &err), 0);
	assert_int_equal(profile_set_frames(&p, 0, &first, 1, &err), -1); /* a second time */
	assert_int_equal(p.thread_count, 1);
	assert_int_equal(p.module_count, 2);
	assert_int_equal(p.sample_count, 0);
	profile_release(&p);
}

static void functions_differ_by_module_file_and_line(void **state)
{
	struct profile p;
	struct error err;
	uint32_t first, again, other;

	(void)state;
	made_profile(&p, 0);
	assert_int_equal(profile_add_function(&p, 0, true, "init", "a.c", 3, &first, &err), 0);
	assert_int_equal(profile_add_function(&p, 0, true, "init", "a.c", 3, &again, &err), 0);
	assert_int_equal(first, again);
	assert_int_equal(profile_add_function(&p, 1, true, "init", "a.c", 3, &other, &err), 0);
	assert_int_not_equal(first, other);
	assert_int_equal(profile_add_function(&p, 0, true, "init", "b.c", 3, &other, &err), 0);
	assert_int_not_equal(first, other);
	assert_int_equal(profile_add_function(&p, 0, true, "init", NULL, 0, &other, &err), 0);
	assert_int_not_equal(first, other);
	profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_is_there_once_and_a_stack_shares_what_it_can),
		cmocka_unit_test(samples_come_in_the_order_of_time_after_sorting_and_places_can_still_be_added),
		cmocka_unit_test(a_module_is_called_by_its_file_or_its_kind),
		cmocka_unit_test(what_is_none_is_refused_and_changes_nothing),
		cmocka_unit_test(functions_differ_by_module_file_and_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
