#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "made_profile.h"
#include "model/hotspots.h"

static void assert_near(double got, double wanted)
{
	if (!(fabs(got - wanted) < 1e-9))
		fail_msg("%.12g is not %.12g", got, wanted);
}

static const struct hotspot_row *row_of(const struct hotspot_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->items[i].name, name) == 0)
			return &rows->items[i];
	return NULL;
}

static void sum(struct hotspots *h, struct profile *p, const struct phases *phases, const struct hotspot_query *query)
{
	const struct phases none = {0};
	struct error err;

	hotspots_init(h);
	assert_int_equal(profile_sort(p, &err), 0);
	if (hotspots_sum(h, p, phases ? phases : &none, query, &err) < 0)
		fail_msg("%s", err.text);
}

static void samples_are_weighted_and_deliveries_counted(void **state)
{
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 1);
	made_samples(&p, 0, 0, "main;hot", 70, 2);
	made_samples(&p, 0, 1, "main;libcold", 60, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_int_equal(h.group_count, 1);
	assert_string_equal(h.groups[0].name, "run");
	assert_int_equal(h.weight, 200);
	assert_int_equal(h.deliveries, 130);
	assert_near(h.groups[0].cpu_s, 2);
	assert_true(isnan(h.groups[0].wall_s));
	assert_int_equal(h.groups[0].thread_count, 2);
	assert_int_equal(h.groups[0].self.count, 2);
	assert_string_equal(h.groups[0].self.items[0].name, "hot");
	assert_string_equal(h.groups[0].self.items[0].module, "prog");
	assert_near(h.groups[0].self.items[0].share, 0.7);
	assert_near(h.groups[0].self.items[0].cpu_s, 1.4);
	assert_int_equal(h.groups[0].self.items[0].deliveries, 70);
	assert_true(isnan(h.groups[0].self.items[0].pct_of_wall_on_busiest_thread));
	assert_near(row_of(&h.groups[0].modules, "libdeep.so")->share, 0.3);
	assert_near(row_of(&h.groups[0].inclusive, "main")->share, 1);
	assert_near(row_of(&h.groups[0].threads, "worker #")->share, 0.3);
	assert_int_equal(h.groups[0].busiest_threads.items[0].busiest_tid, 100);
	assert_int_equal(h.groups[0].complete, 200);
	hotspots_release(&h);
	profile_release(&p);
}

