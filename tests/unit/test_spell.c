#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/spell.h"

static const char *const words[] = {"run", "recover", "doctor", "help", "report", "timeout", "wait-tree"};

static const char *nearest(const char *typed)
{
	return spell_nearest(typed, words, sizeof words / sizeof *words);
}

static void each_kind_of_slip_counts_one(void **state)
{
	(void)state;
	assert_int_equal(spell_distance("timeout", "timeout"), 0);
	assert_int_equal(spell_distance("timeot", "timeout"), 1);
	assert_int_equal(spell_distance("timeoutt", "timeout"), 1);
	assert_int_equal(spell_distance("tineout", "timeout"), 1);
	assert_int_equal(spell_distance("tiemout", "timeout"), 1);
	assert_int_equal(spell_distance("", "run"), 3);
	assert_int_equal(spell_distance("run", ""), 3);
	assert_int_equal(spell_distance("kitten", "sitting"), 3);
}

static void slips_of_the_finger_are_understood(void **state)
{
	(void)state;
	assert_string_equal(nearest("rnu"), "run");
	assert_string_equal(nearest("hepl"), "help");
	assert_string_equal(nearest("docotr"), "doctor");
	assert_string_equal(nearest("tiemout"), "timeout");
	assert_string_equal(nearest("wait_tree"), "wait-tree");
	assert_string_equal(nearest("rec"), "recover");
}

static void what_is_far_from_all_is_nothing(void **state)
{
	(void)state;
	assert_null(nearest("frobnicate"));
	assert_null(nearest(""));
	assert_null(nearest("zzzz"));
	assert_null(spell_nearest("run", words, 0));
}

static void a_word_without_end_is_no_trouble(void **state)
{
	char long_word[5000];

	(void)state;
	memset(long_word, 'r', sizeof long_word - 1);
	long_word[sizeof long_word - 1] = '\0';
	assert_null(nearest(long_word));
	assert_int_equal(spell_distance(long_word, "run"), 62);
	assert_int_equal(spell_distance("run", long_word), 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_slip_counts_one),
		cmocka_unit_test(slips_of_the_finger_are_understood),
		cmocka_unit_test(what_is_far_from_all_is_nothing),
		cmocka_unit_test(a_word_without_end_is_no_trouble),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
