/* A small stack machine: see expression.h. */
#include "cfi/expression.h"

#define DEPTH_MAX 16u
#define STEPS_MAX 256u /* there are jumps */

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
	const struct cfi_frame *frame;
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
	if (number >= CFI_REGISTERS || !(m->frame->registers->valid >> number & 1))
		m->bad = true;
	else
		push(m, m->frame->registers->value[number] + (uint64_t)offset);
}

static void push_constant(struct machine *m, struct cfi_bytes *b, uint8_t op)
{
	unsigned size = 1u << (op - OP_CONST1U) / 2, unused = 64 - 8 * size;
	uint64_t value = cfi_fixed(b, size);

	if ((op - OP_CONST1U) & 1)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	push(m, value);
}

static void load(struct machine *m, unsigned size)
{
	uint64_t value;

	if (size == 0 || size > 8 || !m->frame->memory(m->frame->context, pop(m), &value))
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

static void jump(struct cfi_bytes *b, const uint8_t *start, bool taken)
{
	int16_t distance = (int16_t)cfi_fixed(b, 2);

	if (!taken || b->bad)
		return;
	if (distance < start - b->at || distance > b->end - b->at)
		b->bad = true;
	else
		b->at += distance;
}

static void run_one(struct machine *m, struct cfi_bytes *b, const uint8_t *start)
{
	uint8_t op = cfi_byte(b);
	uint64_t a, number;

	if (op >= OP_LIT0 && op < OP_REG0) {
		push(m, op - OP_LIT0);
	} else if (op >= OP_BREG0 && op < OP_BREG0 + 32) {
		push_register(m, op - OP_BREG0, cfi_sleb(b));
	} else if (op >= OP_CONST1U && op < OP_CONSTU) {
		push_constant(m, b, op);
	} else if (op != OP_PLUS_UCONST && run_binary(m, op)) {
		return;
	} else {
		switch (op) {
		case OP_ADDR:
			push(m, cfi_fixed(b, 8));
			break;
		case OP_DEREF:
			load(m, 8);
			break;
		case OP_DEREF_SIZE:
			load(m, cfi_byte(b));
			break;
		case OP_CONSTU:
			push(m, cfi_uleb(b));
			break;
		case OP_CONSTS:
			push(m, (uint64_t)cfi_sleb(b));
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
			push(m, pop(m) + cfi_uleb(b));
			break;
		case OP_BRA:
			jump(b, start, pop(m) != 0);
			break;
		case OP_SKIP:
			jump(b, start, true);
			break;
		case OP_BREGX:
			number = cfi_uleb(b);
			push_register(m, number, cfi_sleb(b));
			break;
		case OP_NOP:
			break;
		default:
			m->bad = true;
		}
	}
}

bool cfi_evaluate(const struct cfi_frame *frame, int32_t place, const uint64_t *first, uint64_t *ret_value)
{
	struct cfi_bytes b = cfi_section_bytes(frame->section, place);
	struct machine m;
	uint64_t length = cfi_uleb(&b);
	const uint8_t *start = b.at;

	m.depth = 0;
	m.bad = false;
	m.frame = frame;
	if (b.bad || length > (uint64_t)(b.end - b.at))
		return false;
	b.end = b.at + length;
	if (first)
		push(&m, *first);
	for (unsigned steps = 0; b.at < b.end && !m.bad && !b.bad; steps++) {
		if (steps == STEPS_MAX)
			return false;
		run_one(&m, &b, start);
	}
	if (m.bad || b.bad || !m.depth)
		return false;
	*ret_value = m.stack[m.depth - 1];
	return true;
}
