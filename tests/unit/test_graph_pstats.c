#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "graph/reference.h"
#include "ingest/graph_reader.h"

/* Pieces of a marshal file: a text, an integer, a number, and a key of a file "a", line 1 and a name of one letter. */
#define TEXT(t) "z\1" t
#define INT(n)  "i" n "\0\0\0"
#define REAL    "g\0\0\0\0\0\0\xf0\x3f" /* 1.0 */
#define KEY(n)  ")\3" TEXT("a") INT("\1") TEXT(n)
#define HEAD    ")\5" INT("\1") INT("\2") REAL REAL
#define EDGE    ")\4" INT("\4") INT("\3") REAL REAL

static int read_bytes(struct graph *g, const char *bytes, size_t length, struct error *err)
{
	const struct graph_reading how = {.source = "x.prof"};
	char *exact = malloc(length + 1); /* of the exact size, so that reading past its end is noticed */
	int status;

	assert_non_null(exact);
	exact = realloc(exact, length ? length : 1);
	memcpy(exact, bytes, length);
	graph_init(g);
	status = graph_reader_pstats.read(exact, length, &how, g, err);
	free(exact);
	return status;
}

static void data_file(const char *name, struct buf *out)
{
	char path[4096];
	FILE *in;

	snprintf(path, sizeof path, "%s/pstats/%s", getenv("ASSAY_TEST_DATA"), name);
	in = fopen(path, "rb");
	assert_non_null(in);
	buf_init(out);
	for (;;) {
		char *to = buf_reserve(out, 65536);
		size_t got;

		assert_non_null(to);
		got = fread(to, 1, 65536, in);
		out->length += got;
		if (!got)
			break;
	}
	buf_putc(out, '\0');
	out->length--;
	fclose(in);
}

static void assert_shows(const struct buf *profile, enum graph_sort sort, bool all, int width, const char *expected)
{
	struct graph_rows_options o = {.start = GRAPH_NONE, .sort = sort, .keep = all ? NULL : graph_filter_reference};
	struct error err = {""};
	struct buf text, wanted;
	struct graph g;

	if (read_bytes(&g, profile->text, profile->length, &err) < 0)
		fail_msg("%s", err.text);
	buf_init(&text);
	assert_int_equal(graph_reference_text(&g, &o, width, &text, NULL), 0);
	buf_putc(&text, '\n');
	data_file(expected, &wanted);
	assert_string_equal(text.text, wanted.text);
	buf_release(&text);
	buf_release(&wanted);
	graph_release(&g);
}

static void profiles_are_shown_as_the_reference_shows_them(void **state)
{
	static const struct {
		const char *profile, *expected;
		enum graph_sort sort;
		bool all;
		int width;
	} cases[] = {
		{"fct4.prof", "fct4.tree.txt", GRAPH_BY_LINE, false, 60},
		{"fct4.prof", "fct4.tree-cumulative.txt", GRAPH_BY_CUMULATIVE, false, 60},
		{"odd.prof", "odd.tree.txt", GRAPH_BY_LINE, false, 60},
		{"odd.prof", "odd.tree-time.txt", GRAPH_BY_TIME, false, 60},
		{"odd.prof", "odd.tree-cumulative.txt", GRAPH_BY_CUMULATIVE, false, 60},
		{"odd.prof", "odd.tree-all.txt", GRAPH_BY_LINE, true, 60},
		{"odd.prof", "odd.tree-narrow.txt", GRAPH_BY_LINE, false, 11},
		{"stdlib.prof", "stdlib.tree.txt", GRAPH_BY_LINE, false, 60},
		{"stdlib.prof", "stdlib.tree-all.txt", GRAPH_BY_LINE, true, 60},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf profile;

		data_file(cases[i].profile, &profile);
		assert_true(graph_reader_pstats.is(profile.text, profile.length));
		assert_shows(&profile, cases[i].sort, cases[i].all, cases[i].width, cases[i].expected);
		buf_release(&profile);
	}
}

static void every_version_of_the_format_says_the_same(void **state)
{
	static const char *const names[] = {"odd-0.prof", "odd-1.prof", "odd-2.prof", "odd-3.prof"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct buf profile;

		data_file(names[i], &profile);
		assert_true(graph_reader_pstats.is(profile.text, profile.length));
		assert_shows(&profile, GRAPH_BY_LINE, false, 60, "odd.tree.txt");
		buf_release(&profile);
	}
}

