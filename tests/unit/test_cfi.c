#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/expression.h"
#include "cfi/frame.h"
#include "cfi/program.h"

#define TABLES_AT 0x10000 /* address of the made-up .eh_frame */
#define CODE_AT 0x4000
#define CODE_SIZE 0x100

/* A made-up .eh_frame: one common part and one entry for [CODE_AT, CODE_AT + CODE_SIZE). */
struct made {
	uint8_t *bytes;
	size_t size, entry; /* entry: its place */
};

static void put(struct made *m, const void *bytes, size_t size)
{
	m->bytes = realloc(m->bytes, m->size + size); /* of the exact size, so that reading past it is noticed */
	assert_non_null(m->bytes);
	if (size)
		memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

static void put_u32(struct made *m, uint32_t value)
{
	put(m, &value, sizeof value);
}

/* With version 1, addresses of 4 bytes that count from where they stand, units of 1 and -8, def_cfa rsp + 8 and the
 * return address at CFA - 8. */
static struct made make(const char *letters, uint8_t augmentation, const uint8_t *program, size_t length)
{
	static const uint8_t rest[] = {1, 0x78, 16}, initial[] = {0x0c, 7, 8, 0x90, 1};
	struct made m = {0};
	uint8_t data[] = {2, 0x1b, augmentation}, none = 0, version = 1;
	size_t letters_size = strlen(letters) + 1;

	put_u32(&m, (uint32_t)(4 + 1 + letters_size + sizeof rest + sizeof data + sizeof initial));
	put_u32(&m, 0);
	put(&m, &version, 1);
	put(&m, letters, letters_size);
	put(&m, rest, sizeof rest);
	put(&m, data, sizeof data);
	put(&m, initial, sizeof initial);
	m.entry = m.size;
	put_u32(&m, (uint32_t)(4 + 8 + 1 + length));
	put_u32(&m, (uint32_t)(m.size));
	put_u32(&m, (uint32_t)(CODE_AT - (TABLES_AT + (int)m.size)));
	put_u32(&m, CODE_SIZE);
	put(&m, &none, 1);
	put(&m, program, length);
	return m;
}

static struct cfi_section section_of(const struct made *m, size_t size)
{
	return (struct cfi_section){m->bytes, m->bytes + size, TABLES_AT, TABLES_AT};
}

static bool row_at(const struct made *m, uint64_t address, unsigned room, struct cfi_row *row)
{
	struct cfi_section section = section_of(m, m->size);
	struct cfi_row remembered[8];
	struct cfi_states states = {remembered, room};
	struct cfi_common common = {.at = NULL};
	struct cfi_entry entry;

	assert_true(cfi_entry_read(&section, m->bytes + m->entry, &common, &entry));
	assert_int_equal(entry.start, CODE_AT);
	assert_int_equal(entry.size, CODE_SIZE);
	return cfi_run(&section, &common, &entry, address, &states, row);
}

static cfi_rule at_cfa(int offset)
{
	return offset * 8 + CFI_AT_CFA;
}

static void a_row_holds_until_the_next_begins(void **state)
{
	/* push rbp; mov rsp, rbp; and behind a return in the middle, the same again. */
	static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x20, 0x0a, 0x0c, 7, 8, 0xc6,
					  0x41, 0x0b, 0x03, 0x40, 0, 0x07, 3, 0, 0};
	static const struct {
		uint64_t at;
		int base, offset;
		bool saved;
	} rows[] = {{0, 7, 8, false},    {1, 7, 16, true},   {3, 7, 16, true},   {4, 6, 16, true},
		    {0x23, 6, 16, true}, {0x24, 7, 8, false}, {0x25, 6, 16, true}, {0x64, 6, 16, true}};
	struct made m = make("zR", 0, program, sizeof program);
	struct cfi_row row;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(row_at(&m, CODE_AT + rows[i].at, 1, &row));
		assert_int_equal(row.cfa_register, rows[i].base);
		assert_int_equal(row.cfa_value, rows[i].offset);
		assert_int_equal(row.rules[CFI_RBP], rows[i].saved ? at_cfa(-16) : CFI_SAME);
		assert_int_equal(row.rules[CFI_RIP], at_cfa(-8));
		assert_int_equal(row.rules[CFI_RBX], CFI_SAME);
		assert_false(row.bare || row.signal_frame || row.cfa_expression);
	}
	assert_true(row_at(&m, CODE_AT + 0x65, 1, &row));
	assert_int_equal(row.rules[CFI_RBX], CFI_UNDEFINED);
	assert_false(row_at(&m, CODE_AT + 0x65, 0, &row)); /* no room for what is remembered */
	free(m.bytes);
}

