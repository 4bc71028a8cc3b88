#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "made_rings.h"
#include "model/profile.h"
#include "record/code_maps.h"
#include "record/image.h"
#include "record/rings.h"
#include "record/sampling.h"
#include "scratch.h"
#include "store/samples.h"

#define PID_OF_NOBODY 0x3fffffff /* above any pid_max */

static struct ring *open_ring(const char *path)
{
	struct ring *r = NULL;
	struct error err = {""};

	if (ring_open(path, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

/* Drains the file into a segment and reads that. */
static void drain(const char *path, const char *segment, struct profile *p)
{
	struct image_shared *shared = calloc(1, sizeof *shared);
	struct warnings warnings;
	struct image *image = NULL;
	struct ring *ring = open_ring(path);
	struct error err = {""};
	uint32_t id;

	warnings_init(&warnings);
	assert_int_equal(samples_writer_new(segment, WIRE_RECORDER_PRELOAD, 199, 0, &shared->writer, &err), 0);
	assert_int_equal(module_files_new(shared->writer, &warnings, &shared->files, &err), 0);
	id = samples_writer_image(shared->writer, ring->pid, ring->ppid, ring->mono_ns, ring->exe, "");
	assert_int_equal(image_new(shared, ring, id, 0, &image, &err), 0);
	image_drain(image, 0, 1);
	image_release(image);
	image_free(image);
	samples_writer_free(shared->writer);
	module_files_free(shared->files);
	free(shared);
	warnings_release(&warnings);
	profile_init(p);
	if (samples_read(segment, p, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(p->damaged);
}

/* The stack of a sample as text, innermost first: "MODULE+ADDRESS MODULE+ADDRESS". */
static const char *stack_of(const struct profile *p, size_t sample)
{
	static char text[4096];
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t n = p->samples[sample].node; n && used < sizeof text; n = p->nodes[n].parent) {
		const struct profile_location *l = &p->locations[p->nodes[n].location];

		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s+%llx", used ? " " : "",
					 p->modules[l->module].name, (unsigned long long)l->address);
	}
	return text;
}

static void samples_of_threads_come_out_with_their_stacks(void **state)
{
	const uint64_t first[] = {0x5010, 0x5020, 0x5030}, second[] = {0x5011}, third[] = {0x99999};
	struct made_ring r = made_ring_new(scratch_path("1.ring"), PID_OF_NOBODY, 5);
	struct profile p;

	(void)state;
	made_module(&r, 0, 0x5000, 0x6000, 0x4000, "/lib/liba.so", 1);
	made_thread(&r, 0, 7, "main");
	made_sample(&r, 0, 7, 100, 0, first, 3, SAMPLER_COMPLETE);
	made_sample(&r, 0, 7, 200, 2, second, 1, SAMPLER_COMPLETE);
	made_thread(&r, 0, 7, "renamed");
	made_sample(&r, 1, 8, 300, 0, third, 1, SAMPLER_GUESSED);
	made_sample(&r, 1, 8, 400, 0, third, 0, 0);
	drain(scratch_path("1.ring"), scratch_path("s.seg"), &p);
	assert_int_equal(p.sample_count, 4);
	assert_string_equal(stack_of(&p, 0), "liba.so+1010 liba.so+1020 liba.so+1030");
	assert_string_equal(stack_of(&p, 1), "liba.so+1011 liba.so+1020 liba.so+1030");
	assert_string_equal(stack_of(&p, 2), "[unknown]+99999");
	assert_string_equal(stack_of(&p, 3), "");
	assert_int_equal(p.samples[0].flags, PROFILE_COMPLETE);
	assert_int_equal(p.samples[2].flags, PROFILE_GUESSED);
	assert_int_equal(p.thread_count, 2);
	assert_string_equal(p.threads[0].name, "renamed");
	assert_int_equal(p.threads[1].tid, 8);
	assert_int_equal(made_slot(&r, 0)->tail, made_slot(&r, 0)->head);
	profile_release(&p);
	made_ring_free(&r);
}

static void an_address_belongs_to_the_module_of_its_time(void **state)
{
	const uint64_t at[] = {0x5010};
	struct made_ring r = made_ring_new(scratch_path("1.ring"), PID_OF_NOBODY, 5);
	struct profile p;

	(void)state;
	made_module(&r, INT64_C(5000000000), 0x5000, 0x6000, 0x5000, "/lib/late.so", 2);
	made_module(&r, 10, 0x5000, 0x7000, 0x4000, "/lib/early.so", 1);
	made_module(&r, 10, 0x5000, 0x7000, 0x4000, "/lib/early.so", 1); /* announced by two threads */
	made_module(&r, 20, 0x9000, 0xa000, 0, "", 3);
	made_sample(&r, 0, 1, 15, 0, at, 1, 0);
	made_sample(&r, 0, 1, INT64_C(5000000001), 0, at, 1, 0);
	made_sample(&r, 0, 1, 9, 0, at, 1, 0); /* a moment before the record of its module */
	made_sample(&r, 0, 1, 30, 0, (uint64_t[]){0x9999}, 1, 0);
	drain(scratch_path("1.ring"), scratch_path("s.seg"), &p);
	assert_int_equal(p.sample_count, 4);
	assert_string_equal(stack_of(&p, 0), "early.so+1010");
	assert_string_equal(stack_of(&p, 1), "early.so+1010");
	assert_string_equal(stack_of(&p, 2), "program+9999");
	assert_string_equal(stack_of(&p, 3), "late.so+10");
	assert_int_equal(p.module_count, 3);
	assert_string_equal(p.modules[2].path, "/nowhere/program");
	profile_release(&p);
	made_ring_free(&r);
}

/* Many times round the ring, with records of odd lengths; the writer never overtakes what was given back. */
static void the_ring_goes_round(void **state)
{
	struct made_ring r = made_ring_new(scratch_path("1.ring"), PID_OF_NOBODY, 5);
	struct image_shared *shared = calloc(1, sizeof *shared);
	struct warnings warnings;
	struct image *image = NULL;
	struct profile p;
	uint64_t frames[50];
	uint32_t written = 0;
	struct error err = {""};

	(void)state;
	warnings_init(&warnings);
	made_module(&r, 0, 0, 0x100000, 0, "/lib/liba.so", 1);
	assert_int_equal(
		samples_writer_new(scratch_path("s.seg"), WIRE_RECORDER_PRELOAD, 199, 0, &shared->writer, &err), 0);
	assert_int_equal(module_files_new(shared->writer, &warnings, &shared->files, &err), 0);
	samples_writer_image(shared->writer, 1, 0, 0, "", "");
	assert_int_equal(image_new(shared, open_ring(scratch_path("1.ring")), 0, 0, &image, &err), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t count = i % 50;

		for (uint32_t k = 0; k < count; k++)
			frames[k] = i * 3 + k;
		assert_true(made_sample(&r, 0, 1, i, 0, frames, count, 0));
		written++;
		if (i % 97 == 0) {
			image_drain(image, 0, 1);
			image_release(image);
		}
	}
	image_drain(image, 0, 1);
	image_free(image);
	samples_writer_free(shared->writer);
	module_files_free(shared->files);
	free(shared);
	warnings_release(&warnings);
	profile_init(&p);
	assert_int_equal(samples_read(scratch_path("s.seg"), &p, &err), 0);
	assert_int_equal(p.sample_count, written);
	for (uint32_t i = 0; i < written; i++) {
		uint32_t n = p.samples[i].node;

		assert_int_equal(p.samples[i].t, i);
		for (uint32_t k = 0; k < i % 50; k++, n = p.nodes[n].parent)
			assert_int_equal(p.locations[p.nodes[n].location].address, i * 3 + k);
		assert_int_equal(n, 0);
	}
	profile_release(&p);
	made_ring_free(&r);
}

static void refuse(const char *why, const char *path)
{
	struct ring *r = NULL;
	struct error err = {""};

	assert_int_equal(ring_open(path, &r, &err), -1);
	assert_null(r);
	if (!strstr(err.text, path) || !strstr(err.text, why))
		fail_msg("'%s' does not hold '%s'", err.text, why);
}

static void what_is_no_ring_is_refused(void **state)
{
	struct made_ring r = made_ring_new(scratch_path("1.ring"), 1, 5);
	struct sampler_header good = *r.header;
	struct error err;

	(void)state;
	refuse("No such file", scratch_path("none.ring"));
	assert_int_equal(fs_write_file(scratch_path("text.ring"), "hello", 5, &err), 0);
	refuse("not a ring file", scratch_path("text.ring"));
	assert_int_equal(mkfifo(scratch_path("fifo.ring"), 0666), 0);
	refuse("not a ring file", scratch_path("fifo.ring"));
	assert_int_equal(symlink(scratch_path("1.ring"), scratch_path("link.ring")), 0);
	refuse("", scratch_path("link.ring"));
	r.header->version = 99;
	refuse("version 99", scratch_path("1.ring"));
	*r.header = good;
	r.header->hz = 0;
	refuse("0 Hz", scratch_path("1.ring"));
	*r.header = good;
	r.header->slot_size = 64;
	refuse("does not describe", scratch_path("1.ring"));
	*r.header = good;
	r.header->modules_offset = UINT32_MAX - 7;
	refuse("does not describe", scratch_path("1.ring"));
	*r.header = good;
	r.header->slots_offset = 64;
	refuse("does not describe", scratch_path("1.ring"));
	made_ring_free(&r);
}

/* The counts say more than there is, a record claims too much, the ring is full of noise: what is sound is kept. */
static void a_hostile_ring_costs_its_own_samples_only(void **state)
{
	const uint64_t at[] = {0x5010};
	struct made_ring r = made_ring_new(scratch_path("1.ring"), PID_OF_NOBODY, 5);
	struct sampler_record huge = {UINT32_MAX - 7, SAMPLER_SAMPLE, 0};
	struct sampler_sample deep = {.record = {sizeof deep, SAMPLER_SAMPLE, 0}, .count = 1000};
	struct sampler_sample kept = {.record = {sizeof kept, SAMPLER_SAMPLE, 0}, .tid = 3, .t = 50, .kept = 600};
	struct profile p;

	(void)state;
	made_sample(&r, 0, 1, 10, 0, at, 1, 0);
	made_put(&r, 0, &deep, sizeof deep); /* says more frames than it holds: passed over */
	made_sample(&r, 0, 1, 20, 0, at, 1, 0);
	made_put(&r, 0, &huge, sizeof huge); /* no size, so nothing behind it can be found */
	made_sample(&r, 0, 1, 30, 0, at, 1, 0);
	made_slot(&r, 1)->head = UINT64_MAX;
	memset((char *)made_slot(&r, 2) + SAMPLER_RING_OFFSET, 0xff, SAMPLER_RING_BYTES);
	made_slot(&r, 2)->head = 4096;
	made_put(&r, 3, &kept, sizeof kept); /* goes on from a sample that never was */
	r.header->slots = UINT32_MAX;
	r.header->modules_used = UINT64_MAX;
	drain(scratch_path("1.ring"), scratch_path("s.seg"), &p);
	assert_int_equal(p.sample_count, 3);
	assert_int_equal(p.samples[0].t, 10);
	assert_int_equal(p.samples[1].t, 20);
	assert_int_equal(p.samples[2].t, 50);
	assert_int_equal(p.samples[2].flags, PROFILE_CUT);
	assert_string_equal(stack_of(&p, 2), "");
	profile_release(&p);
	made_ring_free(&r);
}

static void ignore_thread(void *context, uint32_t slot, int tid, const char *name)
{
	(void)context, (void)slot, (void)tid, (void)name;
}

static void ignore_lost(void *context, uint32_t slot)
{
	(void)context, (void)slot;
}

static void ignore_sample(void *context, uint32_t slot, const struct ring_sample *s)
{
	(void)context, (void)slot, (void)s;
}

static void only_the_part_of_a_ring_that_is_used_is_mapped(void **state)
{
	const uint64_t at[] = {0x5010};
	const struct ring_sink sink = {NULL, ignore_thread, ignore_sample, ignore_lost};
	struct made_ring r = made_ring_new(scratch_path("1.ring"), PID_OF_NOBODY, 5);
	uint64_t bytes = r.header->slots_offset + (uint64_t)SAMPLER_SLOTS_MAX * SAMPLER_SLOT_BYTES;
	struct ring_counts counts;
	struct ring *ring;

	(void)state;
	assert_int_equal(truncate(scratch_path("1.ring"), (off_t)bytes), 0);
	r.header->slot_max = SAMPLER_SLOTS_MAX;
	ring = open_ring(scratch_path("1.ring"));
	assert_true(ring->bytes < 2 << 20);
	made_ring_free(&r);
	r.bytes = bytes;
	made_ring_map(&r, scratch_path("1.ring"));
	made_sample(&r, 0, 1, 10, 0, at, 1, 0);
	made_sample(&r, 300, 1, 10, 0, at, 1, 0);
	assert_true(ring_drain(ring, 0, &sink));
	ring_release(ring);
	assert_int_equal(made_slot(&r, 300)->tail, made_slot(&r, 300)->head);
	ring_count(ring, &counts);
	assert_int_equal(counts.weight, 2);
	assert_int_equal(ring->unread_slots, 0);
	assert_true(ring->bytes < bytes / 4);
	ring_close(ring);
	made_ring_free(&r);
}

/* Cuts the file in the midst of being read. */
static void cut_file(void *context, uint32_t slot, const struct ring_sample *s)
{
	(void)slot, (void)s;
	assert_int_equal(truncate(context, 4096), 0);
}

static void a_file_that_is_cut_while_it_is_read_is_given_up(void **state)
{
	const uint64_t at[] = {0x5010};
	const char *path = scratch_path("1.ring");
	struct made_ring r = made_ring_new(path, PID_OF_NOBODY, 5);
	const struct ring_sink sink = {(void *)path, ignore_thread, cut_file, ignore_lost};
	struct ring *ring = open_ring(path);
	struct ring_counts counts;

	(void)state;
	made_sample(&r, 0, 1, 10, 0, at, 1, 0);
	made_sample(&r, 3, 1, 10, 0, at, 1, 0);
	ring_drain(ring, 0, &sink);
	assert_true(ring->broken);
	assert_false(ring_drain(ring, 0, &sink));
	ring_release(ring);
	ring_count(ring, &counts);
	assert_int_equal(counts.weight, 0);
	ring_close(ring);
	made_ring_free(&r);
}

static void put_rings(int64_t from, int64_t to)
{
	const uint64_t frames[] = {0x5010, 0x5020, 0x5030};
	struct made_ring r = made_ring_new(scratch_path("rings/1.ring"), PID_OF_NOBODY, 5);

	made_module(&r, 0, 0x5000, 0x6000, 0x4000, "/lib/liba.so", 1);
	made_thread(&r, 0, 7, "main");
	for (int64_t t = from; t < to; t++)
		made_sample(&r, 0, 7, t, t == from ? 0 : 2, frames, t == from ? 3 : 1, SAMPLER_COMPLETE);
	made_ring_free(&r);
}

static void check_recovered(size_t samples)
{
	struct profile p;
	struct error err = {""};

	profile_init(&p);
	if (samples_read(scratch_path("s.seg"), &p, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(p.damaged);
	assert_int_equal(p.sample_count, samples);
	assert_int_equal(p.image_count, 1);
	assert_int_equal(p.thread_count, 1);
	for (size_t i = 0; i < samples; i++) {
		assert_int_equal(p.samples[i].t, 100 + (int64_t)i);
		assert_string_equal(stack_of(&p, i), "liba.so+1010 liba.so+1020 liba.so+1030");
		assert_int_equal(p.samples[i].flags, PROFILE_COMPLETE);
	}
	profile_release(&p);
}

static void recovery_takes_what_is_left_in_the_rings(void **state)
{
	struct warnings warnings;
	struct error err = {""};

	(void)state;
	warnings_init(&warnings);
	assert_int_equal(mkdir(scratch_path("rings"), 0777), 0);
	put_rings(100, 110);
	if (sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err) < 0)
		fail_msg("%s", err.text);
	check_recovered(10);
	/* Its process is gone, and so is the file. */
	assert_false(fs_exists(scratch_path("rings")));
	/* Done again it changes nothing. */
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), 0);
	check_recovered(10);
	warnings_release(&warnings);
}

/* The recorder was killed after it had written samples and before it gave their room back: none counts twice. */
static void recovery_counts_no_sample_twice(void **state)
{
	struct warnings warnings;
	struct error err = {""};
	struct profile p;

	(void)state;
	warnings_init(&warnings);
	assert_int_equal(mkdir(scratch_path("rings"), 0777), 0);
	put_rings(100, 105);
	drain(scratch_path("rings/1.ring"), scratch_path("s.seg"), &p);
	assert_int_equal(p.sample_count, 5);
	profile_release(&p);
	unlink(scratch_path("rings/1.ring"));
	put_rings(100, 110);
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), 0);
	check_recovered(10);
	warnings_release(&warnings);
}