static void a_profile_cut_anywhere_is_refused(void **state)
{
	struct buf profile;

	(void)state;
	data_file("odd.prof", &profile);
	for (size_t length = 0; length < profile.length; length++) {
		struct error err = {""};
		struct graph g;

		assert_int_equal(read_bytes(&g, profile.text, length, &err), -1);
		assert_non_null(strstr(err.text, "x.prof: byte "));
		graph_release(&g);
	}
	buf_release(&profile);
}

static void figures_of_calls_stand_the_other_way_round(void **state)
{
	static const char bytes[] = "{" KEY("f") HEAD "{" KEY("m") EDGE "0" KEY("m") HEAD "{00";
	struct graph g;

	(void)state;
	assert_int_equal(read_bytes(&g, bytes, sizeof bytes - 1, NULL), 0);
	assert_int_equal(g.nodes[0].nc1, 1);
	assert_int_equal(g.nodes[0].nc2, 2);
	assert_int_equal(g.edges[0].nc1, 3);
	assert_int_equal(g.edges[0].nc2, 4);
	assert_int_equal(g.edges[0].caller, 1);
	graph_release(&g);
}

static void a_key_that_comes_twice_has_its_first_place_and_its_last_value(void **state)
{
	static const char bytes[] = "{" KEY("f") HEAD "{" KEY("f") EDGE "0" KEY("m") HEAD "{0" KEY("f") ")\5" INT("\7")
		INT("\7") REAL REAL "{" KEY("m") EDGE KEY("m") ")\4" INT("\5") INT("\5") REAL REAL "0"
												   "0";
	struct graph g;

	(void)state;
	assert_int_equal(read_bytes(&g, bytes, sizeof bytes - 1, NULL), 0);
	assert_int_equal(g.node_count, 2);
	assert_string_equal(g.nodes[0].name, "f");
	assert_int_equal(g.nodes[0].nc1, 7);
	assert_int_equal(g.edge_count, 1);
	assert_int_equal(g.edges[0].caller, 1);
	assert_int_equal(g.edges[0].nc2, 5);
	graph_release(&g);
}

static void counts_without_times_are_divided_and_said_so(void **state)
{
	static const char bytes[] = "{" KEY("f") HEAD "{" KEY("m") INT("\3") KEY("f") INT("\1") "0" KEY("m") HEAD "{00";
	struct graph g;

	(void)state;
	assert_int_equal(read_bytes(&g, bytes, sizeof bytes - 1, NULL), 0);
	assert_true(g.edge_costs_estimated);
	assert_true(g.edges[0].tall == 0.75 && g.edges[1].tall == 0.25);
	assert_int_equal(g.edges[0].nc2, 3);
	assert_int_equal(g.note_count, 1);
	graph_release(&g);
}

static void bytes_behind_the_profile_are_a_note(void **state)
{
	static const char bytes[] = "{" KEY("f") HEAD "{00more";
	struct graph g;

	(void)state;
	assert_int_equal(read_bytes(&g, bytes, sizeof bytes - 1, NULL), 0);
	assert_int_equal(g.note_count, 1);
	assert_string_equal(g.notes[0], "4 bytes behind the profile are not looked at");
	graph_release(&g);
}