static void what_the_letters_say_is_taken_from_the_common_part(void **state)
{
	static const uint8_t nothing[] = {0, 0, 0};
	struct made plain = make("zR", 0, nothing, sizeof nothing), signal = make("zRS", 0, nothing, sizeof nothing);
	struct made more = make("zRX", 0, nothing, sizeof nothing); /* a letter of the future, with a byte of data */
	struct cfi_row row;

	(void)state;
	assert_true(row_at(&plain, CODE_AT, 0, &row));
	assert_true(row.bare && !row.signal_frame);
	assert_true(row_at(&signal, CODE_AT, 0, &row));
	assert_true(row.signal_frame);
	assert_true(row_at(&more, CODE_AT + CODE_SIZE - 1, 0, &row));
	assert_int_equal(row.cfa_value, 8);
	free(plain.bytes);
	free(signal.bytes);
	free(more.bytes);
}

/* Entries by the million may have a common part that is as long as the file: none takes long to refuse. */
static void overlong_letters_and_numbers_are_refused(void **state)
{
	static const uint8_t number[17] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80, 0x80, 0x80, 0};
	struct made m = make("zRBBBBBBBBBBBBBBBBBBBB", 0, NULL, 0);
	struct cfi_section section = section_of(&m, m.size);
	struct cfi_common common = {.at = NULL};
	struct cfi_bytes b = {number, number + sizeof number, false};
	struct cfi_entry entry;

	(void)state;
	assert_false(cfi_entry_read(&section, m.bytes + m.entry, &common, &entry));
	cfi_uleb(&b);
	assert_true(b.bad);
	b = (struct cfi_bytes){number + 1, number + sizeof number, false};
	assert_int_equal(cfi_sleb(&b), 0);
	assert_true(!b.bad && b.at == b.end);
	free(m.bytes);
}

static void a_broken_program_gives_no_row(void **state)
{
	static const struct {
		uint8_t length, bytes[8];
	} programs[] = {
		{1, {0x0b}},                    /* nothing was remembered */
		{1, {0x3f}},                    /* no such instruction */
		{2, {0x0d, 16}},                /* a CFA from the return address */
		{4, {0x0f, 1, 0x96, 0x0e}},     /* cut */
		{5, {0x0f, 1, 0x96, 0x0e, 8}},  /* an offset to an expression */
		{3, {0x0f, 9, 0x96}},           /* an expression that ends behind the entry */
		{6, {0x86, 0xff, 0xff, 0xff, 0xff, 0x7f}}, /* saved 256 GiB away */
	};
	uint8_t *long_one = calloc(1, 70000); /* more instructions than any function has */
	struct made m = make("zR", 0, long_one, 70000);
	struct cfi_row row;

	(void)state;
	assert_false(row_at(&m, CODE_AT, 2, &row));
	free(m.bytes);
	free(long_one);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		m = make("zR", 0, programs[i].bytes, programs[i].length);
		assert_false(row_at(&m, CODE_AT, 2, &row));
		free(m.bytes);
	}
}

static void of_cut_tables_nothing_is_read_behind_the_end(void **state)
{
	static const uint8_t nothing[] = {0, 0, 0};
	struct made whole = make("zR", 0, nothing, sizeof nothing);

	(void)state;
	for (size_t size = whole.entry; size < whole.size; size++) {
		struct made cut = {.bytes = malloc(size), .size = size};
		struct cfi_section section = section_of(&cut, size);
		struct cfi_common common = {.at = NULL};
		struct cfi_entry entry;

		assert_non_null(cut.bytes);
		memcpy(cut.bytes, whole.bytes, size);
		assert_false(cfi_entry_read(&section, cut.bytes + whole.entry, &common, &entry));
		free(cut.bytes);
	}
	free(whole.bytes);
}

static bool read_memory(void *context, uint64_t address, uint64_t *ret_value)
{
	(void)context;
	if (address < 0x1000 || address >= 0x2000)
		return false;
	*ret_value = address + 0x8877665500000000;
	return true;
}

/* Register n holds 100 * n, all but r11 are known, and the CFA, 77, is on the stack. */
static bool evaluate(const uint8_t *bytes, size_t length, uint64_t *ret)
{
	struct cfi_registers registers = {.valid = CFI_ALL_VALID & ~(1u << 11)};
	struct made m = {0};
	struct cfi_section section;
	struct cfi_frame frame = {&section, NULL, &registers, read_memory, NULL};
	uint8_t size = (uint8_t)length;
	uint64_t cfa = 77;
	bool good;

	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		registers.value[i] = 100 * i;
	put(&m, &size, 1);
	put(&m, bytes, length);
	section = section_of(&m, m.size);
	good = cfi_evaluate(&frame, 0, &cfa, ret);
	free(m.bytes);
	return good;
}

