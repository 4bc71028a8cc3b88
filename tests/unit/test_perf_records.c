#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "record/perf_records.h"

static const struct perf_layout with_stack = {PERF_FIELDS_ALWAYS | PERF_FIELDS_STACK, 3};

/* A record under construction. */
struct made {
	uint64_t words[64];
	size_t count;
};

static void add(struct made *m, uint64_t word)
{
	m->words[m->count++] = word;
}

static uint64_t pair(uint32_t first, uint32_t second)
{
	return first | (uint64_t)second << 32;
}

static void add_text(struct made *m, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(&m->words[m->count], text, size);
	m->count += (size + 7) / 8;
}

static struct made begin(uint32_t type, uint16_t misc)
{
	struct made m = {.count = 1};
	struct perf_event_header header = {.type = type, .misc = misc};

	memcpy(m.words, &header, sizeof header);
	return m;
}

static void end(struct made *m)
{
	struct perf_event_header header;

	memcpy(&header, m->words, sizeof header);
	header.size = (uint16_t)(m->count * 8);
	memcpy(m->words, &header, sizeof header);
}

static void add_trailer(struct made *m)
{
	add(m, pair(7, 8));
	add(m, 1000);
	end(m);
}

static struct made sample(void)
{
	struct made m = begin(PERF_RECORD_SAMPLE, 0);

	add(&m, 0x401000);
	add(&m, pair(7, 8));
	add(&m, 1000);
	add(&m, 5000000);
	add(&m, 2); /* call chain */
	add(&m, PERF_CONTEXT_KERNEL);
	add(&m, 0xffffffff81000000);
	add(&m, PERF_SAMPLE_REGS_ABI_64);
	add(&m, 11);
	add(&m, 12);
	add(&m, 13);
	add(&m, 16); /* of the stack */
	add(&m, 21);
	add(&m, 22);
	add(&m, 8); /* of these were there */
	end(&m);
	return m;
}

static void a_sample_gives_its_registers_and_the_stack_that_was_there(void **state)
{
	struct made m = sample();
	struct perf_record r;

	(void)state;
	assert_true(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	assert_int_equal(r.pid, 7);
	assert_int_equal(r.tid, 8);
	assert_int_equal(r.t, 1000);
	assert_int_equal(r.sample.period, 5000000);
	assert_int_equal(r.sample.chain_count, 2);
	assert_int_equal(r.sample.chain[1], 0xffffffff81000000);
	assert_int_equal(r.sample.registers[2], 13);
	assert_int_equal(r.sample.stack_size, 8);
	assert_int_equal(r.sample.stack[0], 21);
}

/* Cut at any word, and saying so in its header; of the exact size, so that reading past it is noticed. */
static void a_record_that_is_cut_is_refused(void **state)
{
	struct made m = sample();

	(void)state;
	for (size_t count = 1; count < m.count; count++) {
		struct made cut = m;
		uint64_t *exact = malloc(count * 8);
		struct perf_record r;

		assert_non_null(exact);
		cut.count = count;
		end(&cut);
		memcpy(exact, cut.words, count * 8);
		assert_false(perf_record_decode(exact, count * 8, &with_stack, &r));
		free(exact);
	}
}

static void counts_that_run_past_the_record_are_refused(void **state)
{
	static const size_t places[] = {5, 12, 15}; /* call chain, stack, what of it was there */

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct made m = sample();
		struct perf_record r;

		m.words[places[i]] = UINT64_MAX / 8 + 2;
		assert_false(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
		m.words[places[i]] = UINT64_MAX;
		assert_false(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	}
}

static void a_mapping_tells_its_file_and_build_id(void **state)
{
	struct made m = begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	struct perf_record r;

	(void)state;
	add(&m, pair(7, 8));
	add(&m, 0x7f0000001000);
	add(&m, 0x2000);
	add(&m, 0x1000);
	add(&m, 20 | UINT64_C(0x11223344) << 32);
	add(&m, 0x0102030405060708);
	add(&m, 0x1112131415161718);
	add(&m, pair(5, 2)); /* PROT_READ | PROT_EXEC, MAP_PRIVATE */
	add_text(&m, "/usr/lib/libx.so.1");
	add_trailer(&m);
	assert_true(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	assert_int_equal(r.t, 1000);
	assert_int_equal(r.mapping.start, 0x7f0000001000);
	assert_int_equal(r.mapping.length, 0x2000);
	assert_int_equal(r.mapping.offset, 0x1000);
	assert_int_equal(r.mapping.protection, 5);
	assert_int_equal(r.mapping.build_id_length, 20);
	assert_int_equal(r.mapping.build_id[0], 0x44);
	assert_int_equal(r.mapping.inode, 0);
	assert_string_equal(r.mapping.path, "/usr/lib/libx.so.1");
}

static void a_path_without_an_end_is_refused(void **state)
{
	struct made m = begin(PERF_RECORD_MMAP2, 0);
	struct perf_record r;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		add(&m, 1);
	add(&m, UINT64_MAX);
	add_trailer(&m);
	assert_false(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
}

static void an_exec_differs_from_a_new_name(void **state)
{
	struct made m = begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	struct perf_record r;

	(void)state;
	add(&m, pair(7, 7));
	add_text(&m, "xz");
	add_trailer(&m);
	assert_true(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	assert_true(r.comm.exec);
	assert_string_equal(r.comm.name, "xz");
	m.words[0] &= ~((uint64_t)PERF_RECORD_MISC_COMM_EXEC << 32);
	assert_true(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	assert_false(r.comm.exec);
}

static void a_fork_names_the_new_thread_and_its_parents(void **state)
{
	struct made m = begin(PERF_RECORD_FORK, 0);
	struct perf_record r;

	(void)state;
	add(&m, pair(9, 7)); /* pid, ppid */
	add(&m, pair(9, 8)); /* tid, ptid */
	add(&m, 1000);
	add_trailer(&m);
	assert_true(perf_record_decode(m.words, m.count * 8, &with_stack, &r));
	assert_int_equal(r.pid, 9);
	assert_int_equal(r.tid, 9);
	assert_int_equal(r.parent.ppid, 7);
	assert_int_equal(r.parent.ptid, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_gives_its_registers_and_the_stack_that_was_there),
		cmocka_unit_test(a_record_that_is_cut_is_refused),
		cmocka_unit_test(counts_that_run_past_the_record_are_refused),
		cmocka_unit_test(a_mapping_tells_its_file_and_build_id),
		cmocka_unit_test(a_path_without_an_end_is_refused),
		cmocka_unit_test(an_exec_differs_from_a_new_name),
		cmocka_unit_test(a_fork_names_the_new_thread_and_its_parents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
