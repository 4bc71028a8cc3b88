#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "made_profile.h"
#include "report/export_tree.h"
#include "report/json_stream.h"
#include "report/protobuf.h"

struct made {
	struct profile p;
	struct phases phases;
	struct export_input in;
	char *text;
	size_t length;
};

static void begin(struct made *m, int workers)
{
	*m = (struct made){0};
	made_profile(&m->p, workers);
	phases_init(&m->phases);
	m->in = (struct export_input){.profile = &m->p, .phases = &m->phases, .end = 1000};
}

static void finish(struct made *m)
{
	profile_release(&m->p);
	phases_release(&m->phases);
	free(m->text);
}

/* What the exporter writes is m->text afterwards. */
static int export(struct made *m, const char *format, struct error *err)
{
	const struct exporter *e = exporter_find(format);
	FILE *out;
	int got;

	assert_non_null(e);
	free(m->text);
	m->text = NULL;
	out = open_memstream(&m->text, &m->length);
	assert_non_null(out);
	got = e->write(&m->in, out, err);
	fclose(out);
	return got;
}

static void assert_exports(struct made *m, const char *format, const char *expected)
{
	struct error err = {""};

	assert_int_equal(profile_sort(&m->p, &err), 0);
	if (export(m, format, &err) != EXPORT_OK)
		fail_msg("%s", err.text);
	assert_string_equal(m->text, expected);
}

static void equal_stacks_are_one_line(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 1);
	made_samples(&m.p, 0, 0, "main;work", 3, 2);
	made_samples(&m.p, 10, 1, "main;work", 1, 1);
	made_samples(&m.p, 20, 1, "main", 1, 5);
	assert_exports(&m, "folded", "prog;main 5\nprog;main;work 7\n");
	finish(&m);
}

static void inlined_functions_are_frames(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 0, 0, "main;work+inner+leaf", 2, 1);
	assert_exports(&m, "folded", "prog;main;work;inner;leaf 2\n");
	finish(&m);
}

static void a_frame_may_be_a_line(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	m.in.by_line = true;
	made_samples(&m.p, 0, 0, "main;work", 2, 1);
	assert_exports(&m, "folded", "prog;main (made.c:11);work (made.c:11) 2\n");
	finish(&m);
}

static void code_without_a_name_and_samples_without_a_stack_are_kept(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 0, 0, "main;?", 2, 1);
	made_samples(&m.p, 10, 0, "", 3, 1);
	assert_exports(&m, "folded", "prog;main;prog!? 2\nprog;[no stack] 3\n");
	finish(&m);
}

static void the_samplers_own_frames_are_left_out(void **state)
{
	struct profile_module sampler = {.path = (char *)"/usr/lib/assay/libassay-sampler.so"};
	struct made m;
	struct error err;
	int node, lower;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 0, 0, "main", 1, 1);
	assert_int_equal(profile_add_module(&m.p, &sampler, &err), 2);
	node = profile_add_node(&m.p, 1, 2, 64, &err);
	assert_true(node > 0);
	lower = profile_add_node(&m.p, (uint32_t)node, 0, 96, &err);
	assert_true(lower > 0);
	assert_true(profile_add_sample(&m.p, &(struct profile_sample){5, 0, (uint32_t)node, 4, 0}, &err) >= 0);
	assert_true(profile_add_sample(&m.p, &(struct profile_sample){6, 0, (uint32_t)lower, 8, 0}, &err) >= 0);
	assert_exports(&m, "folded", "prog;main 5\nprog;main;prog!? 8\n");
	finish(&m);
}

static void names_cannot_break_a_line_apart(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 0, 0, "a\nb\"c\xff \t(d)\x7f", 1, 1);
	m.p.functions[0].name[1] = ';';
	assert_exports(&m, "folded", "prog;a:b\"c\xef\xbf\xbd  (d)  1\n");
	finish(&m);
}

static void set_phase(struct phase *p, const char *name, int64_t start, int64_t end)
{
	*p = (struct phase){.group = phase_group_of(name), .start = start, .end = end};
	snprintf(p->name, sizeof p->name, "%s", name);
}

static void a_group_has_its_samples_alone(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	m.phases.items = calloc(3, sizeof *m.phases.items);
	m.phases.count = 3;
	set_phase(&m.phases.items[0], "load", 100, 200);
	set_phase(&m.phases.items[1], "decode", 200, 300);
	set_phase(&m.phases.items[2], "mine", 300, 400);
	made_samples(&m.p, 50, 0, "early", 1, 1);
	made_samples(&m.p, 100, 0, "loading", 1, 1);
	made_samples(&m.p, 199, 0, "loading", 1, 1);
	made_samples(&m.p, 200, 0, "decoding", 1, 1);
	made_samples(&m.p, 900, 0, "late", 1, 1);
	m.in.group = "before";
	assert_exports(&m, "folded", "prog;early 1\n");
	m.in.group = "load";
	assert_exports(&m, "folded", "prog;loading 2\n");
	m.in.group = "mine";
	assert_exports(&m, "folded", "prog;late 1\n");
	m.in.group = "other";
	assert_exports(&m, "folded", "prog;late 1\n");
	finish(&m);
}

