#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/bench.h"
#include "trial/bench_parameters.h"
#include "trial/bench_plan.h"
#include "trial/bench_words.h"

static void words_are_split_as_sh_does(void **state)
{
	static const struct {
		const char *line, *words[6];
	} cases[] = {
		{"a b", {"a", "b"}},
		{"  a\t b  ", {"a", "b"}},
		{"a 'b  c' \"d e\"", {"a", "b  c", "d e"}},
		{"a'b'\"c\"d", {"abcd"}},
		{"a ''", {"a", ""}},
		{"a\\ b \\'", {"a b", "'"}},
		{"\"\\\"\\\\\\n\"", {"\"\\\\n"}},
		{"'\\'", {"\\"}},
		{"\xc3\xa4 *", {"\xc3\xa4", "*"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char **words;
		size_t n = 0;

		assert_int_equal(bench_words_split(cases[i].line, &words, NULL), 0);
		for (; words[n]; n++)
			assert_string_equal(words[n], cases[i].words[n]);
		assert_null(cases[i].words[n]);
		bench_words_free(words);
	}
}

static void open_quotes_and_empty_lines_are_no_words(void **state)
{
	static const char *const lines[] = {"'a", "a \"b", "", "  \t"};
	char **words;

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_int_equal(bench_words_split(lines[i], &words, NULL), -1);
}

static void only_what_a_shell_alone_understands_needs_one(void **state)
{
	static const char *const plain[] = {"true", "a 'b | c'", "a --x=1", "a \\$b", "a b#c", "echo", "./x y"};
	static const char *const shell[] = {"a | b", "a > b", "a; b", "a $b",	"a \"$b\"", "a `b`",
					    "a *",   "A=1 b", "~/x",  "exit 3", ":",	    "a &",
					    "a 'b",  "cd /",  "(a)",  "a\nb",	"a # b"};

	(void)state;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		assert_false(bench_words_need_shell(plain[i]));
	for (size_t i = 0; i < sizeof shell / sizeof *shell; i++)
		assert_true(bench_words_need_shell(shell[i]));
}

static void scans_count_exactly(void **state)
{
	struct bench_parameters p = {0};

	(void)state;
	assert_int_equal(bench_parameters_scan(&p, "x", "0.1", "0.7", "0.2", NULL), 0);
	assert_int_equal(p.items[0].count, 4);
	assert_string_equal(p.items[0].values[3], "0.7");
	assert_int_equal(bench_parameters_scan(&p, "y", "-2", "2", NULL, NULL), 0);
	assert_int_equal(p.items[1].count, 5);
	assert_string_equal(p.items[1].values[0], "-2");
	assert_string_equal(p.items[1].values[2], "0");
	assert_int_equal(bench_parameters_scan(&p, "z", "1", "1e300", NULL, NULL), -1);
	assert_int_equal(bench_parameters_scan(&p, "z", "1", "2", "1e-300", NULL), -1);
	bench_parameters_release(&p);
}

static void combinations_vary_the_first_parameter_fastest(void **state)
{
	struct bench_parameters p = {0};
	size_t n;
	char *text;

	(void)state;
	assert_int_equal(bench_parameters_list(&p, "a", "1,2,", NULL), 0);
	assert_int_equal(bench_parameters_list(&p, "b", "x\\,y", NULL), 0);
	assert_int_equal(bench_parameters_combinations(&p, &n, NULL), 0);
	assert_int_equal(n, 3);
	text = bench_parameters_fill(&p, 1, "{a}{b} {c} {a");
	assert_string_equal(text, "2x,y {c} {a");
	free(text);
	text = bench_parameters_fill(&p, 2, "[{a}]");
	assert_string_equal(text, "[]");
	free(text);
	bench_parameters_release(&p);
}

/* A benchmark of two commands with these times. */
static void make(struct bench *b, const double *a_times, const double *b_times, size_t n)
{
	*b = (struct bench){.count = 2, .confidence = 0.95, .margin = 0.01, .looks = 1, .clock_s = 1e-7};
	b->commands = calloc(2, sizeof *b->commands);
	for (size_t side = 0; side < 2; side++) {
		b->commands[side].line = strdup(side ? "b" : "a");
		for (size_t i = 0; i < n; i++) {
			double time = side ? b_times[i] : a_times[i];
			struct bench_run *r = bench_runs_add(&b->commands[side].runs);

			*r = (struct bench_run){.wall_s = time, .counts = !isnan(time), .timed_out = isnan(time)};
		}
	}
}

static void add_startup(struct bench *b, double time)
{
	for (int i = 0; i < 20; i++)
		*bench_runs_add(&b->startup) = (struct bench_run){.wall_s = time + 1e-6 * i, .counts = true};
}

static void a_command_that_takes_longer_in_every_pair_is_slower(void **state)
{
	const double a[] = {1, 2, 3, 4, 5, 6, 7, 8}, b[] = {1.1, 2.2, 3.3, 4.4, 5.5, 6.6, 7.7, 8.8};
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	make(&bench, a, b, 8);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_false(answer.items[0].compared);
	assert_string_equal(bench_verdict(answer.items[1].paired.verdict), "slower");
	assert_true(fabs(answer.items[1].paired.ratio - 1.1) < 1e-9);
	assert_true(fabs(answer.items[0].median - 4.5) < 1e-12);
	bench_answer_release(&answer);
	bench_release(&bench);
}

static void a_pair_with_a_run_that_does_not_count_is_none(void **state)
{
	const double a[] = {1, 1, NAN, 1, 1, 1, 1, 1}, b[] = {2, NAN, 2, 2, 2, 2, 2, 2};
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	make(&bench, a, b, 8);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.pairs, 6);
	assert_int_equal(answer.items[1].timed_out, 1);
	assert_int_equal(answer.items[1].counted, 7);
	bench_answer_release(&answer);
	bench_release(&bench);
}

static void the_shells_startup_is_subtracted_and_its_scatter_is_the_resolution(void **state)
{
	const double a[] = {0.101, 0.101, 0.101, 0.101, 0.101, 0.101, 0.101, 0.101};
	const double b[] = {0.001, 0.001001, 0.001, 0.0009, 0.001, 0.001, 0.001, 0.001};
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	make(&bench, a, b, 8);
	bench.shell = strdup("/bin/sh");
	add_startup(&bench, 0.001);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_true(fabs(answer.items[0].median - 0.0999905) < 1e-9);
	assert_true(answer.resolution_s > 1e-5 && answer.resolution_s < 2e-5);
	assert_true(answer.items[1].below_resolution);
	assert_true(answer.items[1].min >= 0);
	assert_string_equal(bench_verdict(answer.items[1].paired.verdict), "below resolution");
	bench_answer_release(&answer);
	bench_release(&bench);
}

static void commands_without_runs_have_no_figures(void **state)
{
	struct bench bench;
	struct bench_answer answer;
	bool decided;

	(void)state;
	make(&bench, NULL, NULL, 0);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_true(isnan(answer.items[0].median) && isnan(answer.items[0].mean) && isnan(answer.items[0].min));
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_TOO_FEW);
	assert_int_equal(bench_decided(&bench, &decided, NULL), 0);
	assert_false(decided);
	bench_answer_release(&answer);
	bench_release(&bench);
}

