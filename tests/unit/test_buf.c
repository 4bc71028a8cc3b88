#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void an_empty_buf_is_an_empty_string(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	assert_string_equal(b.text, "");
	buf_clear(&b);
	buf_append(&b, NULL, 0);
	assert_string_equal(b.text, "");
	buf_release(&b);
	buf_release(&b);
}

static void text_grows_and_stays_terminated(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	for (int i = 0; i < 10000; i++) {
		buf_putc(&b, (char)('a' + i % 26));
		assert_int_equal(b.text[b.length], 0);
	}
	assert_int_equal(b.length, 10000);
	assert_memory_equal(b.text + 9984, "abcdefghijklmnop", 16);
	buf_clear(&b);
	assert_string_equal(b.text, "");
	buf_printf(&b, "%d-%s", 7, "x");
	assert_string_equal(b.text, "7-x");
	buf_release(&b);
}

static void bytes_may_be_zero(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_append(&b, "a\0b", 3);
	buf_puts(&b, "c");
	assert_int_equal(b.length, 4);
	assert_memory_equal(b.text, "a\0bc", 5);
	buf_release(&b);
}

static void a_printf_longer_than_the_room_is_whole(void **state)
{
	char word[3000];
	struct buf b;

	(void)state;
	memset(word, 'x', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	buf_init(&b);
	buf_printf(&b, "<%s>", word);
	assert_int_equal(b.length, 3001);
	assert_int_equal(b.text[3000], '>');
	buf_release(&b);
}

static void what_cannot_fit_is_remembered_and_harmless(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_puts(&b, "kept");
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_true(b.failed);
	buf_puts(&b, "!");
	assert_string_equal(b.text, "kept!");
	assert_null(buf_detach(&b));
	assert_string_equal(b.text, "");
	buf_release(&b);
}

static void a_detached_text_is_the_callers(void **state)
{
	struct buf b;
	char *text;

	(void)state;
	buf_init(&b);
	text = buf_detach(&b);
	assert_string_equal(text, "");
	free(text);
	memcpy(buf_reserve(&b, 3), "abc", 3);
	b.length += 3;
	text = buf_detach(&b);
	assert_string_equal(text, "abc");
	assert_int_equal(b.length, 0);
	free(text);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buf_is_an_empty_string),
		cmocka_unit_test(text_grows_and_stays_terminated),
		cmocka_unit_test(bytes_may_be_zero),
		cmocka_unit_test(a_printf_longer_than_the_room_is_whole),
		cmocka_unit_test(what_cannot_fit_is_remembered_and_harmless),
		cmocka_unit_test(a_detached_text_is_the_callers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
