#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "model/profile.h"
#include "scratch.h"
#include "store/profile_file.h"

/* Two modules and three places, without names. */
static void fill(struct profile *p)
{
	struct profile_module a = {.path = (char *)"/lib/a.so", .build_id = {0xab, 0x01}, .build_id_length = 2};
	struct profile_module b = {.kind = PROFILE_ANON, .path = (char *)"[jit]"};
	struct error err = {""};

	profile_init(p);
	p->hz = 199;
	assert_int_equal(profile_add_image(p, 1, 0, 0, "x", "", &err), 0);
	assert_int_equal(profile_add_thread(p, 0, 1, "x", &err), 0);
	assert_int_equal(profile_add_module(p, &a, &err), 0);
	assert_int_equal(profile_add_module(p, &b, &err), 1);
	assert_int_equal(profile_add_node(p, 0, 0, 0x10, &err), 1);
	assert_int_equal(profile_add_node(p, 1, 1, UINT64_MAX - 1, &err), 2);
	assert_int_equal(profile_add_node(p, 1, 0, 0x30, &err), 3);
}

static void name(struct profile *p)
{
	struct profile_frame frames[2];
	struct error err = {""};

	assert_int_equal(profile_add_function(p, 0, true, "inlined<\"int\">", "/src/a.h", 7, &frames[0].function, &err),
			 0);
	frames[0].line = 8;
	assert_int_equal(profile_add_function(p, 0, true, "outer", "/src/a.c", 70, &frames[1].function, &err), 0);
	frames[1].line = 80;
	assert_int_equal(profile_set_frames(p, 0, frames, 2, &err), 0);
	assert_int_equal(profile_add_function(p, 1, false, "[jit]!?", NULL, 0, &frames[0].function, &err), 0);
	frames[0].line = 0;
	assert_int_equal(profile_set_frames(p, 1, frames, 1, &err), 0);
	p->modules[0].note = strdup("names from elsewhere");
}

static void names_come_back_as_they_were(void **state)
{
	struct profile p, q;
	struct error err = {""};
	const struct profile_function *f;

	(void)state;
	fill(&p);
	name(&p);
	fill(&q);
	if (profile_file_write(scratch_path("p.json"), &p, &err) < 0 ||
	    profile_file_read(scratch_path("p.json"), &q, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(q.locations[0].count, 2);
	f = &q.functions[q.frames[q.locations[0].first].function];
	assert_string_equal(f->name, "inlined<\"int\">");
	assert_string_equal(f->file, "/src/a.h");
	assert_int_equal(f->line, 7);
	assert_true(f->known);
	assert_int_equal(q.frames[q.locations[0].first].line, 8);
	assert_int_equal(q.frames[q.locations[0].first + 1].line, 80);
	assert_int_equal(q.locations[1].count, 1);
	f = &q.functions[q.frames[q.locations[1].first].function];
	assert_string_equal(f->name, "[jit]!?");
	assert_null(f->file);
	assert_false(f->known);
	/* One that had no names stays without. */
	assert_int_equal(q.locations[2].count, 0);
	assert_string_equal(q.modules[0].note, "names from elsewhere");
	assert_null(q.modules[1].note);
	profile_release(&p);
	profile_release(&q);
}

static void places_in_another_order_find_their_names(void **state)
{
	struct profile_module a = {.path = (char *)"/lib/a.so", .build_id = {0xab, 0x01}, .build_id_length = 2};
	struct profile_module b = {.kind = PROFILE_ANON, .path = (char *)"[jit]"};
	struct profile p, q;
	struct error err = {""};

	(void)state;
	fill(&p);
	name(&p);
	profile_init(&q);
	profile_add_image(&q, 1, 0, 0, "x", "", &err);
	profile_add_module(&q, &a, &err);
	profile_add_module(&q, &b, &err);
	assert_int_equal(profile_add_node(&q, 0, 0, 0x99, &err), 1);
	assert_int_equal(profile_add_node(&q, 0, 1, UINT64_MAX - 1, &err), 2);
	assert_int_equal(profile_add_node(&q, 0, 0, 0x10, &err), 3);
	assert_int_equal(profile_file_write(scratch_path("p.json"), &p, &err), 0);
	if (profile_file_read(scratch_path("p.json"), &q, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(q.locations[0].count, 0);
	assert_string_equal(q.functions[q.frames[q.locations[1].first].function].name, "[jit]!?");
	assert_int_equal(q.locations[2].count, 2);
	profile_release(&p);
	profile_release(&q);
}

static void names_of_another_run_are_refused(void **state)
{
	struct profile_module other = {.path = (char *)"/lib/b.so"};
	struct profile p, q;
	struct error err = {""};

	(void)state;
	fill(&p);
	name(&p);
	assert_int_equal(profile_file_write(scratch_path("p.json"), &p, &err), 0);
	profile_init(&q);
	assert_int_equal(profile_file_read(scratch_path("p.json"), &q, &err), -1);
	assert_non_null(strstr(err.text, "of another run"));
	profile_add_module(&q, &other, &err);
	profile_add_module(&q, &other, &err);
	assert_int_equal(profile_file_read(scratch_path("p.json"), &q, &err), -1);
	assert_non_null(strstr(err.text, "module 0 is another"));
	profile_release(&p);
	profile_release(&q);
}

static void a_damaged_file_is_refused_by_name(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{\"schema\":\"assay-profile-2\"}",
		"{\"schema\":\"assay-profile-1\"}",
		"{\"schema\":\"assay-profile-1\",\"modules\":[[\"/lib/a.so\",\"a\",\"ab01\"],[\"[jit]\",\"\",\"\"]],"
		"\"locations\":[0]}",
		"{\"schema\":\"assay-profile-1\",\"modules\":[[\"/lib/a.so\",\"a\",\"ab01\"],[\"[jit]\",\"\",\"\"]],"
		"\"functions\":[[9,1,\"f\",-1,0]],\"locations\":[]}",
		"{\"schema\":\"assay-profile-1\",\"modules\":[[\"/lib/a.so\",\"a\",\"ab01\"],[\"[jit]\",\"\",\"\"]],"
		"\"locations\":[0,\"0xzz\",0]}",
		"{\"schema\":\"assay-profile-1\",\"modules\":[[\"/lib/a.so\",\"a\",\"ab01\"],[\"[jit]\",\"\",\"\"]],"
		"\"locations\":[0,16,1,0,0]}",
		"{\"schema\":\"assay-profile-1\",\"modules\":[[\"/lib/a.so\",\"a\",\"ab01\"],[\"[jit]\",\"\",\"\"]],"
		"\"locations\":[0,16,100000,0,0]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct profile p;
		struct error err = {""};

		fill(&p);
		assert_int_equal(fs_write_file(scratch_path("bad.json"), bad[i], strlen(bad[i]), &err), 0);
		assert_int_equal(profile_file_read(scratch_path("bad.json"), &p, &err), -1);
		assert_non_null(strstr(err.text, "bad.json"));
		profile_release(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_come_back_as_they_were, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(places_in_another_order_find_their_names, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(names_of_another_run_are_refused, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(a_damaged_file_is_refused_by_name, scratch_make, scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
