#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/command.h"

struct arguments {
	bool quiet, keep;
	const char *out, *json, *mode;
	double interval, timeout;
	struct option_list env;
};

#define AT(member) offsetof(struct arguments, member)

static const struct option rows[] = {
	{"out", 'o', OPTION_TEXT, AT(out), "DIR", "where the run directory goes", "runs"},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "no summary"},
	{"keep", 'k', OPTION_FLAG, AT(keep), NULL, "keep all"},
	{"json", 0, OPTION_MAYBE, AT(json), "FILE", "print JSON"},
	{"interval", 'i', OPTION_NUMBER, AT(interval), "MS", "time between two looks", "10", NULL, 1, 10000},
	{"timeout", 't', OPTION_NUMBER, AT(timeout), "S", "end it after this time", "none", NULL, 0, INFINITY},
	{"env", 'e', OPTION_LIST, AT(env), "K=V", "set a variable"},
	{"mode", 0, OPTION_CHOICE, AT(mode), "HOW",
	 "how to go about it, which is said in so many words that the line is full", "warn", "wait|refuse|warn|off"},
	OPTIONS_END,
};

static const struct command tool = {
	.name = "tool",
	.usage = "[options] -- CMD [ARG...]",
	.description = "Does a thing.",
	.options = rows,
	.examples = "# one\nassay tool -- true\n# two\nassay tool -q -- true\n",
};

#define WORDS_MAX 16

