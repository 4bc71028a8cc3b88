#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "trial/cases.h"
#include "trial/json_line.h"

static void parse(const char *text, struct cases *cases)
{
	struct error err = {.text = ""};

	if (cases_parse(text, strlen(text), "c.json", cases, &err) < 0)
		fail_msg("%s", err.text);
}

static void expect_list(char *const *list, const char *joined)
{
	char text[256] = "";

	for (; *list; list++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s;", *list);
	assert_string_equal(text, joined);
}

static void a_case_is_merged_with_the_defaults(void **state)
{
	struct cases cases;

	(void)state;
	parse("{\"defaults\": {\"binary\": \"bin/x\", \"prefix\": [\"nice\"], \"args\": [\"-t\", \"4\"],\n"
	      " \"env\": {\"A\": \"1\", \"AB\": \"2\"}, \"model\": \"d.gguf\"},\n"
	      " \"cases\": [{\"label\": \"one\"},\n"
	      "  {\"label\": \"two\", \"binary\": \"y\", \"prefix\": [], \"args\": [\"-p\"], \"env\": {\"A\": \"\"},\n"
	      "   \"model\": null, \"gpus\": \"0,1\"}]}",
	      &cases);
	assert_int_equal(cases.count, 2);
	assert_string_equal(cases.items[0].binary, "bin/x");
	assert_string_equal(cases.items[0].model, "d.gguf");
	assert_null(cases.items[0].gpus);
	expect_list(cases.items[0].prefix, "nice;");
	expect_list(cases.items[0].args, "-t;4;");
	expect_list(cases.items[0].env, "A=1;AB=2;");
	assert_string_equal(cases.items[1].binary, "y");
	assert_null(cases.items[1].model);
	assert_string_equal(cases.items[1].gpus, "0,1");
	expect_list(cases.items[1].prefix, "");
	expect_list(cases.items[1].args, "-t;4;-p;");
	expect_list(cases.items[1].env, "A=;AB=2;");
	cases_release(&cases);
}

static void without_defaults_it_is_llama_bench(void **state)
{
	struct cases cases;

	(void)state;
	parse("{\"cases\": [{\"label\": \"x\"}]}", &cases);
	assert_string_equal(cases.items[0].binary, "llama-bench");
	expect_list(cases.items[0].prefix, "");
	expect_list(cases.items[0].args, "");
	expect_list(cases.items[0].env, "");
	cases_release(&cases);
}

static void labels_become_distinct_safe_names(void **state)
{
	static const char *const expected[] = {"a_b", "a_b-2", "a_b-2-2", "_..", "_", "plan.json-2", "_-2", "_-rf"};
	struct cases cases;

	(void)state;
	parse("{\"cases\": [{\"label\": \"a b\"}, {\"label\": \"a|b\"}, {\"label\": \"a_b-2\"}, {\"label\": \"..\"},\n"
	      "{\"label\": \"/\"}, {\"label\": \"plan.json\"}, {\"label\": \"\\u00e9\"}, {\"label\": \"-rf\"}]}",
	      &cases);
	assert_int_equal(cases.count, sizeof expected / sizeof *expected);
	for (size_t i = 0; i < cases.count; i++)
		assert_string_equal(cases.items[i].tag, expected[i]);
	cases_release(&cases);
}

static void labels_with_65_equal_first_characters_are_told_apart(void **state)
{
	struct buf text;
	struct cases cases;

	(void)state;
	buf_init(&text);
	buf_puts(&text, "{\"cases\": [");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "%s{\"label\": \"%065d%d\"}", i ? "," : "", 0, i);
	buf_puts(&text, "]}");
	parse(text.text, &cases);
	for (size_t i = 0; i < cases.count; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(cases.items[i].tag, cases.items[k].tag);
	cases_release(&cases);
	buf_release(&text);
}

static void what_is_wrong_is_named_with_line_and_key(void **state)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{"[]", "c.json: line 1: expected an object with \"cases\", and it is an array"},
		{"7", "c.json: line 1: expected an object with \"cases\", and it is a number"},
		{"{}", "c.json: line 1: it has no \"cases\""},
		{"{\n\"cases\": {}}", "c.json: line 2: cases: expected an array of cases, and it is an object"},
		{"{\n\n\"cases\": []}", "c.json: line 3: cases: it holds no case"},
		{"{\"casess\": []}", "c.json: line 1: casess: unknown key; did you mean 'cases'?"},
		{"{\"cases\": [\n3]}", "c.json: line 2: cases[0]: expected an object, and it is a number"},
		{"{\"cases\": [\n{}]}", "c.json: line 2: cases[0]: it has no \"label\""},
		{"{\"cases\": [\n{\"label\": \"a\"},\n{\"label\": \"b\",\n\"modle\": \"x\"}]}",
		 "c.json: line 4: cases[1].modle: unknown key; did you mean 'model'?"},
		{"{\"cases\": [{\"label\": \"\"}]}", "c.json: line 1: cases[0].label: it is empty"},
		{"{\"cases\": [{\"label\": null}]}",
		 "c.json: line 1: cases[0].label: expected a string, and it is null"},
		{"{\"cases\": [{\"label\": \"a\",\n\"args\": [\"1\",\n2]}]}",
		 "c.json: line 3: cases[0].args[1]: expected a string, and it is a number"},
		{"{\"cases\": [{\"label\": \"a\",\n\"args\": \"-x\"}]}",
		 "c.json: line 2: cases[0].args: expected an array of strings, and it is a string"},
		{"{\"cases\": [{\"label\": \"a\",\n\"env\": {\n\"X\": 1}}]}",
		 "c.json: line 3: cases[0].env.X: expected a string, and it is a number"},
		{"{\"cases\": [{\"label\": \"a\",\n\"env\": {\n\"X=\": \"1\"}}]}",
		 "c.json: line 3: cases[0].env.X=: no variable can have that name"},
		{"{\"cases\": [{\"label\": \"a\", \"gpus\": 0}]}",
		 "c.json: line 1: cases[0].gpus: expected a string, and it is a number"},
		{"{\"cases\": [{\"label\": \"a\", \"binary\": null}]}",
		 "c.json: line 1: cases[0].binary: expected a string, and it is null"},
		{"{\"cases\": [{\"label\": \"a\\u0000b\"}]}",
		 "c.json: line 1: cases[0].label: it holds the character U+0000, which no command line can"},
		{"{\"cases\": [{\"label\": \"a\"},\n{\"label\": \"\\u0061\"}]}",
		 "c.json: line 2: cases[1].label: the case of line 1 has the same label"},
		{"{\"defaults\":\n[], \"cases\": [{\"label\": \"a\"}]}",
		 "c.json: line 1: defaults: expected an object, and it is an array"},
		{"{\"defaults\": {\n\"label\": \"a\"}, \"cases\": [{\"label\": \"a\"}]}",
		 "c.json: line 2: defaults.label: unknown key"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct cases cases;
		struct error err = {.text = ""};

		assert_int_equal(cases_parse(wrong[i].text, strlen(wrong[i].text), "c.json", &cases, &err), -1);
		assert_string_equal(err.text, wrong[i].error);
	}
}