static void inclusive_shares_count_a_recursive_function_once(void **state)
{
	struct profile p;
	struct hotspots h;
	char deep[1024] = "main";

	(void)state;
	made_profile(&p, 0);
	for (int i = 0; i < 50; i++)
		strcat(deep, i % 2 ? ";even;odd" : ";odd");
	made_samples(&p, 0, 0, deep, 30, 1);
	made_samples(&p, 0, 0, "main;odd;leaf", 10, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_near(row_of(&h.groups[0].inclusive, "odd")->share, 1);
	assert_near(row_of(&h.groups[0].inclusive, "even")->share, 0.75);
	assert_near(row_of(&h.groups[0].inclusive, "main")->share, 1);
	assert_near(row_of(&h.groups[0].inclusive, "leaf")->share, 0.25);
	hotspots_release(&h);
	profile_release(&p);
}

static void the_busiest_thread_tells_serial_from_parallel(void **state)
{
	struct phase phase = {.name = "work", .group = GROUP_DECODE, .start = 0, .end = 1000000000};
	const struct phases phases = {&phase, 1, 1};
	struct profile p;
	struct hotspots h;
	const struct hotspot_row *row;

	(void)state;
	made_profile(&p, 4);
	made_samples(&p, 0, 0, "main;serial", 40, 1);
	for (uint32_t i = 1; i <= 4; i++)
		made_samples(&p, 0, i, "start;parallel", 10 * i, 1);
	sum(&h, &p, &phases, &(struct hotspot_query){0});
	assert_string_equal(h.groups[0].name, "decode");
	assert_near(h.groups[0].wall_s, 1);
	row = row_of(&h.groups[0].self, "serial");
	assert_int_equal(row->threads, 1);
	assert_near(row->busiest_thread_s, 0.4);
	assert_near(row->pct_of_wall_on_busiest_thread, 40);
	assert_int_equal(row->busiest_tid, 100);
	row = row_of(&h.groups[0].self, "parallel");
	assert_int_equal(row->threads, 4);
	assert_near(row->cpu_s, 1);
	assert_near(row->busiest_thread_s, 0.4);
	assert_int_equal(row->busiest_tid, 104);
	row = row_of(&h.groups[0].inclusive, "start");
	assert_int_equal(row->threads, 4);
	assert_near(row->busiest_thread_s, 0.4);
	assert_near(row_of(&h.groups[0].threads, "worker #")->cpu_s, 1);
	hotspots_release(&h);
	profile_release(&p);
}

static void groups_are_those_of_the_phases_and_before_is_before_the_first(void **state)
{
	struct phase items[] = {
		{.name = "load", .group = GROUP_LOAD, .start = 100, .end = 200},
		{.name = "mine", .group = GROUP_OTHER, .start = 200, .end = 300},
		{.name = "again", .group = GROUP_LOAD, .start = 300, .end = 400},
	};
	const struct phases phases = {items, 3, 3};
	const struct hotspot_query mine = {.group = "mine"}, load = {.group = "load"}, none = {.group = "nope"};
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 0);
	made_samples(&p, 0, 0, "main;early", 10, 1);
	made_samples(&p, 100, 0, "main;loading", 20, 1);
	made_samples(&p, 200, 0, "main;mine", 5, 1);
	made_samples(&p, 300, 0, "main;loading", 5, 1);
	made_samples(&p, 1000, 0, "main;late", 7, 1); /* after the last phase: still its */
	sum(&h, &p, &phases, &(struct hotspot_query){0});
	assert_int_equal(h.group_count, 3);
	assert_string_equal(h.groups[0].name, "before");
	assert_string_equal(h.groups[1].name, "load");
	assert_string_equal(h.groups[2].name, "other");
	assert_int_equal(h.groups[0].weight, 10);
	assert_int_equal(h.groups[1].weight, 32);
	assert_near(h.groups[1].wall_s, 200e-9);
	assert_int_equal(h.groups[2].weight, 5);
	hotspots_release(&h);
	sum(&h, &p, &phases, &mine);
	assert_int_equal(h.group_count, 1);
	assert_string_equal(h.groups[0].name, "mine");
	assert_int_equal(h.weight, 5);
	assert_near(h.groups[0].wall_s, 100e-9);
	hotspots_release(&h);
	sum(&h, &p, &phases, &load);
	assert_int_equal(h.weight, 32);
	assert_true(h.found_group);
	hotspots_release(&h);
	sum(&h, &p, &phases, &none);
	assert_int_equal(h.group_count, 0);
	assert_false(h.found_group);
	hotspots_release(&h);
	profile_release(&p);
}

