#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "record/samples_writer.h"
#include "scratch.h"
#include "store/samples.h"
#include "wire/segment.h"

static struct samples_writer *make(const char *path)
{
	struct samples_writer *w = NULL;
	struct error err = {""};

	if (samples_writer_new(path, WIRE_RECORDER_PRELOAD, 199, 1000, &w, &err) < 0)
		fail_msg("%s", err.text);
	return w;
}

static void read_back(const char *path, struct profile *p)
{
	struct error err = {""};

	profile_init(p);
	if (samples_read(path, p, &err) < 0)
		fail_msg("%s", err.text);
}

static void what_was_written_is_read(void **state)
{
	struct samples_writer *w = make(scratch_path("s.seg"));
	struct wire_module libc = {.build_id_length = 3, .build_id = {1, 2, 3}, .device = 4, .inode = 5, .size = 6,
				   .mtime_ns = 7};
	struct wire_module jit = {.kind = WIRE_MODULE_ANON, .image = 0};
	struct wire_image_end end = {.trouble = 2, .t = 9, .deliveries = 3, .weight = 4, .cpu_ns = 5, .unarmed = 1};
	struct profile p;
	uint32_t image, thread, a, b, leaf;

	(void)state;
	image = samples_writer_image(w, 10, 9, 1001, "/bin/x", "x --flag");
	thread = samples_writer_thread(w, image, 11, "worker");
	a = samples_writer_module(w, &libc, "/lib/libc.so.6");
	b = samples_writer_module(w, &jit, "[jit]");
	leaf = samples_writer_node(w, samples_writer_node(w, 0, a, 0x100), b, UINT64_MAX);
	samples_writer_sample(w, &(struct wire_sample){.t = 2000, .thread = thread, .node = leaf, .weight = 2,
						       .flags = WIRE_SAMPLE_COMPLETE});
	samples_writer_sample(w, &(struct wire_sample){.t = 1500, .thread = thread, .weight = 1});
	samples_writer_rename(w, thread, "renamed");
	end.id = image;
	samples_writer_image_end(w, &end, "It lacks something.");
	samples_writer_unsampled(w, 12, 13, "static", "because");
	samples_writer_free(w);

	read_back(scratch_path("s.seg"), &p);
	assert_false(p.damaged);
	assert_int_equal(p.hz, 199);
	assert_int_equal(p.recorder, 1);
	assert_int_equal(p.t, 1000);
	assert_int_equal(p.image_count, 1);
	assert_int_equal(p.images[0].pid, 10);
	assert_int_equal(p.images[0].ppid, 9);
	assert_string_equal(p.images[0].exe, "/bin/x");
	assert_string_equal(p.images[0].command, "x --flag");
	assert_true(p.images[0].ended);
	assert_string_equal(p.images[0].note, "It lacks something.");
	assert_int_equal(p.images[0].cpu_ns, 5);
	assert_string_equal(p.threads[0].name, "renamed");
	assert_int_equal(p.module_count, 2);
	assert_int_equal(p.modules[0].build_id_length, 3);
	assert_int_equal(p.modules[0].inode, 5);
	assert_string_equal(p.modules[0].path, "/lib/libc.so.6");
	assert_int_equal(p.modules[1].kind, PROFILE_ANON);
	assert_int_equal(p.node_count, 3);
	assert_int_equal(p.locations[p.nodes[2].location].address, UINT64_MAX);
	assert_int_equal(p.nodes[2].parent, 1);
	assert_int_equal(p.sample_count, 2);
	assert_int_equal(p.samples[0].t, 1500);
	assert_int_equal(p.samples[0].node, 0);
	assert_int_equal(p.samples[1].node, 2);
	assert_int_equal(p.samples[1].weight, 2);
	assert_int_equal(p.samples[1].flags, PROFILE_COMPLETE);
	assert_int_equal(p.unsampled[0].cpu_ns, 13);
	assert_string_equal(p.unsampled[0].reason, "because");
	profile_release(&p);
}

static void the_same_place_and_module_have_one_number(void **state)
{
	struct samples_writer *w = make(scratch_path("s.seg"));
	struct wire_module m = {.inode = 1}, other = {.inode = 2};
	uint32_t a, node;

	(void)state;
	samples_writer_image(w, 1, 0, 0, "x", NULL);
	a = samples_writer_module(w, &m, "/lib/a.so");
	assert_int_equal(samples_writer_module(w, &m, "/lib/a.so"), a);
	assert_int_not_equal(samples_writer_module(w, &m, "/lib/b.so"), a);
	assert_int_not_equal(samples_writer_module(w, &other, "/lib/a.so"), a);
	node = samples_writer_node(w, 0, a, 5);
	assert_int_equal(samples_writer_node(w, 0, a, 5), node);
	assert_int_not_equal(samples_writer_node(w, node, a, 5), node);
	samples_writer_free(w);
}