static void a_file_that_is_no_json_is_told_with_line_and_column(void **state)
{
	static const char *const texts[] = {"{\n", "{\n\"cases\": [}", "{\"cases\": [\n], \"cases\": []}", "\n\xff"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct cases cases;
		struct error err = {.text = ""};

		assert_int_equal(cases_parse(texts[i], strlen(texts[i]), "c.json", &cases, &err), -1);
		assert_memory_equal(err.text, "c.json: line 2, column ", 23);
	}
}

static void a_key_is_found_behind_any_values(void **state)
{
	const char *text = "{\"a\": [1, {\"x\": \"]}\\\"\"}, [[]]],\n"
			   " \"b\": -1.5e3, \"c\": true,\n"
			   " \"d\\u0065\": {\"f\": null,\n"
			   "  \"g\": [0,\n"
			   "   \"here\"]}}";
	const struct json_step steps[] = {{"de", 0}, {"g", 0}, {NULL, 1}};

	(void)state;
	assert_int_equal(json_line(text, strlen(text), steps, 0), 1);
	assert_int_equal(json_line(text, strlen(text), steps, 1), 3);
	assert_int_equal(json_line(text, strlen(text), steps, 2), 4);
	assert_int_equal(json_line(text, strlen(text), steps, 3), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_case_is_merged_with_the_defaults),
		cmocka_unit_test(without_defaults_it_is_llama_bench),
		cmocka_unit_test(labels_become_distinct_safe_names),
		cmocka_unit_test(labels_with_65_equal_first_characters_are_told_apart),
		cmocka_unit_test(what_is_wrong_is_named_with_line_and_key),
		cmocka_unit_test(a_file_that_is_no_json_is_told_with_line_and_column),
		cmocka_unit_test(a_key_is_found_behind_any_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