static void a_finding_among_many_has_to_survive_holm(void **state)
{
	const double a[] = {1, 1, 1, 1, 1, 1}, b[] = {2, 2, 2, 2, 2, 2};
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	make(&bench, a, b, 6);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_WORSE);
	bench_answer_release(&answer);
	/* The same figures once more: two comparisons, of which each has p = 2/64. */
	bench.commands = reallocarray(bench.commands, 3, sizeof *bench.commands);
	bench.commands[2] = (struct bench_command){.line = strdup("c")};
	for (int i = 0; i < 6; i++)
		*bench_runs_add(&bench.commands[2].runs) = (struct bench_run){.wall_s = 2, .counts = true};
	bench.count = 3;
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_UNDECIDED);
	assert_true(answer.items[1].held_back && answer.items[2].held_back);
	bench_answer_release(&answer);
	bench_release(&bench);
}

/* Of 20 pairs 17 are 1.02 and 3 are 1.005: below 1 is none, below the margin 3. Beyond it alone (p = 0.0026) that is a
 * finding, as one of 30 (0.077) it is none; were "no difference" corrected (p = 2e-6) it would be. */
static void holm_corrects_what_is_claimed(void **state)
{
	double a[20], b[20];
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	for (int i = 0; i < 20; i++) {
		a[i] = 1;
		b[i] = i % 7 == 3 ? 1.005 : 1.02 + i * 1e-6;
	}
	make(&bench, a, b, 20);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_WORSE);
	assert_true(fabs(answer.items[1].claim_p - 0.00257683) < 1e-7); /* scipy.stats.binomtest(3, 20).pvalue */
	bench_answer_release(&answer);
	bench.commands = reallocarray(bench.commands, 31, sizeof *bench.commands);
	for (; bench.count < 31; bench.count++) {
		bench.commands[bench.count] = (struct bench_command){.line = strdup("c")};
		for (int i = 0; i < 20; i++)
			*bench_runs_add(&bench.commands[bench.count].runs) =
				(struct bench_run){.wall_s = b[i], .counts = true};
	}
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_UNDECIDED);
	assert_true(answer.items[1].held_back);
	bench_answer_release(&answer);
	bench_release(&bench);
}