static void what_is_wrong_is_one_sentence(void **state)
{
#define CASE(bytes, sentence) {bytes, sizeof bytes - 1, "x.prof: " sentence}
	static const struct { const char *bytes; size_t length; const char *sentence;
	} cases[] = {
		CASE("{0", "the profile has no functions"),
		CASE("{" KEY("f") ")\4",
		     "byte 14: the profile is cut short: what begins here goes on behind its end of 16 bytes"),
		CASE("{(\xff\xff\xff\x7f",
		     "byte 1: the profile is cut short: what begins here goes on behind its end of 6 bytes"),
		CASE("{u\xff\xff\xff\xff", "byte 1: the size 4294967295 is no size"),
		CASE("{r\0\0\0\0", "byte 1: a reference to object 0, but only 0 come before it"),
		CASE("\xfb\xa9\3r\1\0\0\0", "byte 3: a reference to an object that it is part of (a circle)"),
		CASE("\xfb"
		     "r\0\0\0\0",
		     "byte 1: a reference to an object that it is part of (a circle)"),
		CASE("{c", "byte 1: a code object, as `python -m profile` puts it into its profile of a whole script: "
			   "`python -m cProfile` names it instead"),
		CASE("{\x07", "byte 1: the type code 0x07 is none of Python's marshal format"),
		CASE("{" TEXT("a") "N0", "byte 1: expected a function as (file, line, name)"),
		CASE("{" KEY("f") "N0",
		     "byte 14: expected a function's figures as (calls, calls, time, time, callers)"),
		CASE("{" KEY("f") ")\4" INT("\1") INT("\1") REAL REAL "0",
		     "byte 14: expected a function's figures as (calls, calls, time, time, callers)"),
		CASE("{" KEY("f") ")\5" REAL INT("\1") REAL REAL "{00",
		     "byte 14: a number of calls is no whole number"),
		CASE("{" KEY("f") ")\5i\xff\xff\xff\xff" INT("\1") REAL REAL "{00",
		     "byte 14: a number of calls is negative"),
		CASE("{" KEY("f") ")\5l\5\0\0\0\0\0\0\0\0\0\0\0\xff\x7f" INT("\1") REAL REAL "{00",
		     "byte 14: a number of calls is beyond 64 bits"),
		CASE("{" KEY("f") ")\5" INT("\1") INT("\1") "f\3nan" REAL "{00", "byte 14: a time is not finite"),
		CASE("{" KEY("f") HEAD "N0", "byte 14: expected a function's callers as a dictionary"),
		CASE("{" KEY("f") HEAD "{" KEY("g") EDGE "00",
		     "byte 45: 'a:1:g' calls, and is not among the functions"),
		CASE("{" KEY("f") HEAD "{" KEY("f") "N00",
		     "byte 45: expected a caller's figures as (calls, calls, time, time)"),
		CASE("{)\3z\3a/b" INT("\1") TEXT("f") HEAD "{0)\3z\3a\\b" INT("\1") TEXT("f") HEAD "{00",
		     "byte 48: the file 'a\\b' is there with other slashes too, and 'f' in both"),
		CASE("[[[[[[[[[[[[[[[[[[[[",
		     "byte 0: the profile is cut short: what begins here goes on behind its end of 20 bytes"),
		CASE("{)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1)\1N0",
		     "byte 31: objects are nested more than 16 deep"),
	};
#undef CASE

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = {""};
		struct graph g;

		assert_int_equal(read_bytes(&g, cases[i].bytes, cases[i].length, &err), -1);
		assert_string_equal(err.text, cases[i].sentence);
		graph_release(&g);
	}
}

/* One dictionary of callers that all functions refer to: small to write, and no end to it. */
static void a_dictionary_that_is_repeated_without_end_is_refused(void **state)
{
	enum { FUNCTIONS = 200 };
	struct error err = {""};
	struct graph g;
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_putc(&b, '{');
	for (int f = 0; f < FUNCTIONS; f++) {
		buf_append(&b, ")\3z\1ai\0\0\0\0z\3", 12);
		buf_printf(&b, "%03d", f);
		buf_append(&b, HEAD, sizeof HEAD - 1);
		if (f) {
			buf_append(&b, "r\0\0\0\0", 5);
			continue;
		}
		buf_putc(&b, (char)('{' | 0x80));
		for (int c = 0; c < FUNCTIONS; c++) {
			buf_append(&b, ")\3z\1ai\0\0\0\0z\3", 12);
			buf_printf(&b, "%03d", c);
			buf_append(&b, INT("\1"), 5);
		}
		buf_putc(&b, '0');
	}
	buf_putc(&b, '0');
	assert_int_equal(read_bytes(&g, b.text, b.length, &err), -1);
	assert_non_null(strstr(err.text, "the profile repeats callers more often than its size allows"));
	graph_release(&g);
	buf_release(&b);
}

static void texts_that_are_no_profile_are_left_to_others(void **state)
{
	static const char *const texts[] = {"",	  "{", "{}", "{\"a\":1}", "{\n", "main;f 3\n", "# callgrind format\n",
					    "[1]"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_false(graph_reader_pstats.is(texts[i], strlen(texts[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_shown_as_the_reference_shows_them),
		cmocka_unit_test(every_version_of_the_format_says_the_same),
		cmocka_unit_test(a_profile_cut_anywhere_is_refused),
		cmocka_unit_test(figures_of_calls_stand_the_other_way_round),
		cmocka_unit_test(a_key_that_comes_twice_has_its_first_place_and_its_last_value),
		cmocka_unit_test(counts_without_times_are_divided_and_said_so),
		cmocka_unit_test(bytes_behind_the_profile_are_a_note),
		cmocka_unit_test(what_is_wrong_is_one_sentence),
		cmocka_unit_test(a_dictionary_that_is_repeated_without_end_is_refused),
		cmocka_unit_test(texts_that_are_no_profile_are_left_to_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
