#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/wrap.h"
#include "report/hotspot_words.h"

static void assert_shortened(const char *name, size_t columns, const char *wanted)
{
	struct buf out;

	buf_init(&out);
	hotspot_words_name(&out, name, columns);
	if (strcmp(out.text, wanted) != 0)
		fail_msg("'%s' in %zu columns is '%s', not '%s'", name, columns, out.text, wanted);
	buf_release(&out);
}

static void a_name_that_fits_stays_as_it_is(void **state)
{
	(void)state;
	assert_shortened("std::vector<int>::at(unsigned long) const", 41, "std::vector<int>::at(unsigned long) const");
	assert_shortened("", 20, "");
}

static void parameters_go_first(void **state)
{
	(void)state;
	assert_shortened("std::vector<int>::at(unsigned long) const", 40, "std::vector<int>::at");
	assert_shortened("void a::f<int>(int (*)(char), long) [clone .cold]", 40, "void a::f<int> [clone .cold]");
	assert_shortened("work(int)::{lambda(char, int)#1}::operator()(char) const", 50,
			 "work::{lambda#1}::operator()");
	assert_shortened("(anonymous namespace)::work(std::string const&)", 40, "(anonymous namespace)::work");
	assert_shortened("main.(*Server).handle(int, int, int, int, int)", 30, "main.(*Server).handle");
}

static void then_template_arguments_but_no_operators(void **state)
{
	(void)state;
	assert_shortened("std::map<int, std::vector<char> >::operator[](int const&)", 30, "std::map<>::operator[]");
	assert_shortened("std::operator<< <std::char_traits<char> >(std::ostream&, char)", 48,
			 "std::operator<< <std::char_traits<char> >");
	assert_shortened("a::operator->(b<int, long, short, unsigned long>)", 30, "a::operator->");
	assert_shortened("<alloc::vec::Vec<T, A> as core::clone::Clone>::clone", 48,
			 "<alloc::vec::Vec<> as core::clone::Clone>::clone");
	assert_shortened("core::ops::call::<alloc::string::String, usize>::run", 40, "core::ops::call::<>::run");
	assert_shortened("py::<module>:/a/long/way/to/a/program/of/the/users/main.py", 30, "py::<module>:main.py");
}

static void then_folders_of_files(void **state)
{
	(void)state;
	assert_shortened("/usr/src/project/source/deep/file.c:1234 work", 30, "file.c:1234 work");
	assert_shortened("JS:*fib /home/someone/project/index.js:10:20", 30, "JS:*fib index.js:10:20");
	assert_shortened("std::operator/<long, long, long>(a<int>, b<int>)", 24, "std::operator/<>");
}

static void the_number_of_a_line_and_the_last_part_of_a_name_stay(void **state)
{
	static const char name[] = "src/some/where/a_file_with_a_long_name.cc:1234 one::two::three::four::five::six";
	struct buf out;

	(void)state;
	for (size_t columns = 20; columns < sizeof name; columns++) {
		buf_init(&out);
		hotspot_words_name(&out, name, columns);
		if (wrap_width(out.text) > columns || !strstr(out.text, ":1234 ") || !strstr(out.text, "six"))
			fail_msg("in %zu columns: '%s'", columns, out.text);
		buf_release(&out);
	}
	assert_shortened("malloc.c:4727 _int_malloc_consolidate", 24, "malloc.c:4727 _int...ate");
	assert_shortened("one::two::three::four::five::the_function_itself", 30, "one::two...the_function_itself");
}

/* Whatever a name looks like: it is on one line, no wider than asked for, and says something. */
static void any_text_fits(void **state)
{
	static const char signs[] = "a:<>(){}[]/ -1.o\xc3\xa9'&\x1b";
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char name[96];
		size_t length, columns;
		struct buf out;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		length = (size_t)(seed >> 40) % (sizeof name - 1);
		columns = 8 + (size_t)(seed >> 33) % 60;
		for (size_t i = 0; i < length; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			name[i] = signs[(size_t)(seed >> 40) % (sizeof signs - 1)];
			if ((seed >> 36) % 16 == 0 && i + 8 < length) {
				memcpy(name + i, "operator", 8);
				i += 7;
			}
		}
		name[length] = '\0';
		buf_init(&out);
		hotspot_words_name(&out, name, columns);
		if (wrap_width(out.text) > columns || (length && !out.length) || strchr(out.text, '\x1b'))
			fail_msg("'%s' in %zu columns: '%s'", name, columns, out.text);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_that_fits_stays_as_it_is),
		cmocka_unit_test(parameters_go_first),
		cmocka_unit_test(then_template_arguments_but_no_operators),
		cmocka_unit_test(then_folders_of_files),
		cmocka_unit_test(the_number_of_a_line_and_the_last_part_of_a_name_stay),
		cmocka_unit_test(any_text_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