static void named_phases_of_group_other_stand_one_by_one_in_the_order_of_time(void **state)
{
	struct phase items[12] = {
		{.name = "mine", .group = GROUP_OTHER, .start = 0, .end = 100},
		{.name = "load", .group = GROUP_LOAD, .start = 100, .end = 200},
		{.name = "yours", .group = GROUP_OTHER, .start = 200, .end = 300},
		{.name = "mine", .group = GROUP_OTHER, .start = 300, .end = 400},
	};
	struct phases phases = {items, 4, 12};
	const struct hotspot_query load = {.group = "load"};
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 0);
	for (unsigned i = 0; i < 4; i++)
		made_samples(&p, 100 * i, 0, i == 1 ? "main;libload" : "main;work", 10 * (i + 1), 1);
	sum(&h, &p, &phases, &(struct hotspot_query){0});
	assert_int_equal(h.group_count, 2);
	assert_int_equal(h.groups[0].weight, 80);
	assert_int_equal(h.phase_count, 2);
	assert_int_equal(h.weight, 100);
	assert_int_equal(hotspots_section_count(&h), 3);
	assert_string_equal(hotspots_section(&h, 0)->name, "mine");
	assert_int_equal(hotspots_section(&h, 0)->weight, 50);
	assert_near(hotspots_section(&h, 0)->wall_s, 200e-9);
	assert_string_equal(hotspots_section(&h, 1)->name, "load");
	assert_string_equal(hotspots_section(&h, 2)->name, "yours");
	assert_int_equal(row_of(&hotspots_section(&h, 2)->self, "work")->weight, 30);
	hotspots_release(&h);
	sum(&h, &p, &phases, &load);
	assert_int_equal(h.phase_count, 0);
	assert_int_equal(hotspots_section_count(&h), 1);
	hotspots_release(&h);
	for (unsigned i = 4; i < 12; i++) {
		items[i] = (struct phase){.group = GROUP_OTHER, .start = 100 * i, .end = 100 * i + 100};
		snprintf(items[i].name, sizeof items[i].name, "phase %u", i);
	}
	phases.count = 10; /* "mine", "yours", and six more */
	sum(&h, &p, &phases, &(struct hotspot_query){0});
	assert_int_equal(h.phase_count, 2); /* those with samples */
	hotspots_release(&h);
	phases.count = 11;
	sum(&h, &p, &phases, &(struct hotspot_query){0});
	assert_int_equal(h.phase_count, 0);
	assert_int_equal(hotspots_section_count(&h), 2);
	hotspots_release(&h);
	profile_release(&p);
}

static void the_busiest_thread_has_rows_of_its_own(void **state)
{
	struct profile p;
	struct hotspots h;
	const struct hotspot_group *g;

	(void)state;
	made_profile(&p, 2);
	made_samples(&p, 0, 0, "main;a", 40, 1);
	made_samples(&p, 0, 1, "main;b", 30, 1);
	made_samples(&p, 0, 1, "main;a", 10, 1);
	made_samples(&p, 0, 1, "main;c", 5, 1);
	made_samples(&p, 0, 1, "main;d", 20, 1);
	made_samples(&p, 0, 2, "main;a", 50, 1);
	made_samples(&p, 0, 2, "", 5, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){.top = 1});
	g = &h.groups[0];
	assert_int_equal(g->of_busiest.count, 3);
	assert_string_equal(g->of_busiest.items[0].name, "b");
	assert_near(g->of_busiest.items[0].share, 30.0 / 65);
	assert_string_equal(g->of_busiest.items[1].name, "d");
	assert_string_equal(g->of_busiest.items[2].name, "a");
	assert_int_equal(g->of_busiest.items[2].weight, 10);
	assert_near(g->second_s, 0.55);
	assert_int_equal(g->stacked, 155);
	assert_int_equal(g->complete, 155);
	hotspots_release(&h);
	profile_release(&p);
}

static void a_pattern_that_is_nobodys_name_is_told(void **state)
{
	static const char *const known[] = {"wor*", "libdeep.so", "main", NULL}, *const lost[] = {"main", "x*", NULL};
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 1);
	made_samples(&p, 0, 0, "main;a", 1, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){.include = known});
	assert_null(h.lost_include);
	hotspots_release(&h);
	sum(&h, &p, NULL, &(struct hotspot_query){.include = lost});
	assert_string_equal(h.lost_include, "x*");
	hotspots_release(&h);
	profile_release(&p);
}

