/* DWARF expressions, as far as unwind tables have them: those of signal frames, of the procedure linkage table, and of
 * functions that align their stack. They have no loops here: jumps are refused, so that each ends. */
#include "record/cfi.h"
#include "record/cfi_bytes.h"

#define STACK_MAX 32

struct machine {
	uint64_t stack[STACK_MAX];
	size_t depth;
	bool bad;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth == 0) {
		m->bad = true;
		return 0;
	}
	return m->stack[--m->depth];
}

static void push_register(struct machine *m, const uint64_t registers[CFI_REGISTERS], uint64_t number, int64_t offset)
{
	if (number >= CFI_REGISTERS)
		m->bad = true;
	else
		push(m, registers[number] + (uint64_t)offset);
}

static void push_constant(struct machine *m, struct cfi_bytes *b, uint8_t code)
{
	switch (code) {
	case 0x08: /* const1u, 1s, 2u, 2s, 4u, 4s, 8u, 8s, u, s */
		push(m, cfi_fixed(b, 1));
		break;
	case 0x09:
		push(m, (uint64_t)cfi_signed(b, 1));
		break;
	case 0x0a:
		push(m, cfi_fixed(b, 2));
		break;
	case 0x0b:
		push(m, (uint64_t)cfi_signed(b, 2));
		break;
	case 0x0c:
		push(m, cfi_fixed(b, 4));
		break;
	case 0x0d:
		push(m, (uint64_t)cfi_signed(b, 4));
		break;
	case 0x0e:
	case 0x0f:
		push(m, cfi_fixed(b, 8));
		break;
	case 0x10:
		push(m, cfi_uleb(b));
		break;
	default:
		push(m, (uint64_t)cfi_sleb(b));
	}
}

/* Operations on the two topmost. */
static void combine(struct machine *m, uint8_t code)
{
	uint64_t b = pop(m), a = pop(m);

	switch (code) {
	case 0x1a: /* and */
		push(m, a & b);
		break;
	case 0x1c: /* minus */
		push(m, a - b);
		break;
	case 0x1e: /* mul */
		push(m, a * b);
		break;
	case 0x21: /* or */
		push(m, a | b);
		break;
	case 0x22: /* plus */
		push(m, a + b);
		break;
	case 0x24: /* shl */
		push(m, b < 64 ? a << b : 0);
		break;
	case 0x25: /* shr */
		push(m, b < 64 ? a >> b : 0);
		break;
	case 0x27: /* xor */
		push(m, a ^ b);
		break;
	case 0x29: /* eq ge gt le lt ne, of signed numbers */
		push(m, a == b);
		break;
	case 0x2a:
		push(m, (int64_t)a >= (int64_t)b);
		break;
	case 0x2b:
		push(m, (int64_t)a > (int64_t)b);
		break;
	case 0x2c:
		push(m, (int64_t)a <= (int64_t)b);
		break;
	case 0x2d:
		push(m, (int64_t)a < (int64_t)b);
		break;
	case 0x2e:
		push(m, a != b);
		break;
	default:
		m->bad = true;
	}
}

static void rearrange(struct machine *m, uint8_t code)
{
	uint64_t top = pop(m);

	switch (code) {
	case 0x12: /* dup */
		push(m, top);
		push(m, top);
		break;
	case 0x13: /* drop */
		break;
	case 0x14: { /* over */
		uint64_t below = pop(m);

		push(m, below);
		push(m, top);
		push(m, below);
		break;
	}
	default: { /* swap */
		uint64_t below = pop(m);

		push(m, top);
		push(m, below);
	}
	}
}

static void fetch(struct machine *m, cfi_memory memory, void *context)
{
	uint64_t value = 0;

	m->bad |= !memory(context, pop(m), &value);
	push(m, value);
}

bool cfi_evaluate(const struct cfi_rule *rule, const uint64_t registers[CFI_REGISTERS], const uint64_t *first,
		  cfi_memory memory, void *context, uint64_t *ret)
{
	struct cfi_bytes b = {.at = rule->expression, .end = rule->expression + rule->length};
	struct machine m = {.bad = false};
	uint64_t number;

	if (first)
		push(&m, *first);
	while (b.at < b.end && !b.bad && !m.bad) {
		uint8_t code = (uint8_t)cfi_fixed(&b, 1);

		if (code == 0x06) { /* deref */
			fetch(&m, memory, context);
		} else if (code >= 0x08 && code <= 0x11) {
			push_constant(&m, &b, code);
		} else if (code == 0x12 || code == 0x13 || code == 0x14 || code == 0x16) {
			rearrange(&m, code);
		} else if (code == 0x23) { /* plus_uconst */
			push(&m, pop(&m) + cfi_uleb(&b));
		} else if (code >= 0x1a && code <= 0x2e) {
			combine(&m, code);
		} else if (code >= 0x30 && code <= 0x4f) { /* lit0 and on */
			push(&m, code - 0x30u);
		} else if (code >= 0x70 && code <= 0x8f) { /* breg0 and on */
			push_register(&m, registers, code - 0x70u, cfi_sleb(&b));
		} else if (code == 0x92) { /* bregx */
			number = cfi_uleb(&b);
			push_register(&m, registers, number, cfi_sleb(&b));
		} else if (code != 0x96) { /* nop */
			return false;
		}
	}
	*ret = pop(&m);
	return !b.bad && !m.bad;
}
