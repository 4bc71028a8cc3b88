#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/lines.h"

struct seen {
	struct buf text; /* each line in angle brackets; its time behind it where that is asked for */
	bool times;
	size_t longest;
};

static void each(void *context, const struct log_line *line)
{
	struct seen *seen = context;

	assert_int_equal(line->text[line->length], 0);
	assert_int_equal(line->stream, 1);
	if (line->length > seen->longest)
		seen->longest = line->length;
	buf_putc(&seen->text, '<');
	buf_append(&seen->text, line->text, line->length);
	buf_puts(&seen->text, line->cut ? "...>" : ">");
	if (seen->times)
		buf_printf(&seen->text, "@%d", (int)line->t);
}

static struct line_counts split(const char *bytes, size_t length, size_t chunk, struct seen *seen)
{
	struct line_splitter *s;
	struct line_counts counts;

	*seen = (struct seen){.times = false};
	buf_init(&seen->text);
	s = line_splitter_new(1, each, seen);
	assert_non_null(s);
	for (size_t at = 0; at < length; at += chunk)
		line_splitter_feed(s, 5, bytes + at, length - at < chunk ? length - at : chunk);
	line_splitter_end(s);
	line_splitter_counts(s, &counts);
	line_splitter_free(s);
	return counts;
}

static void bytes_become_lines(void **state)
{
	static const struct {
		const char *bytes, *lines;
	} cases[] = {
		{"", ""},
		{"\n", "<>"},
		{"one\ntwo\n", "<one><two>"},
		{"no newline", "<no newline>"},
		{"\n\na", "<><><a>"},
		{"a\r\nb\r\n\r\nc\r\r\n", "<a><b><><c>"},
		{" 10%\r 20%\r100%\ndone\n", "< 10%>< 20%><100%><done>"},
		{"\rready\r\n", "<ready>"},
		{"\033[34m0.00\033[0m \033[32mI \033[0mtext\n", "<0.00 I text>"},
		{"\033[38;2;1;2;3mx\033[K\033[1;31;4;44;7my\n", "<xy>"},
		{"\033]0;title\007a\033]8;;http://x\033\\b\n", "<ab>"},
		{"\033(Ba\033cb\0337c\033#8d\n", "<abcd>"},
		{"\033P1;2|data\033\\e\033_app\033\\f\033^pm\033\\g\n", "<efg>"},
		{"torn \033[31\nnext\n", "<torn ><next>"},
		{"torn \033]0;never ended\nnext\n", "<torn ><next>"},
		{"torn \033]0;never ended\r\nnext\n", "<torn ><next>"},
		{"at the end\033", "<at the end>"},
		{"\033\033[1mtwice\n", "<twice>"},
		{"\033]0;a\033[1mb\n", "<b>"},
		{"\033[3\001x\n", "<\001x>"},
		{"spin |\b-\b\\\b \b\n", "<spin >"},
		{"caf\xc3\xa9\b\b\b\be\n", "<e>"},
		{"tab\there\a\n", "<tab\there>"},
		{"bad \xff\xfe utf\xc3\n", "<bad ?? utf?>"},
		{"caf\xc3\xa9 \xe2\x96\x88 \xf0\x9f\xa6\x99\n", "<caf\xc3\xa9 \xe2\x96\x88 \xf0\x9f\xa6\x99>"},
		{"overlong \xc0\xaf surrogate \xed\xa0\x80\n", "<overlong ?\? surrogate ?\?\?>"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t chunk = 1; chunk < 40; chunk++) {
			struct seen seen;

			split(cases[i].bytes, strlen(cases[i].bytes), chunk, &seen);
			if (strcmp(seen.text.text, cases[i].lines) != 0)
				fail_msg("case %zu in chunks of %zu: %s instead of %s", i, chunk, seen.text.text,
					 cases[i].lines);
			buf_release(&seen.text);
		}
	}
}

static void a_line_may_hold_zeros(void **state)
{
	static const char bytes[] = "a\0b\n\0\n";
	struct seen seen;
	struct line_counts counts = split(bytes, sizeof bytes - 1, 2, &seen);

	(void)state;
	assert_int_equal(seen.text.length, sizeof "<a\0b><\0>" - 1);
	assert_memory_equal(seen.text.text, "<a\0b><\0>", seen.text.length);
	assert_int_equal(counts.binary, 2);
	buf_release(&seen.text);
}