static void an_inlined_function_is_the_one_that_runs_and_both_are_inclusive(void **state)
{
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 0);
	made_samples(&p, 0, 0, "main;outer+middle+leaf", 10, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_int_equal(h.groups[0].self.count, 1);
	assert_string_equal(h.groups[0].self.items[0].name, "leaf");
	assert_int_equal(h.groups[0].inclusive.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_near(h.groups[0].inclusive.items[i].share, 1);
	hotspots_release(&h);
	sum(&h, &p, NULL, &(struct hotspot_query){.by = BY_LINE});
	assert_string_equal(h.groups[0].self.items[0].name, "src/made.c:11 leaf");
	hotspots_release(&h);
	profile_release(&p);
}

static void rows_can_be_modules_threads_or_processes(void **state)
{
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 2);
	made_samples(&p, 0, 1, "main;libone;work;libtwo", 10, 1);
	made_samples(&p, 0, 2, "main;?nameless", 30, 1);
	made_samples(&p, 0, 0, "", 10, 1);
	sum(&h, &p, NULL, &(struct hotspot_query){.by = BY_MODULE});
	assert_near(row_of(&h.groups[0].self, "libdeep.so")->share, 0.2);
	assert_near(row_of(&h.groups[0].inclusive, "prog")->share, 0.8);
	assert_near(row_of(&h.groups[0].inclusive, "libdeep.so")->share, 0.2);
	assert_near(row_of(&h.groups[0].inclusive, "[unknown]")->share, 0.2);
	hotspots_release(&h);
	sum(&h, &p, NULL, &(struct hotspot_query){.by = BY_THREAD});
	assert_near(row_of(&h.groups[0].self, "worker #")->share, 0.8);
	assert_int_equal(row_of(&h.groups[0].self, "worker #")->threads, 2);
	assert_near(row_of(&h.groups[0].inclusive, "main")->share, 0.2);
	hotspots_release(&h);
	sum(&h, &p, NULL, &(struct hotspot_query){.by = BY_PROCESS});
	assert_int_equal(h.groups[0].self.count, 1);
	assert_string_equal(h.groups[0].self.items[0].name, "prog");
	hotspots_release(&h);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_false(row_of(&h.groups[0].self, "prog!?")->known);
	assert_near(row_of(&h.groups[0].self, "[no stack]")->share, 0.2);
	hotspots_release(&h);
	profile_release(&p);
}

static void the_samplers_own_frames_are_left_out(void **state)
{
	const struct profile_module ours = {.path = (char *)"/usr/lib/assay/libassay-sampler.so"};
	struct profile p;
	struct hotspots h;
	struct error err;
	uint32_t node;
	int module, inner;

	(void)state;
	made_profile(&p, 0);
	module = profile_add_module(&p, &ours, &err);
	node = made_frame(&p, 0, "main");
	inner = profile_add_node(&p, node, (uint32_t)module, 16, &err);
	inner = profile_add_node(&p, (uint32_t)inner, (uint32_t)module, 32, &err);
	assert_true(profile_add_sample(&p, &(struct profile_sample){0, 0, (uint32_t)inner, 1, 0}, &err) >= 0);
	node = made_frame(&p, (uint32_t)inner, "started");
	assert_true(profile_add_sample(&p, &(struct profile_sample){1, 0, node, 1, 0}, &err) >= 0);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_near(row_of(&h.groups[0].self, "main")->share, 0.5);
	assert_near(row_of(&h.groups[0].inclusive, "main")->share, 1);
	assert_near(row_of(&h.groups[0].self, "started")->share, 0.5);
	assert_int_equal(h.groups[0].inclusive.count, 2);
	assert_int_equal(h.groups[0].modules.count, 1);
	hotspots_release(&h);
	profile_release(&p);
}

static void patterns_choose_samples_by_anything_on_their_stack(void **state)
{
	static const char *const work[] = {"work", NULL}, *const workers[] = {"worker*", NULL};
	static const char *const deep[] = {"nothing", "libdeep*", NULL}, *const empty[] = {NULL};
	const struct {
		const char *const *include, *const *exclude;
		uint64_t weight;
	} known[] = {{NULL, NULL, 111},  {work, NULL, 110}, {workers, NULL, 100}, {deep, NULL, 100},
		     {NULL, work, 1},    {work, deep, 10},  {deep, workers, 0},   {empty, empty, 111}};
	struct profile p;
	struct hotspots h;

	(void)state;
	made_profile(&p, 1);
	made_samples(&p, 0, 0, "main", 1, 1);
	made_samples(&p, 0, 0, "main;work", 10, 1);
	made_samples(&p, 0, 1, "main;work;libleaf", 100, 1);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const struct hotspot_query query = {.include = known[i].include, .exclude = known[i].exclude};

		sum(&h, &p, NULL, &query);
		assert_int_equal(h.weight, known[i].weight);
		hotspots_release(&h);
	}
	profile_release(&p);
}