/* A difference below the margin is a claim of its own, that of "no difference". */
static void small_is_corrected_as_a_difference(void **state)
{
	double a[20], b[20];
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	for (int i = 0; i < 20; i++) {
		a[i] = 1;
		b[i] = i % 2 ? 1.005 : 1.02;
	}
	make(&bench, a, b, 20);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_int_equal(answer.items[1].paired.verdict, PAIRED_SMALL);
	assert_true(answer.items[1].claim_p == answer.items[1].paired.p);
	bench_answer_release(&answer);
	bench_release(&bench);
}

/* In one string, so that a note can be looked for. */
static bool has_note(const struct bench_figures *f, const char *text)
{
	for (size_t i = 0; i < f->notes.count; i++)
		if (strstr(f->notes.texts[i], text))
			return true;
	return false;
}

static void what_helps_is_not_told_where_it_is_in_use(void **state)
{
	const double a[] = {5, 1, 1.01, 0.99, 1, 1.02, 0.98, 1, 1.01, 0.99};
	struct bench bench;
	struct bench_answer answer;

	(void)state;
	make(&bench, a, a, 10);
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_true(has_note(&answer.items[0], "--warmup") && has_note(&answer.items[0], "--prepare"));
	bench_answer_release(&answer);
	bench.warmup = 3;
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_true(has_note(&answer.items[0], "the first run took"));
	assert_false(has_note(&answer.items[0], "--warmup"));
	bench_answer_release(&answer);
	bench.commands[0].extras[BENCH_PREPARE] = strdup("x");
	assert_int_equal(bench_judge(&bench, &answer, NULL), 0);
	assert_true(has_note(&answer.items[0], "the first run took"));
	assert_false(has_note(&answer.items[0], "--warmup") || has_note(&answer.items[0], "--prepare"));
	bench_answer_release(&answer);
	bench_release(&bench);
}