static void a_line_has_the_time_at_which_it_ended(void **state)
{
	struct seen seen = {.times = true};
	struct line_splitter *s = line_splitter_new(1, each, &seen);

	(void)state;
	buf_init(&seen.text);
	line_splitter_feed(s, 10, "a\nbe", 4);
	line_splitter_feed(s, 20, "gun", 3);
	line_splitter_feed(s, 30, "\nc\rd", 4);
	line_splitter_end(s);
	assert_string_equal(seen.text.text, "<a>@10<begun>@30<c>@30<d>@30");
	line_splitter_free(s);
	buf_release(&seen.text);
}

static void what_was_odd_is_counted(void **state)
{
	static const char bytes[] = "fine\nbad \xff\xff\nodd \001\ncaf\xc3\xa9\n\tindented\nend";
	struct seen seen;
	struct line_counts counts = split(bytes, sizeof bytes - 1, 3, &seen);

	(void)state;
	assert_int_equal(counts.lines, 6);
	assert_int_equal(counts.invalid_utf8, 1);
	assert_int_equal(counts.binary, 1);
	assert_int_equal(counts.cut, 0);
	buf_release(&seen.text);
}

static void a_line_of_100_mb_is_cut_and_the_next_is_whole(void **state)
{
	enum { MB = 1 << 20 };
	char *block = malloc(MB);
	struct seen seen = {.times = false};
	struct line_splitter *s = line_splitter_new(1, each, &seen);
	struct line_counts counts;

	(void)state;
	memset(block, 'x', MB);
	buf_init(&seen.text);
	for (int i = 0; i < 100; i++)
		line_splitter_feed(s, i, block, MB);
	line_splitter_feed(s, 100, "\nnext\n", 6);
	line_splitter_counts(s, &counts);
	assert_int_equal(counts.lines, 2);
	assert_int_equal(counts.cut, 1);
	assert_int_equal(seen.longest, LOG_LINE_MAX);
	assert_string_equal(seen.text.text + seen.text.length - strlen("x...><next>"), "x...><next>");
	line_splitter_free(s);
	buf_release(&seen.text);
	free(block);
}

static void a_cut_line_does_not_end_inside_a_character(void **state)
{
	(void)state;
	for (size_t lead = 0; lead < 4; lead++) {
		struct seen seen;
		struct buf bytes;
		struct line_counts counts;

		buf_init(&bytes);
		for (size_t i = 0; i < lead; i++)
			buf_putc(&bytes, 'a');
		while (bytes.length < LOG_LINE_MAX + 10)
			buf_puts(&bytes, "\xf0\x9f\xa6\x99");
		buf_putc(&bytes, '\n');
		counts = split(bytes.text, bytes.length, 1000, &seen);
		assert_int_equal(counts.invalid_utf8, 0);
		assert_int_equal(counts.cut, 1);
		assert_in_range(seen.longest, LOG_LINE_MAX - 3, LOG_LINE_MAX);
		buf_release(&seen.text);
		buf_release(&bytes);
	}
}

static void a_line_of_just_the_longest_length_is_not_cut(void **state)
{
	char *line = malloc(LOG_LINE_MAX + 1);
	struct seen seen;
	struct line_counts counts;

	(void)state;
	memset(line, 'y', LOG_LINE_MAX);
	line[LOG_LINE_MAX] = '\n';
	counts = split(line, LOG_LINE_MAX + 1, 4096, &seen);
	assert_int_equal(counts.cut, 0);
	assert_int_equal(seen.longest, LOG_LINE_MAX);
	buf_release(&seen.text);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_become_lines),
		cmocka_unit_test(a_line_may_hold_zeros),
		cmocka_unit_test(a_line_has_the_time_at_which_it_ended),
		cmocka_unit_test(what_was_odd_is_counted),
		cmocka_unit_test(a_line_of_100_mb_is_cut_and_the_next_is_whole),
		cmocka_unit_test(a_cut_line_does_not_end_inside_a_character),
		cmocka_unit_test(a_line_of_just_the_longest_length_is_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
