#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph_texts.h"

#define READER (&graph_reader_speedscope)
#define FRAMES "{\"shared\":{\"frames\":[{\"name\":\"f\",\"file\":\"x.c\",\"line\":3},{\"name\":\"g\"}]},\"profiles\":["
#define EVENT(type, frame, at) "{\"type\":\"" type "\",\"frame\":" #frame ",\"at\":" #at "}"
#define EVENTED(unit, events) "{\"type\":\"evented\",\"unit\":\"" unit "\",\"endValue\":20,\"events\":[" events "]}"
#define SAMPLED(unit, samples, weights)                                                                                \
	"{\"type\":\"sampled\",\"unit\":\"" unit "\",\"samples\":[" samples "],\"weights\":[" weights "]}"

static const char two_calls[] = FRAMES EVENTED(
	"milliseconds", EVENT("O", 0, 0) "," EVENT("O", 1, 2) "," EVENT("C", 1, 5) "," EVENT("C", 0, 10)) "]}";

static void events_are_calls_with_times(void **state)
{
	struct graph_read r = read_good(READER, two_calls);

	(void)state;
	assert_true(READER->is(two_calls, sizeof two_calls - 1));
	assert_costs(&r.graph, "f", 7, 10);
	assert_costs(&r.graph, "g", 3, 3);
	assert_int_equal(node_named(&r.graph, "g")->nc2, 1);
	assert_int_equal(node_named(&r.graph, "f")->line, 3);
	assert_string_equal(node_named(&r.graph, "f")->file, "x.c");
	assert_string_equal(r.graph.unit, "ms");
	assert_true(r.graph.per_second == 1e-3);
	graph_release(&r.graph);
}

static void samples_are_stacks_with_weights(void **state)
{
	struct graph_read r = read_good(READER, FRAMES SAMPLED("none", "[0,1],[0],[]", "2,1,4") "]}");

	(void)state;
	assert_costs(&r.graph, "f", 1, 3);
	assert_costs(&r.graph, "g", 2, 2);
	assert_int_equal(node_named(&r.graph, "g")->nc2, -1);
	assert_string_equal(r.graph.unit, "samples");
	assert_string_equal(r.graph.notes[0], "X: 1 samples have no stack and are left out.");
	graph_release(&r.graph);
}

static void profiles_are_added_up_in_the_unit_of_the_first(void **state)
{
	struct graph_read r =
		read_good(READER, FRAMES SAMPLED("milliseconds", "[0]", "5") "," SAMPLED(
					  "seconds", "[0],[1]", "1,2") "," SAMPLED("bytes", "[0]", "9") "]}");

	(void)state;
	assert_costs(&r.graph, "f", 1005, 1005);
	assert_costs(&r.graph, "g", 2000, 2000);
	assert_int_equal(r.graph.note_count, 2);
	assert_string_equal(r.graph.notes[0],
			    "X: profile 3 is left out: its unit is bytes, and that of the others milliseconds.");
	assert_string_equal(r.graph.notes[1], "X: its 3 profiles are added up.");
	graph_release(&r.graph);
}

static void profiles_are_chosen_by_their_unit(void **state)
{
	static const char text[] = FRAMES SAMPLED("seconds", "[1]", "1") "," SAMPLED("bytes", "[0]", "9") "]}";
	struct graph_read bytes = read_bytes(READER, text, sizeof text - 1, "bytes", false),
			  wrong = read_bytes(READER, text, sizeof text - 1, "Ir", false);

	(void)state;
	assert_costs(&bytes.graph, "f", 9, 9);
	assert_true(bytes.graph.total == 9);
	assert_string_equal(wrong.err.text, "X: there is no unit 'Ir' to choose profiles by; these are: nanoseconds, "
					    "microseconds, milliseconds, seconds, bytes, none");
	graph_release(&bytes.graph);
	graph_release(&wrong.graph);
}

static void functions_that_never_close_run_to_the_end(void **state)
{
	struct graph_read r = read_good(READER, FRAMES EVENTED("seconds", EVENT("O", 0, 1) "," EVENT("O", 1, 4)) "]}");

	(void)state;
	assert_costs(&r.graph, "f", 3, 19);
	assert_costs(&r.graph, "g", 16, 16);
	assert_int_equal(r.graph.note_count, 1);
	graph_release(&r.graph);
}

static void what_cannot_be_is_refused_with_its_place(void **state)
{
	(void)state;
	assert_refused(READER, "{\"profiles\":[]}", "X: it has no list \"shared\".\"frames\"");
	assert_refused(READER, "{\"shared\":{}}", "X: it has no list \"profiles\"");
	assert_refused(READER, FRAMES "]}", "X: its profiles hold no stacks");
	assert_refused(READER, "{\"shared\":{\"frames\":[3]},\"profiles\":[]}", "X: frame 0 has no name");
	assert_refused(READER, FRAMES "{\"type\":\"tree\"}]}", "X: profile 1 is neither \"sampled\" nor \"evented\"");
	assert_refused(READER, FRAMES SAMPLED("eggs", "", "") "]}", "X: profile 1 has no known unit: 'eggs'");
	assert_refused(READER, FRAMES SAMPLED("none", "[0],[1]", "1") "]}",
		       "X: profile 1 does not have one weight for each of its samples");
	assert_refused(READER, FRAMES SAMPLED("none", "[0],[2]", "1,1") "]}",
		       "X: profile 1: a frame that is not in the file, in sample 1");
	assert_refused(READER, FRAMES SAMPLED("none", "[0]", "-1") "]}",
		       "X: profile 1: no stack and weight in sample 0");
	assert_refused(READER, FRAMES EVENTED("none", EVENT("C", 0, 0)) "]}",
		       "X: profile 1: a function closes that is not the innermost one, in event 0");
	assert_refused(READER, FRAMES EVENTED("none", EVENT("O", 0, 5) "," EVENT("C", 0, 4)) "]}",
		       "X: profile 1: time goes back in event 1");
	assert_refused(READER, FRAMES EVENTED("none", EVENT("X", 0, 5)) "]}",
		       "X: profile 1: neither \"O\" nor \"C\" in event 0");
	assert_refused(READER, FRAMES EVENTED("none", EVENT("O", -1, 5)) "]}",
		       "X: profile 1: no time or no known frame in event 0");
}

static void a_file_that_was_cut_anywhere_is_read_or_refused(void **state)
{
	(void)state;
	assert_cut_anywhere(READER, two_calls, sizeof two_calls - 1);
}

static void a_file_that_would_fill_the_memory_is_refused_before(void **state)
{
	size_t length = (size_t)6 << 20;
	char *text = malloc(length);
	struct graph_read r;

	(void)state;
	assert_non_null(text);
	memset(text, '[', length);
	r = read_bytes(READER, text, length, NULL, false);
	assert_int_equal(r.result, -1);
	assert_non_null(strstr(r.err.text, "MiB are the most"));
	graph_release(&r.graph);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_calls_with_times),
		cmocka_unit_test(samples_are_stacks_with_weights),
		cmocka_unit_test(profiles_are_added_up_in_the_unit_of_the_first),
		cmocka_unit_test(profiles_are_chosen_by_their_unit),
		cmocka_unit_test(functions_that_never_close_run_to_the_end),
		cmocka_unit_test(what_cannot_be_is_refused_with_its_place),
		cmocka_unit_test(a_file_that_was_cut_anywhere_is_read_or_refused),
		cmocka_unit_test(a_file_that_would_fill_the_memory_is_refused_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