static void a_focus_has_callers_and_callees_that_each_add_up_to_it(void **state)
{
	const struct hotspot_query query = {.focus = "f"}, none = {.focus = "ff"};
	struct profile p;
	struct hotspots h;
	const struct hotspot_group *g;

	(void)state;
	made_profile(&p, 0);
	made_samples(&p, 0, 0, "main;a;f;f;x", 10, 1);
	made_samples(&p, 0, 0, "main;b;f", 20, 1);
	made_samples(&p, 0, 0, "main;a+f+y", 5, 1); /* inlined into its caller, and its callee into it */
	made_samples(&p, 0, 0, "f;x;z", 2, 1);
	made_samples(&p, 0, 0, "main;a", 40, 1);
	sum(&h, &p, NULL, &query);
	g = &h.groups[0];
	assert_true(h.found_focus);
	assert_int_equal(g->weight, 37);
	assert_int_equal(row_of(&g->callers, "a")->weight, 15);
	assert_int_equal(row_of(&g->callers, "b")->weight, 20);
	assert_int_equal(row_of(&g->callers, "[start]")->weight, 2);
	assert_int_equal(g->callers.count, 3);
	assert_int_equal(row_of(&g->callees, "x")->weight, 12);
	assert_int_equal(row_of(&g->callees, "[itself]")->weight, 20);
	assert_int_equal(row_of(&g->callees, "y")->weight, 5);
	assert_int_equal(g->callees.count, 3);
	hotspots_release(&h);
	sum(&h, &p, NULL, &none);
	assert_false(h.found_focus);
	assert_int_equal(h.group_count, 0);
	hotspots_release(&h);
	profile_release(&p);
}

static void a_pattern_matches_a_cxx_name_without_its_parameters(void **state)
{
	const struct {
		const char *focus, *name;
		bool found;
	} known[] = {
		{"a::f", "a::f(int)", true},
		{"a::f(int)", "a::f(int)", true},
		{"a::f", "a::f(int (*)(char)) const", true},
		{"a::*", "a::f(int)", true},
		{"f", "a::f(int)", false},
		{"(anonymous namespace)::f", "(anonymous namespace)::f(int)", true},
		{"", "(anonymous namespace)::f", false},
		{"a::operator()", "a::operator()(int) const", true},
		{"a::operator", "a::operator()", false},
		{"f", "f [clone .cold]", false},
		{"weird)", "weird)", true},
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct profile p;
		struct hotspots h;
		struct profile_frame frame = {0};
		uint32_t node;

		made_profile(&p, 0);
		node = made_frame(&p, 0, "?");
		assert_int_equal(profile_add_function(&p, 0, true, known[i].name, NULL, 0, &frame.function, &err), 0);
		assert_int_equal(profile_set_frames(&p, p.nodes[node].location, &frame, 1, &err), 0);
		profile_add_sample(&p, &(struct profile_sample){0, 0, node, 1, 0}, &err);
		sum(&h, &p, NULL, &(struct hotspot_query){.focus = known[i].focus});
		if (h.found_focus != known[i].found)
			fail_msg("'%s' and '%s'", known[i].focus, known[i].name);
		hotspots_release(&h);
		profile_release(&p);
	}
}

static void the_top_cuts_every_table_and_tells_how_many_there_were(void **state)
{
	struct profile p;
	struct hotspots h;
	char stack[32];

	(void)state;
	made_profile(&p, 9);
	for (unsigned i = 0; i < 10; i++) {
		snprintf(stack, sizeof stack, "main;f%u", i);
		made_samples(&p, 0, i, stack, 10 + i, 1);
	}
	sum(&h, &p, NULL, &(struct hotspot_query){.top = 3});
	assert_int_equal(h.groups[0].self.count, 3);
	assert_int_equal(h.groups[0].self.all, 10);
	assert_string_equal(h.groups[0].self.items[0].name, "f9");
	assert_int_equal(h.groups[0].busiest_threads.count, 3);
	assert_int_equal(h.groups[0].busiest_threads.all, 10);
	hotspots_release(&h);
	profile_release(&p);
}