/* What is in the ring goes on from the frames of a sample that is only in the segment. */
static void recovery_goes_on_from_stacks_on_file(void **state)
{
	const uint64_t leaf[] = {0x5010};
	struct warnings warnings;
	struct error err = {""};
	struct made_ring r;
	struct profile p;

	(void)state;
	warnings_init(&warnings);
	assert_int_equal(mkdir(scratch_path("rings"), 0777), 0);
	put_rings(100, 105);
	drain(scratch_path("rings/1.ring"), scratch_path("s.seg"), &p);
	profile_release(&p);
	unlink(scratch_path("rings/1.ring"));
	r = made_ring_new(scratch_path("rings/1.ring"), PID_OF_NOBODY, 5);
	made_module(&r, 0, 0x5000, 0x6000, 0x4000, "/lib/liba.so", 1);
	made_sample(&r, 0, 7, 105, 2, leaf, 1, SAMPLER_COMPLETE);
	made_ring_free(&r);
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), 0);
	check_recovered(6);
	warnings_release(&warnings);
}

/* It lives on, and a second recovery comes when the first samples of its ring are on file. */
static void recovery_of_a_living_process_may_come_again(void **state)
{
	const uint64_t frames[] = {0x5010, 0x5020, 0x5030};
	struct warnings warnings;
	struct error err = {""};
	struct made_ring r;

	(void)state;
	warnings_init(&warnings);
	assert_int_equal(mkdir(scratch_path("rings"), 0777), 0);
	r = made_ring_new(scratch_path("rings/1.ring"), (int)getpid(), 5);
	made_module(&r, 0, 0x5000, 0x6000, 0x4000, "/lib/liba.so", 1);
	made_thread(&r, 0, 7, "main");
	made_sample(&r, 0, 7, 100, 0, frames, 3, SAMPLER_COMPLETE);
	made_sample(&r, 0, 7, 101, 2, frames, 1, SAMPLER_COMPLETE);
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), 0);
	check_recovered(2);
	assert_true(fs_exists(scratch_path("rings/1.ring")));
	/* As if the killed recorder had given back the first one's room. */
	made_slot(&r, 0)->tail = sizeof(struct sampler_thread) + sizeof(struct sampler_sample) + 3 * 8;
	made_sample(&r, 0, 7, 102, 2, frames, 1, SAMPLER_COMPLETE);
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), 0);
	check_recovered(3);
	made_ring_free(&r);
	warnings_release(&warnings);
}

