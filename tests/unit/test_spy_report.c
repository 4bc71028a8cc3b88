#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/spy_report.h"

#define MIB (INT64_C(1) << 20)

static const struct spy_subject alone = {.name = "prog", .pid = 7, .delay_ns = 10 * NS_PER_MS, .status = -1};
static const struct spy_subject tree = {.name = "prog", .pid = 7, .tree = true, .delay_ns = NS_PER_S, .status = -1};

static void made(struct spy_result *r)
{
	spy_result_init(r);
	r->begin = NS_PER_S;
	r->end = 3 * NS_PER_S;
	r->processes = 1;
	monitor_add(&r->resources[SPY_RSS], 2 * MIB, NS_PER_S);
	monitor_add(&r->resources[SPY_RSS], 4 * MIB, 2 * NS_PER_S);
	r->peak = 4 * MIB;
}

static void expect_peak(const struct spy_result *r, const struct spy_subject *s, const char *words)
{
	struct buf text;

	buf_init(&text);
	spy_peak_words(r, s, &text);
	assert_string_equal(text.text, words);
	buf_release(&text);
}

static void the_peak_says_where_it_is_from_and_how_well_it_is_known(void **state)
{
	struct spy_result r;

	(void)state;
	made(&r);
	r.peak_exact = true;
	expect_peak(&r, &alone, "peak 4.00 MiB, from a reading at 1.00 s; by the kernel's high-water mark there was no "
				"larger one in between");
	r.peak_exact = false;
	expect_peak(&r, &alone, "peak at least 4.00 MiB, from a reading at 1.00 s; nothing tells what was between the "
				"readings");
	r.peak_above = 9 * MIB;
	expect_peak(&r, &alone, "peak at least 4.00 MiB, from a reading at 1.00 s; at most 9.00 MiB, the kernel's "
				"high-water mark, which may be older than this watch");
	expect_peak(&r, &tree, "peak at least 4.00 MiB, from a reading at 1.00 s; at most 9.00 MiB, the sum of what "
			       "each process had at its own peak");
	r.peak = 8 * MIB;
	r.peak_from_mark = r.peak_exact = true;
	expect_peak(&r, &alone, "peak 8.00 MiB, from the kernel's high-water mark: between two readings; the largest "
				"reading is 4.00 MiB");
	spy_result_release(&r);
}

static void a_watch_without_a_reading_says_so(void **state)
{
	struct spy_result r;

	(void)state;
	spy_result_init(&r);
	expect_peak(&r, &alone, "peak not known: nothing was read");
	r.peak = 8 * MIB;
	r.peak_from_mark = r.peak_exact = true;
	expect_peak(&r, &alone, "peak 8.00 MiB, from the kernel's high-water mark: no reading came before its end");
	spy_result_release(&r);
}

static void what_was_never_read_has_no_key(void **state)
{
	struct spy_result r;
	json_t *root;

	(void)state;
	made(&r);
	root = spy_json(&r, &alone);
	assert_non_null(root);
	assert_null(json_object_get(root, "swap"));
	assert_null(json_object_get(root, "status"));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "rss"), "peak")), 4 * MIB);
	assert_null(json_object_get(json_object_get(root, "peak"), "above"));
	assert_null(json_object_get(json_object_get(root, "high_water"), "end"));
	json_decref(root);
	spy_result_release(&r);
}

static void the_live_line_is_safe_and_not_wider_than_the_terminal(void **state)
{
	struct spy_sample s = {.t = 2 * NS_PER_S, .gpu_count = SPY_GPUS_MAX, .processes = 3};
	struct buf line;

	(void)state;
	buf_init(&line);
	for (size_t i = 0; i < SPY_GPUS_MAX; i++)
		s.gpus[i] = MIB;
	spy_live(&s, NS_PER_S, MIB, 80, &line);
	assert_true(line.length <= 80);
	assert_int_equal(strncmp(line.text, "1.00 s  rss 0 B (peak 1.00 MiB)", 31), 0);
	buf_release(&line);
}

static void names_of_processes_cannot_write_to_the_terminal(void **state)
{
	const struct spy_subject hostile = {.name = "\033[2Jx\n\xff", .pid = 7, .delay_ns = 1, .status = -1};
	struct spy_result r;
	struct buf text;

	(void)state;
	made(&r);
	buf_init(&text);
	spy_text(&r, &hostile, false, 0, &text);
	assert_null(strchr(text.text, '\033'));
	assert_int_equal(strncmp(text.text, "?[2Jx?", 6), 0);
	buf_release(&text);
	spy_result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peak_says_where_it_is_from_and_how_well_it_is_known),
		cmocka_unit_test(a_watch_without_a_reading_says_so),
		cmocka_unit_test(what_was_never_read_has_no_key),
		cmocka_unit_test(the_live_line_is_safe_and_not_wider_than_the_terminal),
		cmocka_unit_test(names_of_processes_cannot_write_to_the_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
