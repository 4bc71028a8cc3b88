#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "graph_texts.h"
#include "hdf5_plugin.h"
#include "record/graph_input.h"
#include "scratch.h"

static struct graph_read read_input(const struct graph_input *in)
{
	struct graph_read r = {.err.text = ""};
	struct warnings warnings;

	graph_init(&r.graph);
	warnings_init(&warnings);
	r.result = graph_input_read(in, &r.graph, &warnings, &r.err);
	warnings_release(&warnings);
	return r;
}

static struct graph_read read_path(const char *path)
{
	return read_input(&(struct graph_input){.path = path});
}

static const char *write_text(const char *name, const char *text)
{
	const char *path = scratch_path(name);

	assert_int_equal(fs_write_file(path, text, strlen(text), NULL), 0);
	return path;
}

static void assert_error(struct graph_read r, const char *part)
{
	assert_int_equal(r.result, -1);
	if (!strstr(r.err.text, part))
		fail_msg("\"%s\" is not in: %s", part, r.err.text);
	graph_release(&r.graph);
}

static void the_content_tells_the_format_whatever_the_name(void **state)
{
	struct graph_read folded = read_path(write_text("a.prof", "main;work 3\n")),
			  callgrind = read_path(write_text("b.json", "events: Ir\nfn=main\n1 3\n"));

	(void)state;
	assert_string_equal(folded.graph.source, "folded");
	assert_string_equal(callgrind.graph.source, "callgrind");
	assert_true(folded.graph.total == 3 && callgrind.graph.total == 3);
	graph_release(&folded.graph);
	graph_release(&callgrind.graph);
}

static void what_is_no_profile_is_told_which_formats_there_are(void **state)
{
	(void)state;
	assert_error(read_path(write_text("prose", "Dear reader,\n")),
		     "its content is of none of these, and so no profile of a known format (");
	assert_error(read_path(write_text("prose", "Dear reader,\n")), "pstats, callgrind, speedscope, folded");
	assert_error(read_path(write_text("empty", "")), "it is empty");
	assert_error(read_path(scratch_path("absent")), "absent: No such file or directory");
}

static void a_folder_that_is_no_run_or_has_nothing_to_show_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(scratch_path("run"), 0777), 0);
	assert_error(read_path(scratch_path("run")), "is no run directory: it has no run.json");
	write_text("run/run.json", "{}");
	assert_error(read_path(scratch_path("run")), "has neither CPU samples nor regions");
	assert_error(read_input(&(struct graph_input){.path = scratch_path("run"), .regions = true}),
		     "its program marked no regions, or they were not recorded");
	assert_error(read_input(&(struct graph_input){.path = write_text("a", "main 1\n"), .regions = true}),
		     "is no file of regions, and no run directory");
}

static void regions_are_functions_and_their_calls_are_exact(void **state)
{
	struct graph_read r;
	char path[4096];
	double total = 0;

	(void)state;
	need_plugin();
	snprintf(path, sizeof path, "%s/regions/before.h5", getenv("ASSAY_TEST_DATA"));
	r = read_path(path);
	if (r.result < 0)
		fail_msg("%s", r.err.text);
	assert_string_equal(r.graph.source, "regions");
	assert_string_equal(r.graph.unit, "s");
	assert_int_equal(node_named(&r.graph, "fib")->nc2, 465);
	for (size_t i = 1; i < r.graph.way_count; i++)
		total += r.graph.ways[i].self;
	assert_true(total > 0 && r.graph.total > 0.999999 * total && r.graph.total < 1.000001 * total);
	graph_release(&r.graph);
	assert_error(read_input(&(struct graph_input){.path = path, .event = "Ir"}),
		     "regions have no events to choose from");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_content_tells_the_format_whatever_the_name, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(what_is_no_profile_is_told_which_formats_there_are, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_folder_that_is_no_run_or_has_nothing_to_show_is_refused, scratch_make,
						scratch_remove),
		cmocka_unit_test(regions_are_functions_and_their_calls_are_exact),
	};
	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