static void what_has_no_samples_is_refused_by_each_format_with_the_reason(void **state)
{
	struct made m;
	struct error err;

	(void)state;
	begin(&m, 0);
	assert_int_equal(profile_sort(&m.p, &err), 0);
	for (size_t i = 0; i < exporter_count; i++) {
		assert_int_equal(export(&m, exporters[i].name, &err), EXPORT_NOTHING);
		assert_string_equal(err.text, "there are no CPU samples in this run");
		assert_int_equal(m.length, 0);
	}
	m.phases.items = calloc(2, sizeof *m.phases.items);
	m.phases.count = 2;
	set_phase(&m.phases.items[0], "load", 100, 200);
	set_phase(&m.phases.items[1], "decode", 200, 300);
	made_samples(&m.p, 250, 0, "main", 1, 1);
	m.in.group = "load";
	assert_int_equal(export(&m, "pprof", &err), EXPORT_NOTHING);
	assert_string_equal(err.text, "option '--group': there are no CPU samples in 'load'");
	m.in.group = "loda";
	assert_int_equal(export(&m, "pprof", &err), EXPORT_NOTHING);
	assert_string_equal(err.text,
			    "option '--group': there is no group or phase 'loda' in this run; its groups are: "
			    "load, decode");
	finish(&m);
}

static void a_recursive_function_is_one_function_for_callgrind(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 0, 0, "f;g;f;f", 2, 1);
	made_samples(&m.p, 9, 0, "f", 1, 1);
	assert_exports(&m, "callgrind",
		       "# callgrind format\nversion: 1\ncreator: assay " ASSAY_VERSION "\ncmd: \npart: 1\n\n"
		       "positions: line\nevent: Samples : CPU samples, in sampling periods\n"
		       "event: CPU_ns : CPU time [ns]\nevents: Samples CPU_ns\nsummary: 3 30000000\n"
		       "\nob=(1) /usr/bin/prog\nfl=(2) src/made.c\nfn=(1) f\n11 3 30000000\n"
		       "cfn=(2) g\ncalls=2 7\n11 2 20000000\n"
		       "\nob=(3) ???\nfl=(1) ???\nfn=(6) [all threads]\n"
		       "cob=(1)\ncfi=(2)\ncfn=(1)\ncalls=3 7\n0 3 30000000\n"
		       "\ntotals: 3 30000000\n");
	finish(&m);
}

static json_t *parsed(const struct made *m)
{
	json_error_t problem;
	json_t *root = json_loadb(m->text, m->length, JSON_REJECT_DUPLICATES, &problem);

	if (!root)
		fail_msg("line %d: %s", problem.line, problem.text);
	return root;
}

static const char *text_at(const json_t *root, const char *list, size_t at, const char *key)
{
	return json_string_value(json_object_get(json_array_get(json_object_get(root, list), at), key));
}

/* Slices of one thread: what two samples have in common goes on, and nothing is open while it did not run. */
static void slices_join_where_the_thread_ran_on(void **state)
{
	static const char *const events[] = {"M", "M", "B", "B", "E", "B", "E", "E", "B", "E"};
	struct made m;
	struct error err;
	json_t *root;

	(void)state;
	begin(&m, 0);
	made_samples(&m.p, 10000000, 0, "main;a", 1, 1);
	made_samples(&m.p, 22000000, 0, "main;b", 1, 1);
	made_samples(&m.p, 90000000, 0, "main", 1, 1);
	assert_int_equal(profile_sort(&m.p, &err), 0);
	assert_int_equal(export(&m, "chrome", &err), EXPORT_OK);
	root = parsed(&m);
	assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), sizeof events / sizeof *events);
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		assert_string_equal(text_at(root, "traceEvents", i, "ph"), events[i]);
	assert_string_equal(text_at(root, "traceEvents", 5, "name"), "b");
	assert_string_equal(text_at(root, "traceEvents", 8, "name"), "main");
	json_decref(root);
	assert_non_null(strstr(m.text, "{\"ph\":\"B\",\"pid\":100,\"tid\":100,\"ts\":80000.000,\"name\":\"main\"}"));
	finish(&m);
}