static void expressions_are_evaluated(void **state)
{
	static const struct {
		uint64_t result;
		uint8_t length, bytes[12];
	} rows[] = {
		{77, 0, {0}},
		{77, 1, {0x96}},
		{708, 2, {0x77, 8}},                      /* rsp + 8 */
		{592, 2, {0x76, 0x78}},                   /* rbp - 8 */
		{1601, 3, {0x92, 16, 1}},                 /* rip + 1 */
		{0x8877665500001000, 4, {0x0a, 0, 0x10, 0x06}},
		{0x1000, 5, {0x0a, 0, 0x10, 0x94, 4}},
		{UINT64_MAX, 2, {0x09, 0xff}},
		{300, 3, {0x10, 0xac, 2}},
		{0xfffffffffffffffe, 2, {0x11, 0x7e}},
		{0x1122334455667788, 9, {0x0e, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}},
		{67, 3, {0x08, 10, 0x1c}},                /* minus */
		{154, 2, {0x12, 0x22}},                   /* dup, plus */
		{UINT64_MAX - 71, 3, {0x35, 0x16, 0x1c}}, /* 5 - 77: swap */
		{77, 2, {0x35, 0x14}},                    /* over */
		{5, 1, {0x35}},
		{77, 2, {0x35, 0x13}},                    /* drop */
		{87, 2, {0x23, 10}},                      /* plus_uconst */
		{77 << 3, 2, {0x33, 0x24}},               /* shl */
		{0, 3, {0x08, 64, 0x24}},
		{UINT64_MAX, 5, {0x09, 0x80, 0x08, 99, 0x26}}, /* shra */
		{1, 4, {0x11, 0x7f, 0x31, 0x2d}},         /* -1 < 1 */
		{0, 3, {0x08, 77, 0x2e}},                 /* ne */
		{9, 9, {0x31, 0x28, 4, 0, 0x34, 0x2f, 1, 0, 0x39}}, /* a branch over a jump */
		{~(uint64_t)77, 1, {0x20}},
		{(uint64_t)-77, 1, {0x1f}},
	};
	uint64_t got;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(evaluate(rows[i].bytes, rows[i].length, &got));
		assert_int_equal(got, rows[i].result);
	}
}

static void broken_expressions_give_nothing(void **state)
{
	static const struct {
		uint8_t length, bytes[20];
	} rows[] = {
		{2, {0x13, 0x13}},                           /* an empty stack */
		{1, {0x13}},                                 /* and nothing left on it */
		{2, {0x0a, 0}},                              /* a number that is cut */
		{1, {0x06}},                                 /* memory that is not there */
		{2, {0x7b, 0}},                              /* r11 is not known */
		{3, {0x92, 17, 0}},                          /* no such register */
		{1, {0xff}},
		{3, {0x2f, 0xfd, 0xff}},                     /* jumps to itself */
		{3, {0x2f, 0xfc, 0xff}},                     /* and to where it does not begin */
		{3, {0x2f, 1, 0}},                           /* and behind its end */
		{16, {0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30}},
	};
	uint64_t got;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_false(evaluate(rows[i].bytes, rows[i].length, &got));
}

static void the_header_s_table_leads_to_the_entry(void **state)
{
	uint8_t bytes[12 + 3 * 8] = {1, 0x1b, 0x03, 0x3b};
	const int32_t words[] = {0x100 - 4, 3, -0x1000, 0x110, 0, 0x120, 0x1000, 0x130};
	struct cfi_bytes b = {bytes, bytes + sizeof bytes, false}, first = {bytes, bytes + 12, false};
	struct cfi_head head;

	(void)state;
	memcpy(bytes + 4, words, sizeof words);
	assert_true(cfi_head_read(&b, TABLES_AT, &head));
	assert_int_equal(head.frames, TABLES_AT + 0x100);
	assert_int_equal(head.count, 3);
	assert_int_equal(cfi_head_search(&head, TABLES_AT - 0x1000), TABLES_AT + 0x110);
	assert_int_equal(cfi_head_search(&head, TABLES_AT - 1), TABLES_AT + 0x110);
	assert_int_equal(cfi_head_search(&head, TABLES_AT + 0xfff), TABLES_AT + 0x120);
	assert_int_equal(cfi_head_search(&head, TABLES_AT + 0x1000), TABLES_AT + 0x130);
	assert_int_equal(cfi_head_search(&head, UINT64_MAX), TABLES_AT + 0x130);
	assert_true(cfi_head_read(&first, TABLES_AT, &head));
	assert_int_equal(head.frames, TABLES_AT + 0x100);
	assert_int_equal(head.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_holds_until_the_next_begins),
		cmocka_unit_test(what_the_letters_say_is_taken_from_the_common_part),
		cmocka_unit_test(overlong_letters_and_numbers_are_refused),
		cmocka_unit_test(a_broken_program_gives_no_row),
		cmocka_unit_test(of_cut_tables_nothing_is_read_behind_the_end),
		cmocka_unit_test(expressions_are_evaluated),
		cmocka_unit_test(broken_expressions_give_nothing),
		cmocka_unit_test(the_header_s_table_leads_to_the_entry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