/* More places than are remembered: they are written anew, and every sample keeps its stack. */
static void forgetting_places_changes_no_sample(void **state)
{
	enum { PLACES = 1700000 };
	struct samples_writer *w = make(scratch_path("s.seg"));
	struct wire_module m = {.inode = 1};
	struct profile p;
	uint32_t thread, module, kept;

	(void)state;
	thread = samples_writer_thread(w, samples_writer_image(w, 1, 0, 0, "x", ""), 1, "x");
	module = samples_writer_module(w, &m, "/lib/a.so");
	kept = samples_writer_node(w, 0, module, 42);
	assert_int_equal(samples_writer_epoch(w), 0);
	for (uint32_t i = 0; i < PLACES; i++)
		samples_writer_node(w, kept, module, i);
	assert_true(samples_writer_epoch(w) > 0);
	assert_int_not_equal(samples_writer_node(w, 0, module, 42), kept);
	/* An old number still names what it named. */
	samples_writer_sample(w, &(struct wire_sample){.t = 1, .thread = thread, .node = kept, .weight = 1});
	samples_writer_sample(w, &(struct wire_sample){.t = 2, .thread = thread, .weight = 1,
						       .node = samples_writer_node(w, 0, module, 42)});
	samples_writer_free(w);
	read_back(scratch_path("s.seg"), &p);
	assert_false(p.damaged);
	assert_int_equal(p.sample_count, 2);
	assert_int_not_equal(p.samples[0].node, p.samples[1].node);
	assert_int_equal(p.nodes[p.samples[0].node].location, p.nodes[p.samples[1].node].location);
	profile_release(&p);
}

static void append(struct segment_writer *w, uint16_t type, const void *bytes, size_t length)
{
	assert_int_equal(segment_append(w, type, 0, bytes, length), 0);
}

static void begin(struct segment_writer *w, const char *path)
{
	assert_int_equal(segment_create(w, path, SEGMENT_KIND_SAMPLES, 1 << 20), 0);
	append(w, WIRE_PROFILE, &(struct wire_profile){.recorder = 1, .hz = 100}, sizeof(struct wire_profile));
	append(w, WIRE_IMAGE, &(struct wire_image){.id = 0}, sizeof(struct wire_image));
	append(w, WIRE_THREAD, &(struct wire_thread){.id = 0}, sizeof(struct wire_thread));
	append(w, WIRE_SAMPLES, &(struct wire_sample){.weight = 1}, sizeof(struct wire_sample));
}

/* Each is wrong in one way; what came before it is kept, and it is said. */
static void damage_ends_the_reading_and_is_told(void **state)
{
	const struct {
		uint16_t type;
		const void *bytes;
		size_t length;
		const char *why;
	} bad[] = {
		{WIRE_SAMPLES, &(struct wire_sample){.node = 7}, sizeof(struct wire_sample), "place 7"},
		{WIRE_SAMPLES, &(struct wire_sample){.thread = 7}, sizeof(struct wire_sample), "thread 7"},
		{WIRE_NODES, &(struct wire_node){.parent = 9}, sizeof(struct wire_node), "place 9"},
		{WIRE_NODES, &(struct wire_node){.module = 3}, sizeof(struct wire_node), "module 3"},
		{WIRE_IMAGE, &(struct wire_image){.id = 5}, sizeof(struct wire_image), "number 1 is due"},
		{WIRE_MODULE, &(struct wire_module){.kind = 77}, sizeof(struct wire_module), "kind 77"},
		{WIRE_MODULE, &(struct wire_module){.build_id_length = 33}, sizeof(struct wire_module), "33 bytes"},
		{WIRE_IMAGE_END, &(struct wire_image_end){.id = 1}, sizeof(struct wire_image_end), "image 1"},
		{WIRE_THREAD, "abc", 3, "3 bytes"},
		{WIRE_PROFILE, &(struct wire_profile){.hz = 0}, sizeof(struct wire_profile), "0 Hz"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct segment_writer w;
		struct profile p;

		begin(&w, scratch_path("bad.seg"));
		append(&w, bad[i].type, bad[i].bytes, bad[i].length);
		append(&w, WIRE_SAMPLES, &(struct wire_sample){.weight = 1}, sizeof(struct wire_sample));
		segment_close(&w);
		read_back(scratch_path("bad.seg"), &p);
		assert_true(p.damaged);
		assert_int_equal(p.sample_count, 1);
		if (!strstr(p.trouble, bad[i].why) || !strstr(p.trouble, "bad.seg"))
			fail_msg("'%s' does not hold '%s'", p.trouble, bad[i].why);
		profile_release(&p);
		unlink(scratch_path("bad.seg"));
	}
}

static void a_segment_without_a_rate_is_refused(void **state)
{
	struct segment_writer w;
	struct profile p;
	struct error err = {""};

	(void)state;
	assert_int_equal(segment_create(&w, scratch_path("e.seg"), SEGMENT_KIND_SAMPLES, 1 << 20), 0);
	segment_close(&w);
	profile_init(&p);
	assert_int_equal(samples_read(scratch_path("e.seg"), &p, &err), -1);
	assert_non_null(strstr(err.text, "at what rate"));
	assert_int_equal(samples_read(scratch_path("none.seg"), &p, &err), -1);
	assert_non_null(strstr(err.text, "none.seg"));
	profile_release(&p);
}

/* What a killed recorder leaves: no end, and a file that is longer than its records. */
static void samples_that_were_flushed_survive_the_writer(void **state)
{
	struct samples_writer *w = make(scratch_path("s.seg"));
	struct profile p;
	uint32_t thread = samples_writer_thread(w, samples_writer_image(w, 1, 0, 0, "x", ""), 1, "x");

	(void)state;
	samples_writer_sample(w, &(struct wire_sample){.t = 1, .thread = thread, .weight = 1});
	samples_writer_flush(w);
	samples_writer_sample(w, &(struct wire_sample){.t = 2, .thread = thread, .weight = 1});
	read_back(scratch_path("s.seg"), &p);
	assert_int_equal(p.sample_count, 1);
	profile_release(&p);
	samples_writer_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_written_is_read, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(the_same_place_and_module_have_one_number, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(forgetting_places_changes_no_sample, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(damage_ends_the_reading_and_is_told, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(a_segment_without_a_rate_is_refused, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(samples_that_were_flushed_survive_the_writer, scratch_make,
						scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
