/* The texts around a snippet: what the compiler gets, and what people are shown of what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "exec/snippet.h"

static const struct snippet_text lines = {.statement = "first();\n\tsecond(x;", .setup = "int x = 1"};

/* What is shown of what a compiler said; the caller releases it. */
static size_t shown(const struct snippet_text *text, const char *said, struct buf *out)
{
	buf_init(out);
	return snippet_messages(text, "/tmp/folder", said, out);
}

static void an_error_is_shown_below_the_users_own_line(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(shown(&lines, "statement:2:10: error: expected ')' before ';' token\n", &out), 1);
	assert_string_equal(out.text, "statement:2:10: error: expected ')' before ';' token\n"
				      "     second(x;\n"
				      "             ^\n");
	buf_release(&out);
}

static void an_error_behind_the_text_is_at_its_end(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(shown(&lines, "setup:2:1: error: expected ','\n", &out), 1);
	assert_string_equal(out.text, "setup:1:10: error: expected ','\n"
				      "    int x = 1\n"
				      "             ^\n");
	buf_release(&out);
}

static void what_speaks_of_our_text_is_left_out(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(shown(&lines, "statement: In function 'snippet_statement':\n"
				       "assay:5:1: error: expected declaration\n"
				       "1 error generated.\n"
				       "collect2: error: ld returned 1 exit status\n",
			       &out),
			 0);
	assert_string_equal(out.text, "");
	buf_release(&out);
}

static void a_message_that_is_repeated_stands_once(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(shown(&lines, "setup:1:1: error: odd\nsetup:1:1: error: odd\n", &out), 1);
	buf_release(&out);
}

static void what_the_linker_misses_is_named_once_with_what_helps(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(shown(&lines,
			       "/usr/bin/ld: /tmp/cc1.o: in function `snippet_statement':\n"
			       "/tmp/folder/0000.c:(.text+0x4): undefined reference to `first'\n"
			       "ld: /tmp/cc1.o:0000.c:(.text+0x9): more undefined references to `first' follow\n"
			       "/usr/bin/ld: cannot find -lodd: No such file or directory\n",
			       &out),
			 2);
	assert_string_equal(out.text, "-l odd: the linker finds no such library; -L names a folder to look in\n"
				      "nothing here defines 'first': -l names the library that does\n");
	buf_release(&out);
}

static void messages_about_other_files_stay_without_our_folder(void **state)
{
	struct buf out;

	(void)state;
	shown(&lines, "/tmp/folder/x.h:1:1: error: y\nmine.h:3:5: error: \033[31mred\n", &out);
	assert_string_equal(out.text, "x.h:1:1: error: y\nmine.h:3:5: error: ?[31mred\n");
	buf_release(&out);
}

static void places_that_make_no_sense_do_no_harm(void **state)
{
	struct buf out;

	(void)state;
	shown(&lines,
	      "statement:99999999999999999999:1: error: a\nstatement:1:99999999999999999999: error: b\n"
	      "statement:-1:1: error: c\nstatement:\nstatement:1\nstatement:1:\nsetup",
	      &out);
	assert_non_null(strstr(out.text, "statement:2:11: error: a\n"));
	assert_non_null(strstr(out.text, "statement:1:9: error: b\n"));
	assert_null(strstr(out.text, "error: c"));
	buf_release(&out);
}

static void only_the_measured_loop_has_the_users_text(void **state)
{
	const struct snippet_text text = {.statement = "STATEMENT", .setup = "SETUP", .each = "EACH"};
	struct buf out;
	const char *measured;

	(void)state;
	buf_init(&out);
	snippet_source(&text, NULL, "/tmp/folder", &out);
	measured = strstr(out.text, "void snippet_statement(");
	assert_non_null(strstr(out.text, "void snippet_empty("));
	assert_non_null(measured);
	assert_ptr_equal(strstr(out.text, "SETUP"), strstr(measured, "SETUP"));
	assert_true(strstr(measured, "SETUP") < strstr(measured, "snippet_next("));
	assert_true(strstr(measured, "EACH") < strstr(measured, "snippet_start()"));
	assert_true(strstr(measured, "snippet_start()") < strstr(measured, "STATEMENT"));
	assert_true(strstr(measured, "STATEMENT") < strstr(measured, "snippet_stop()"));
	buf_release(&out);
}

static void a_header_of_the_system_and_one_that_is_there_are_included_as_what_they_are(void **state)
{
	static const char *const headers[] = {"nowhere/odd\"name.h", "/dev/null", "\"mine.h\"", NULL};
	const struct snippet_text text = {.statement = ""};
	struct buf out;

	(void)state;
	buf_init(&out);
	snippet_source(&text, headers, "/tmp/folder", &out);
	assert_non_null(strstr(out.text, "#line 1 \"-I nowhere/odd\\\"name.h\"\n#include <nowhere/odd\"name.h>\n"));
	assert_non_null(strstr(out.text, "#include \"/dev/null\"\n"));
	assert_non_null(strstr(out.text, "#include \"mine.h\"\n"));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_shown_below_the_users_own_line),
		cmocka_unit_test(an_error_behind_the_text_is_at_its_end),
		cmocka_unit_test(what_speaks_of_our_text_is_left_out),
		cmocka_unit_test(a_message_that_is_repeated_stands_once),
		cmocka_unit_test(what_the_linker_misses_is_named_once_with_what_helps),
		cmocka_unit_test(messages_about_other_files_stay_without_our_folder),
		cmocka_unit_test(places_that_make_no_sense_do_no_harm),
		cmocka_unit_test(only_the_measured_loop_has_the_users_text),
		cmocka_unit_test(a_header_of_the_system_and_one_that_is_there_are_included_as_what_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