/* Parses the blank-separated words; *args need not be released on failure. */
static int parse(const char *words, struct arguments *args, const char **ret_rest, struct error *err)
{
	static char copy[512];
	static char *argv[WORDS_MAX + 1];
	int argc = 0, rest, got;

	strcpy(copy, words);
	for (char *word = strtok(copy, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	*args = (struct arguments){.out = "runs", .mode = "warn", .interval = 10};
	got = options_parse(&tool, argc, argv, args, &rest, err);
	*ret_rest = got == 0 && rest < argc ? argv[rest] : NULL;
	if (got != 0)
		options_release(&tool, args);
	return got;
}

static void no_options_leave_the_defaults(void **state)
{
	struct arguments a;
	const char *rest;

	(void)state;
	assert_int_equal(parse("tool", &a, &rest, NULL), 0);
	assert_null(rest);
	assert_string_equal(a.out, "runs");
	assert_true(a.interval == 10 && !a.quiet && !a.json && a.env.count == 0 && !a.env.items);
}

static void each_way_of_writing_an_option_is_understood(void **state)
{
	static const char *const ways[] = {
		"tool --out D --quiet --interval 20 --env A=1 --env B= --mode off cmd",
		"tool --out=D --quiet --interval=2e1 --env=A=1 --env=B= --mode=off cmd",
		"tool -o D -q -i 20 -e A=1 -e B= --mode off -- cmd",
		"tool -oD -q -i20 -eA=1 -eB= --mode wait --mode off -- cmd",
		"tool -qoD -qi 20 -eA=1 -qeB= --mode off -- cmd",
	};

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct arguments a;
		const char *rest;

		assert_int_equal(parse(ways[i], &a, &rest, NULL), 0);
		assert_string_equal(rest, "cmd");
		assert_string_equal(a.out, "D");
		assert_string_equal(a.mode, "off");
		assert_true(a.quiet && !a.keep && a.interval == 20);
		assert_int_equal(a.env.count, 2);
		assert_string_equal(a.env.items[0], "A=1");
		assert_string_equal(a.env.items[1], "B=");
		assert_null(a.env.items[2]);
		options_release(&tool, &a);
		assert_int_equal(a.env.count, 0);
	}
}

static void an_optional_value_comes_only_with_an_equals_sign(void **state)
{
	struct arguments a;
	const char *rest;

	(void)state;
	assert_int_equal(parse("tool --json file", &a, &rest, NULL), 0);
	assert_string_equal(a.json, "");
	assert_string_equal(rest, "file");
	assert_int_equal(parse("tool --json=file cmd", &a, &rest, NULL), 0);
	assert_string_equal(a.json, "file");
	assert_string_equal(rest, "cmd");
}

static void the_command_keeps_its_own_options(void **state)
{
	static const char *const lines[][2] = {
		{"tool make -q --out", "make"}, {"tool -- -q", "-q"}, {"tool -q - -k", "-"},
		{"tool -- --", "--"},		{"tool -q --", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct arguments a;
		const char *rest;

		assert_int_equal(parse(lines[i][0], &a, &rest, NULL), 0);
		assert_false(a.keep);
		if (lines[i][1])
			assert_string_equal(rest, lines[i][1]);
		else
			assert_null(rest);
	}
}

static void errors_name_the_option_and_what_was_meant(void **state)
{
	static const char *const cases[][2] = {
		{"--tiemout 3", "unknown option '--tiemout'; did you mean '--timeout'?"},
		{"--tiemout=3", "unknown option '--tiemout'; did you mean '--timeout'?"},
		{"--time 3", "unknown option '--time'; did you mean '--timeout'?"},
		{"-quiet", "unknown option '-quiet'; did you mean '--quiet'?"},
		{"--frobnicate", "unknown option '--frobnicate'; 'assay help tool' lists its options"},
		{"--=x", "unknown option '--'; 'assay help tool' lists its options"},
		{"-x", "unknown option '-x'; 'assay help tool' lists its options"},
		{"-qx", "unknown option '-qx'; 'assay help tool' lists its options"},
		{"-jsno", "unknown option '-jsno'; did you mean '--json'?"},
		{"--out", "option '--out' needs a value: --out DIR"},
		{"-o", "option '--out' needs a value: --out DIR"},
		{"--out -- cmd", "option '--out' needs a value: --out DIR"},
		{"--quiet=yes", "option '--quiet' takes no value, but 'yes' was given"},
		{"--interval abc", "option '--interval': 'abc' is not a number from 1 to 10000"},
		{"--interval 0.5", "option '--interval': '0.5' is not a number from 1 to 10000"},
		{"-i10001", "option '--interval': '10001' is not a number from 1 to 10000"},
		{"--interval=", "option '--interval': '' is not a number from 1 to 10000"},
		{"--timeout -1", "option '--timeout': '-1' is not a number of 0 or more"},
		{"--timeout nan", "option '--timeout': 'nan' is not a number of 0 or more"},
		{"--mode wran", "option '--mode': 'wran' is not one of wait, refuse, warn, off; did you mean 'warn'?"},
		{"--mode wa", "option '--mode': 'wa' is not one of wait, refuse, warn, off"},
		{"--mode=", "option '--mode': '' is not one of wait, refuse, warn, off"},
		{"--mode wait|off", "option '--mode': 'wait|off' is not one of wait, refuse, warn, off"},
		{"--env A=1 --\x1b[31m\n", "unknown option '--?[31m?'; 'assay help tool' lists its options"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arguments a;
		const char *rest;
		struct error err = {""};
		char words[128] = "tool ";

		strcat(words, cases[i][0]);
		assert_int_equal(parse(words, &a, &rest, &err), -1);
		assert_string_equal(err.text, cases[i][1]);
	}
}

static void an_endless_word_is_shortened(void **state)
{
	char word[4000] = "--";
	char *argv[] = {(char[]){"tool"}, word, NULL};
	struct arguments a = {0};
	struct error err;
	int rest;

	(void)state;
	memset(word + 2, 'x', sizeof word - 3);
	assert_int_equal(options_parse(&tool, 2, argv, &a, &rest, &err), -1);
	assert_true(strlen(err.text) < 140);
}

static void help_shows_defaults_choices_and_examples(void **state)
{
	CLEANUP(free_cleanup) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	options_help(&tool, out);
	fclose(out);
	assert_string_equal(text, "Usage: assay tool [options] -- CMD [ARG...]\n\n"
				  "Does a thing.\n\n"
				  "Options:\n"
				  "  -o, --out DIR      where the run directory goes [runs]\n"
				  "  -q, --quiet        no summary\n"
				  "  -k, --keep         keep all\n"
				  "      --json[=FILE]  print JSON\n"
				  "  -i, --interval MS  time between two looks [10]\n"
				  "  -t, --timeout S    end it after this time [none]\n"
				  "  -e, --env K=V      set a variable\n"
				  "      --mode HOW     how to go about it, which is said in so many words that\n"
				  "                     the line is full: wait, refuse, warn, off [warn]\n"
				  "  -h, --help         show this help\n\n"
				  "Examples:\n"
				  "  # one\n"
				  "  assay tool -- true\n"
				  "  # two\n"
				  "  assay tool -q -- true\n");
}

static void every_command_has_help_and_two_examples(void **state)
{
	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		const struct command *c = commands[i];
		size_t examples = 0;

		assert_ptr_equal(command_find(c->name, NULL), c);
		for (const char *line = c->examples; *line; line += strcspn(line, "\n"), line += *line == '\n')
			examples += strncmp(line, "assay ", 6) == 0;
		assert_true(examples >= 2);
		assert_true(strlen(c->summary) <= 70);
		for (const struct option *o = c->options; o->name; o++) {
			assert_non_null(o->help);
			assert_true(o->kind == OPTION_FLAG || o->argument);
			assert_true(o->kind != OPTION_NUMBER || o->min < o->max);
			assert_true((o->kind == OPTION_CHOICE) == (o->choices != NULL));
		}
	}
}

struct sides {
	struct option_list b, labels;
	bool quiet;
};

static const struct option side_rows[] = {
	{"vs", 'v', OPTION_WORDS, offsetof(struct sides, b), "B...", "side B", NULL, NULL, 1, INFINITY},
	{"labels", 0, OPTION_WORDS, offsetof(struct sides, labels), "A B", "names", NULL, NULL, 2, 2},
	{"quiet", 'q', OPTION_FLAG, offsetof(struct sides, quiet), NULL, "no summary"},
	OPTIONS_END,
};

static const struct command mixed_tool = {.name = "mixed", .options = side_rows, .mixed = true};

/* The words in order as "A1 A2|B1|LABELS|quiet", or the error. */
static const char *sort_words(const char *words)
{
	static char copy[512], text[512];
	char *argv[WORDS_MAX + 1];
	struct sides s = {0};
	struct error err;
	int argc = 0, rest, got;

	strcpy(copy, words);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	*text = '\0';
	got = options_parse(&mixed_tool, argc, argv, &s, &rest, &err);
	for (int i = rest; got == 0 && i < argc; i++)
		strcat(strcat(text, argv[i]), " ");
	for (size_t i = 0; got == 0 && i < s.b.count + s.labels.count; i++) {
		strcat(text, i == 0 || i == s.b.count ? "| " : "");
		strcat(strcat(text, i < s.b.count ? s.b.items[i] : s.labels.items[i - s.b.count]), " ");
	}
	strcat(text, got < 0 ? err.text : s.quiet ? "q" : "");
	options_release(&mixed_tool, &s);
	return text;
}

static void words_go_to_their_option_wherever_it_stands(void **state)
{
	(void)state;
	assert_string_equal(sort_words("mixed a1 a2 --vs b1 b2"), "a1 a2 | b1 b2 ");
	assert_string_equal(sort_words("mixed a1 --vs b1 b2 -q"), "a1 | b1 b2 q");
	assert_string_equal(sort_words("mixed -q a1 --labels x y a2 --vs b1 --vs b2 -q"), "a1 a2 | b1 b2 | x y q");
	assert_string_equal(sort_words("mixed a1 --vs=b1 a2 -vb2 a3"), "a1 a2 a3 | b1 b2 ");
	assert_string_equal(sort_words("mixed a1 --labels=x y a2 --vs b1 -- -q"), "a1 a2 -q | b1 | x y ");
	assert_string_equal(sort_words("mixed a1 --vs -q"), "option '--vs' needs a value: --vs B...");
	assert_string_equal(sort_words("mixed --labels x"), "option '--labels' needs more words: --labels A B");
	assert_string_equal(sort_words("mixed"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_options_leave_the_defaults),
		cmocka_unit_test(each_way_of_writing_an_option_is_understood),
		cmocka_unit_test(an_optional_value_comes_only_with_an_equals_sign),
		cmocka_unit_test(the_command_keeps_its_own_options),
		cmocka_unit_test(errors_name_the_option_and_what_was_meant),
		cmocka_unit_test(an_endless_word_is_shortened),
		cmocka_unit_test(help_shows_defaults_choices_and_examples),
		cmocka_unit_test(words_go_to_their_option_wherever_it_stands),
		cmocka_unit_test(every_command_has_help_and_two_examples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