/* Names of any bytes, of any length, and times at the ends of what fits, in every format that can be read back here. */
static void hostile_names_and_times_give_valid_json(void **state)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, INT64_MAX - 1, INT64_MAX};
	char *name = malloc(10001);
	struct made m;
	struct error err;

	(void)state;
	for (size_t i = 0; i < 10000; i++)
		name[i] = (char)(1 + i * 7919 % 255);
	name[10000] = '\0';
	begin(&m, 0);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		made_samples(&m.p, times[i], 0, i % 2 ? "main;a" : "main;b", 1, i ? UINT32_MAX : 0);
	free(m.p.functions[0].name);
	m.p.functions[0].name = name;
	assert_int_equal(profile_sort(&m.p, &err), 0);
	m.in.start = INT64_MIN;
	m.in.end = INT64_MAX;
	m.in.label = "a\\\"b\nc\x01\xff";
	for (size_t i = 0; i < exporter_count; i++) {
		assert_int_equal(export(&m, exporters[i].name, &err), EXPORT_OK);
		if (strstr(exporters[i].extension, "json"))
			json_decref(parsed(&m));
	}
	finish(&m);
}

static void a_million_samples_come_out_whole(void **state)
{
	const uint32_t count = 1000000;
	uint64_t total = 0;
	struct made m;
	struct error err;
	char *line;

	(void)state;
	begin(&m, 7);
	for (uint32_t i = 0; i < 1000; i++) {
		char stack[64];

		snprintf(stack, sizeof stack, "main;f%u;g%u;h%u;leaf%u", i % 7, i % 31, i % 101, i);
		made_samples(&m.p, (int64_t)i * 997 % 1000 * 1000, i % 8, stack, count / 1000, 3);
	}
	assert_int_equal(profile_sort(&m.p, &err), 0);
	for (size_t i = 0; i < exporter_count; i++)
		assert_int_equal(export(&m, exporters[i].name, &err), EXPORT_OK);
	assert_int_equal(export(&m, "folded", &err), EXPORT_OK);
	for (char *rest = m.text; (line = strsep(&rest, "\n")) && *line;)
		total += strtoull(strrchr(line, ' ') + 1, NULL, 10);
	assert_int_equal(total, 3 * (uint64_t)count);
	finish(&m);
}

static void an_extension_tells_the_format(void **state)
{
	(void)state;
	for (size_t i = 0; i < exporter_count; i++) {
		char path[64];

		snprintf(path, sizeof path, "a.b/run%s", exporters[i].extension);
		assert_ptr_equal(exporter_for_path(path), &exporters[i]);
	}
	assert_null(exporter_for_path(".folded"));
	assert_null(exporter_for_path("run.json"));
	assert_null(exporter_find("Folded"));
}

static void numbers_of_every_size_are_written_as_they_are(void **state)
{
	static const struct {
		int64_t ns;
		const char *us;
	} times[] = {{0, "0.000"}, {-1, "-0.001"}, {1234567, "1234.567"}, {INT64_MIN, "-9223372036854775.808"}};
	struct buf message;

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		char text[64] = "";
		FILE *out = fmemopen(text, sizeof text, "w");

		json_stream_us(out, times[i].ns);
		fclose(out);
		assert_string_equal(text, times[i].us);
	}
	buf_init(&message);
	protobuf_number(&message, 1, 150);
	protobuf_number(&message, 2, 0);
	protobuf_bytes(&message, 16, "ab", 2);
	protobuf_varint(&message, UINT64_MAX);
	assert_int_equal(message.length, 3 + 5 + 10);
	assert_memory_equal(message.text, "\x08\x96\x01\x82\x01\x02" "ab\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 18);
	buf_release(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_one_line),
		cmocka_unit_test(inlined_functions_are_frames),
		cmocka_unit_test(a_frame_may_be_a_line),
		cmocka_unit_test(code_without_a_name_and_samples_without_a_stack_are_kept),
		cmocka_unit_test(the_samplers_own_frames_are_left_out),
		cmocka_unit_test(names_cannot_break_a_line_apart),
		cmocka_unit_test(a_group_has_its_samples_alone),
		cmocka_unit_test(what_has_no_samples_is_refused_by_each_format_with_the_reason),
		cmocka_unit_test(a_recursive_function_is_one_function_for_callgrind),
		cmocka_unit_test(slices_join_where_the_thread_ran_on),
		cmocka_unit_test(hostile_names_and_times_give_valid_json),
		cmocka_unit_test(a_million_samples_come_out_whole),
		cmocka_unit_test(an_extension_tells_the_format),
		cmocka_unit_test(numbers_of_every_size_are_written_as_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
