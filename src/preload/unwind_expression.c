/* A small stack machine: see unwind_expression.h. */
#include "preload/unwind_expression.h"

#include "preload/unwind_reader.h"

#define DEPTH_MAX 8u
#define STEPS_MAX 64u

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08, /* up to OP_CONSTS: unsigned and signed of 1, 2, 4, 8 bytes, then of any length */
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_REG0 = 0x50,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

struct machine {
	uint64_t stack[DEPTH_MAX];
	unsigned depth;
	bool bad;
	const struct unwind_registers *registers;
	struct unwind_memory *memory;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == DEPTH_MAX)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		m->bad = true;
		return 0;
	}
	return m->stack[--m->depth];
}

static void push_register(struct machine *m, uint64_t number, int64_t offset)
{
	if (number >= UNWIND_REGISTERS || !(m->registers->valid >> number & 1))
		m->bad = true;
	else
		push(m, m->registers->value[number] + (uint64_t)offset);
}

static void push_constant(struct machine *m, struct unwind_reader *r, uint8_t op)
{
	unsigned size = 1u << (op - OP_CONST1U) / 2, unused = 64 - 8 * size;
	uint64_t value = unwind_read_bytes(r, size);

	if ((op - OP_CONST1U) & 1)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	push(m, value);
}

static void load(struct machine *m, unsigned size)
{
	uint64_t value;

	if (size == 0 || size > 8 || !unwind_read(m->memory, pop(m), &value))
		m->bad = true;
	else
		push(m, size < 8 ? value & (((uint64_t)1 << 8 * size) - 1) : value);
}

static uint64_t compare(int64_t a, int64_t b, uint8_t op)
{
	switch (op) {
	case OP_EQ:
		return a == b;
	case OP_GE:
		return a >= b;
	case OP_GT:
		return a > b;
	case OP_LE:
		return a <= b;
	case OP_LT:
		return a < b;
	default:
		return a != b;
	}
}

/* Those that take two values and leave one. Returns false for others. */
static bool run_binary(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	if (op != OP_AND && op != OP_MINUS && op != OP_MUL && (op < OP_OR || op > OP_NE || op == OP_BRA))
		return false;
	b = pop(m);
	a = pop(m);
	switch (op) {
	case OP_AND:
		push(m, a & b);
		break;
	case OP_MINUS:
		push(m, a - b);
		break;
	case OP_MUL:
		push(m, a * b);
		break;
	case OP_OR:
		push(m, a | b);
		break;
	case OP_PLUS:
		push(m, a + b);
		break;
	case OP_SHL:
		push(m, b < 64 ? a << b : 0);
		break;
	case OP_SHR:
		push(m, b < 64 ? a >> b : 0);
		break;
	case OP_SHRA:
		push(m, (uint64_t)((int64_t)a >> (b < 64 ? b : 63)));
		break;
	case OP_XOR:
		push(m, a ^ b);
		break;
	default:
		push(m, compare((int64_t)a, (int64_t)b, op));
	}
	return true;
}

static void jump(struct unwind_reader *r, const uint8_t *start, bool taken)
{
	int16_t distance = (int16_t)unwind_read_bytes(r, 2);

	if (!taken || r->bad)
		return;
	if (distance < start - r->at || distance > r->end - r->at)
		r->bad = true;
	else
		r->at += distance;
}

static void run_one(struct machine *m, struct unwind_reader *r, const uint8_t *start)
{
	uint8_t op = unwind_read_u8(r);
	uint64_t a, number;

	if (op >= OP_LIT0 && op < OP_REG0) {
		push(m, op - OP_LIT0);
	} else if (op >= OP_BREG0 && op < OP_BREG0 + 32) {
		push_register(m, op - OP_BREG0, unwind_read_sleb(r));
	} else if (op >= OP_CONST1U && op < OP_CONSTU) {
		push_constant(m, r, op);
	} else if (op != OP_PLUS_UCONST && run_binary(m, op)) {
		return;
	} else {
		switch (op) {
		case OP_ADDR:
			push(m, unwind_read_bytes(r, 8));
			break;
		case OP_DEREF:
			load(m, 8);
			break;
		case OP_DEREF_SIZE:
			load(m, unwind_read_u8(r));
			break;
		case OP_CONSTU:
			push(m, unwind_read_uleb(r));
			break;
		case OP_CONSTS:
			push(m, (uint64_t)unwind_read_sleb(r));
			break;
		case OP_DUP:
			a = pop(m);
			push(m, a);
			push(m, a);
			break;
		case OP_DROP:
			pop(m);
			break;
		case OP_OVER:
			if (m->depth < 2)
				m->bad = true;
			else
				push(m, m->stack[m->depth - 2]);
			break;
		case OP_SWAP:
			number = pop(m);
			a = pop(m);
			push(m, number);
			push(m, a);
			break;
		case OP_NEG:
			push(m, 0 - pop(m));
			break;
		case OP_NOT:
			push(m, ~pop(m));
			break;
		case OP_PLUS_UCONST:
			push(m, pop(m) + unwind_read_uleb(r));
			break;
		case OP_BRA:
			jump(r, start, pop(m) != 0);
			break;
		case OP_SKIP:
			jump(r, start, true);
			break;
		case OP_BREGX:
			number = unwind_read_uleb(r);
			push_register(m, number, unwind_read_sleb(r));
			break;
		case OP_NOP:
			break;
		default:
			m->bad = true;
		}
	}
}

bool unwind_expression(const struct unwind_image *image, uintptr_t at, const struct unwind_registers *registers,
		       struct unwind_memory *memory, bool with_cfa, uint64_t cfa, uint64_t *ret_value)
{
	struct machine m = {.registers = registers, .memory = memory};
	uintptr_t low, limit = unwind_image_limit(image, at, &low);
	struct unwind_reader r = {(const uint8_t *)at, (const uint8_t *)limit, !limit};
	uint64_t length = unwind_read_uleb(&r);
	const uint8_t *start = r.at;

	if (r.bad || length > (uint64_t)(r.end - r.at))
		return false;
	r.end = r.at + length;
	if (with_cfa)
		push(&m, cfa);
	for (unsigned steps = 0; r.at < r.end && !m.bad && !r.bad; steps++) {
		if (steps == STEPS_MAX)
			return false;
		run_one(&m, &r, start);
	}
	if (m.bad || r.bad || !m.depth)
		return false;
	*ret_value = m.stack[m.depth - 1];
	return true;
}
