#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/utf8.h"

static void each_kind_of_character_has_its_length(void **state)
{
	static const char *const valid[] = {"a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
					    "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};

	(void)state;
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
		assert_int_equal(utf8_character(valid[i], strlen(valid[i])), strlen(valid[i]));
	assert_int_equal(utf8_character("\0", 1), 1);
	assert_int_equal(utf8_character("", 0), 0);
}

static void what_is_no_character_is_refused(void **state)
{
	static const char *const invalid[] = {
		"\x80",             /* a continuation alone */
		"\xc0\xaf",         /* overlong */
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xed\xa0\x80",     /* a surrogate */
		"\xf4\x90\x80\x80", /* beyond U+10FFFF */
		"\xf5\x80\x80\x80",
		"\xff",
		"\xc3",             /* cut */
		"\xe2\x82",
		"\xf0\x9f\x98",
		"\xe2x\x82",
	};

	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		assert_int_equal(utf8_character(invalid[i], strlen(invalid[i])), 0);
		assert_int_equal(utf8_valid_until(invalid[i], 0, strlen(invalid[i])), 0);
	}
}

static void the_first_invalid_byte_is_found_at_any_place(void **state)
{
	char text[64];

	(void)state;
	for (size_t at = 0; at < sizeof text; at++) {
		memset(text, 'x', sizeof text);
		text[at] = (char)0xff;
		assert_int_equal(utf8_valid_until(text, 0, sizeof text), at);
		assert_int_equal(utf8_valid_until(text, at + 1, sizeof text), sizeof text);
	}
}

static void invalid_bytes_are_replaced_one_by_one(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out);
	utf8_append_clean(&out, "a\xff\xfe\xc3\xa9\xe2\x82", 7);
	assert_string_equal(out.text, "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
	buf_release(&out);
}

static void a_cut_never_halves_a_character(void **state)
{
	const char *text = "ab\xe2\x82\xac" "c";

	(void)state;
	assert_int_equal(utf8_cut(text, 6, 6), 6);
	assert_int_equal(utf8_cut(text, 6, 100), 6);
	assert_int_equal(utf8_cut(text, 6, 5), 5);
	assert_int_equal(utf8_cut(text, 6, 4), 2);
	assert_int_equal(utf8_cut(text, 6, 3), 2);
	assert_int_equal(utf8_cut(text, 6, 2), 2);
	assert_int_equal(utf8_cut("\x80\x80\x80", 3, 2), 0);
}

static void assert_line(const char *text, size_t columns, const char *wanted)
{
	struct buf out;

	buf_init(&out);
	buf_puts(&out, "<");
	utf8_append_line(&out, text, columns);
	assert_string_equal(out.text + 1, wanted);
	buf_release(&out);
}

static void a_line_for_a_terminal_has_no_control_characters_and_a_bounded_length(void **state)
{
	(void)state;
	assert_line("plain \xc3\xa9", 80, "plain \xc3\xa9");
	assert_line("a\033[2J\n\x7f\xc2\x9b" "b\xff", 80, "a?[2J???b\xef\xbf\xbd");
	assert_line("\xe2\x80\xaertl\xe2\x81\xa6x\xe2\x80\xa8y\xe2\x80\xaf\xe2\x81\xaa", 80,
		    "?rtl?x?y\xe2\x80\xaf\xe2\x81\xaa");
	assert_line("0123456789", 10, "0123456789");
	assert_line("0123456789x", 10, "0123456...");
	assert_line("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4, "\xc3\xa9...");
	assert_line("", 4, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_character_has_its_length),
		cmocka_unit_test(what_is_no_character_is_refused),
		cmocka_unit_test(the_first_invalid_byte_is_found_at_any_place),
		cmocka_unit_test(invalid_bytes_are_replaced_one_by_one),
		cmocka_unit_test(a_cut_never_halves_a_character),
		cmocka_unit_test(a_line_for_a_terminal_has_no_control_characters_and_a_bounded_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