static void one_command_in_need_of_a_shell_gives_all_of_them_one(void **state)
{
	const char *const lines[] = {"true", "a | b"};
	struct bench_request r = {.lines = {lines, 2}, .shell = "auto"};
	struct bench b;
	struct bench_shell s;

	(void)state;
	assert_int_equal(bench_plan(&r, &b, &s, NULL), 0);
	assert_string_equal(b.shell, "/bin/sh");
	assert_string_equal(b.commands[0].words[1], "-c");
	assert_string_equal(s.empty[2], "");
	bench_release(&b);
	bench_shell_release(&s);
	r.lines.count = 1;
	assert_int_equal(bench_plan(&r, &b, &s, NULL), 0);
	assert_null(b.shell);
	assert_null(s.empty);
	bench_release(&b);
	bench_shell_release(&s);
}

static void a_reference_that_is_added_has_no_parameters(void **state)
{
	const char *const lines[] = {"x {n}"}, *const names[] = {"name {n}"};
	struct bench_request r = {
		.lines = {lines, 1}, .names = {names, 1}, .shell = "none", .reference = "ref {n}"};
	struct bench b;
	struct bench_shell s;

	(void)state;
	assert_int_equal(bench_parameters_list(&r.parameters, "n", "1,2", NULL), 0);
	assert_int_equal(bench_plan(&r, &b, &s, NULL), 0);
	assert_int_equal(b.count, 3);
	assert_int_equal(b.reference, 0);
	assert_string_equal(b.commands[0].line, "ref {n}");
	assert_int_equal(b.commands[0].parameter_count, 0);
	assert_string_equal(bench_label(&b.commands[2]), "name 2");
	bench_release(&b);
	bench_shell_release(&s);
	bench_parameters_release(&r.parameters);
}

static void a_reference_is_compared_with_lines_and_names_that_are_filled_in(void **state)
{
	const char *const lines[] = {"x {n}", "y {n}"}, *const names[] = {"name {n}"};
	static const struct {
		const char *reference;
		size_t count, index;
	} cases[] = {
		{"x 2", 4, 2},	  {"y 1", 4, 1},     {"name 2", 4, 2},
		{"x {n}", 4, 0},  {"name {n}", 4, 0}, {"x 3", 5, 0},
	};
	struct bench_request r = {.lines = {lines, 2}, .names = {names, 1}, .shell = "none"};

	(void)state;
	assert_int_equal(bench_parameters_list(&r.parameters, "n", "1,2", NULL), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bench b;
		struct bench_shell s;

		r.reference = cases[i].reference;
		assert_int_equal(bench_plan(&r, &b, &s, NULL), 0);
		assert_int_equal(b.count, cases[i].count);
		assert_int_equal(b.reference, cases[i].index);
		bench_release(&b);
		bench_shell_release(&s);
	}
	bench_parameters_release(&r.parameters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_as_sh_does),
		cmocka_unit_test(open_quotes_and_empty_lines_are_no_words),
		cmocka_unit_test(only_what_a_shell_alone_understands_needs_one),
		cmocka_unit_test(scans_count_exactly),
		cmocka_unit_test(combinations_vary_the_first_parameter_fastest),
		cmocka_unit_test(a_command_that_takes_longer_in_every_pair_is_slower),
		cmocka_unit_test(a_pair_with_a_run_that_does_not_count_is_none),
		cmocka_unit_test(the_shells_startup_is_subtracted_and_its_scatter_is_the_resolution),
		cmocka_unit_test(commands_without_runs_have_no_figures),
		cmocka_unit_test(a_finding_among_many_has_to_survive_holm),
		cmocka_unit_test(holm_corrects_what_is_claimed),
		cmocka_unit_test(small_is_corrected_as_a_difference),
		cmocka_unit_test(what_helps_is_not_told_where_it_is_in_use),
		cmocka_unit_test(one_command_in_need_of_a_shell_gives_all_of_them_one),
		cmocka_unit_test(a_reference_that_is_added_has_no_parameters),
		cmocka_unit_test(a_reference_is_compared_with_lines_and_names_that_are_filled_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