static void recovery_without_samples_says_so(void **state)
{
	struct warnings warnings;
	struct error err = {""};

	(void)state;
	warnings_init(&warnings);
	assert_int_equal(sampling_recover(scratch_path("rings"), scratch_path("s.seg"), &warnings, &err), -1);
	assert_non_null(strstr(err.text, "no CPU samples"));
	assert_false(fs_exists(scratch_path("s.seg")));
	assert_false(fs_exists(scratch_path("s.seg.new")));
	warnings_release(&warnings);
}

static void executable_mappings_are_found(void **state)
{
	char text[] = "00400000-00401000 r--p 00000000 fe:00 123                                /bin/x y\n"
		      "00401000-00402000 r-xp 00001000 fe:00 123                                /bin/x y\n"
		      "nonsense\n"
		      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
		      "7fff00000000-7fff00001000 r-xp 00000000 00:00 0                          [vdso]";
	struct code_maps maps;

	(void)state;
	code_maps_init(&maps);
	assert_int_equal(code_maps_parse(&maps, text), 0);
	assert_int_equal(maps.count, 3);
	assert_string_equal(code_maps_find(&maps, 0x401fff)->path, "/bin/x y");
	assert_int_equal(code_maps_find(&maps, 0x401000)->offset, 0x1000);
	assert_null(code_maps_find(&maps, 0x400000));
	assert_null(code_maps_find(&maps, 0x402000));
	assert_string_equal(code_maps_find(&maps, 0x7f0000000000)->path, "");
	assert_string_equal(code_maps_find(&maps, 0x7fff00000800)->path, "[vdso]");
	code_maps_release(&maps);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_of_threads_come_out_with_their_stacks),
		TEST(an_address_belongs_to_the_module_of_its_time),
		TEST(the_ring_goes_round),
		TEST(what_is_no_ring_is_refused),
		TEST(a_hostile_ring_costs_its_own_samples_only),
		TEST(a_file_that_is_cut_while_it_is_read_is_given_up),
		TEST(only_the_part_of_a_ring_that_is_used_is_mapped),
		TEST(recovery_takes_what_is_left_in_the_rings),
		TEST(recovery_counts_no_sample_twice),
		TEST(recovery_goes_on_from_stacks_on_file),
		TEST(recovery_of_a_living_process_may_come_again),
		TEST(recovery_without_samples_says_so),
		TEST(executable_mappings_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