static void no_samples_are_no_groups(void **state)
{
	struct profile p;
	struct hotspots h;
	struct profile_account account;

	(void)state;
	made_profile(&p, 0);
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	assert_int_equal(h.group_count, 0);
	p.images[0].dropped = 3;
	p.images[0].dropped_weight = 5;
	p.images[0].handler_ns = 2000000;
	account = profile_account_of(&p, 1.5);
	assert_near(account.cpu_s, 1.5);
	assert_near(account.sampled_s, 0);
	assert_near(account.dropped_s, 0.05);
	assert_near(account.sampler_s, 0.002);
	assert_int_equal(account.dropped, 3);
	hotspots_release(&h);
	profile_release(&p);
}

/* 250 threads that share a tree of 500,000 places, a million samples: what a long run of a large program leaves. */
static void a_million_samples_on_half_a_million_places_add_up(void **state)
{
	struct profile p;
	struct hotspots h;
	struct error err;
	uint64_t seed = 1;
	int64_t begun;

	(void)state;
	made_profile(&p, 249);
	for (uint32_t i = 1; i < 500000; i++) {
		char name[16];
		uint32_t parent;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		/* As stacks bring them: on and on, and now and then from a few steps back. */
		parent = i - 1;
		for (uint32_t back = (seed >> 60) % 8 ? 0 : 1 + (uint32_t)(seed >> 40) % 14; back > 0 && parent; back--)
			parent = p.nodes[parent].parent;
		if (i < 5000) {
			snprintf(name, sizeof name, "f%u", i);
			made_frame(&p, parent, name);
		} else { /* elsewhere in a function that has a name already: the same address */
			assert_true(profile_add_node(&p, parent, 0, p.locations[i % 4999].address, &err) > 0);
		}
	}
	for (uint32_t i = 0; i < 1000000; i++) {
		struct profile_sample sample = {.t = i, .thread = i % 250, .weight = 1};

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		sample.node = (uint32_t)(seed >> 33) % 500000;
		assert_true(profile_add_sample(&p, &sample, &err) >= 0);
	}
	begun = clock_process_ns();
	sum(&h, &p, NULL, &(struct hotspot_query){0});
	print_message("a million samples: %.2f s of CPU time\n", (double)(clock_process_ns() - begun) / 1e9);
	assert_int_equal(h.weight, 1000000);
	assert_true(h.groups[0].self.count >= 4999);
	for (size_t i = 0; i < h.groups[0].inclusive.count; i++)
		assert_true(h.groups[0].inclusive.items[i].share <= 1);
	hotspots_release(&h);
	profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_weighted_and_deliveries_counted),
		cmocka_unit_test(inclusive_shares_count_a_recursive_function_once),
		cmocka_unit_test(the_busiest_thread_tells_serial_from_parallel),
		cmocka_unit_test(groups_are_those_of_the_phases_and_before_is_before_the_first),
		cmocka_unit_test(named_phases_of_group_other_stand_one_by_one_in_the_order_of_time),
		cmocka_unit_test(the_busiest_thread_has_rows_of_its_own),
		cmocka_unit_test(a_pattern_that_is_nobodys_name_is_told),
		cmocka_unit_test(an_inlined_function_is_the_one_that_runs_and_both_are_inclusive),
		cmocka_unit_test(rows_can_be_modules_threads_or_processes),
		cmocka_unit_test(the_samplers_own_frames_are_left_out),
		cmocka_unit_test(patterns_choose_samples_by_anything_on_their_stack),
		cmocka_unit_test(a_focus_has_callers_and_callees_that_each_add_up_to_it),
		cmocka_unit_test(a_pattern_matches_a_cxx_name_without_its_parameters),
		cmocka_unit_test(the_top_cuts_every_table_and_tells_how_many_there_were),
		cmocka_unit_test(no_samples_are_no_groups),
		cmocka_unit_test(a_million_samples_on_half_a_million_places_add_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
