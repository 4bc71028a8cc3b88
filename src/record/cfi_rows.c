#include "record/cfi.h"
#include "record/cfi_tables.h"

#define STATES_MAX 8        /* remembered ones; compilers need one or two */
#define STEPS_MAX 65536     /* instructions of one entry: the longest real ones have some hundreds */

struct run {
	const struct cfi_common *common;
	struct cfi_row row, first; /* first: as the common part leaves it */
	struct cfi_row states[STATES_MAX];
	size_t depth;
	uint64_t at; /* the address that the row begins to hold at */
	const uint8_t *origin;
	uint64_t base;
};

static void set_rule(struct run *r, uint64_t number, struct cfi_rule rule)
{
	/* Vector registers and others that are not followed. */
	if (number < CFI_REGISTERS)
		r->row.rules[number] = rule;
}

static struct cfi_rule offset_rule(enum cfi_kind kind, int64_t offset)
{
	return (struct cfi_rule){.kind = (uint8_t)kind, .offset = offset};
}

/* Scaled as unsigned, since a hostile table may overflow. */
static int64_t scaled(const struct run *r, uint64_t units)
{
	return (int64_t)(units * (uint64_t)r->common->data_unit);
}

static struct cfi_rule expression_rule(struct cfi_bytes *b, enum cfi_kind kind)
{
	uint64_t length = cfi_uleb(b);
	struct cfi_rule rule = {.kind = (uint8_t)kind, .length = (uint16_t)length, .expression = b->at};

	cfi_skip(b, length);
	if (length > UINT16_MAX)
		b->bad = true;
	return rule;
}

static void set_cfa(struct run *r, struct cfi_bytes *b, uint64_t number, int64_t offset)
{
	if (number >= CFI_REGISTERS)
		b->bad = true;
	else
		r->row.cfa = (struct cfi_rule){.kind = CFI_VALUE_OFFSET, .other = (uint8_t)number, .offset = offset};
}

static void restore(struct run *r, uint64_t number)
{
	if (number < CFI_REGISTERS)
		r->row.rules[number] = r->first.rules[number];
}

static void step_cfa(struct run *r, struct cfi_bytes *b, uint8_t code)
{
	uint64_t number;

	switch (code) {
	case 0x0c: /* def_cfa */
		number = cfi_uleb(b);
		set_cfa(r, b, number, (int64_t)cfi_uleb(b));
		break;
	case 0x0d: /* def_cfa_register */
		set_cfa(r, b, cfi_uleb(b), r->row.cfa.offset);
		break;
	case 0x0e: /* def_cfa_offset */
		r->row.cfa.offset = (int64_t)cfi_uleb(b);
		break;
	case 0x0f: /* def_cfa_expression */
		r->row.cfa = expression_rule(b, CFI_VALUE_EXPRESSION);
		break;
	case 0x12: /* def_cfa_sf */
		number = cfi_uleb(b);
		set_cfa(r, b, number, scaled(r, (uint64_t)cfi_sleb(b)));
		break;
	case 0x13: /* def_cfa_offset_sf */
		r->row.cfa.offset = scaled(r, (uint64_t)cfi_sleb(b));
		break;
	default:
		b->bad = true;
	}
}

static void step_register(struct run *r, struct cfi_bytes *b, uint8_t code)
{
	uint64_t number = cfi_uleb(b), other;

	switch (code) {
	case 0x05: /* offset_extended */
		set_rule(r, number, offset_rule(CFI_OFFSET, scaled(r, cfi_uleb(b))));
		break;
	case 0x06: /* restore_extended */
		restore(r, number);
		break;
	case 0x07: /* undefined */
		set_rule(r, number, offset_rule(CFI_UNDEFINED, 0));
		break;
	case 0x08: /* same_value */
		set_rule(r, number, offset_rule(CFI_SAME, 0));
		break;
	case 0x09: /* register */
		other = cfi_uleb(b);
		if (other < CFI_REGISTERS)
			set_rule(r, number, (struct cfi_rule){.kind = CFI_REGISTER, .other = (uint8_t)other});
		else
			set_rule(r, number, offset_rule(CFI_UNDEFINED, 0));
		break;
	case 0x10: /* expression */
		set_rule(r, number, expression_rule(b, CFI_EXPRESSION));
		break;
	case 0x11: /* offset_extended_sf */
		set_rule(r, number, offset_rule(CFI_OFFSET, scaled(r, (uint64_t)cfi_sleb(b))));
		break;
	case 0x14: /* val_offset */
		set_rule(r, number, offset_rule(CFI_VALUE_OFFSET, scaled(r, cfi_uleb(b))));
		break;
	case 0x15: /* val_offset_sf */
		set_rule(r, number, offset_rule(CFI_VALUE_OFFSET, scaled(r, (uint64_t)cfi_sleb(b))));
		break;
	case 0x16: /* val_expression */
		set_rule(r, number, expression_rule(b, CFI_VALUE_EXPRESSION));
		break;
	default:
		b->bad = true;
	}
}

static void step_state(struct run *r, struct cfi_bytes *b, uint8_t code)
{
	if (code == 0x0a && r->depth < STATES_MAX) /* remember_state */
		r->states[r->depth++] = r->row;
	else if (code == 0x0b && r->depth > 0) /* restore_state */
		r->row = r->states[--r->depth];
	else
		b->bad = true;
}

static void step_other(struct run *r, struct cfi_bytes *b, uint8_t code)
{
	switch (code) {
	case 0x00: /* nop */
		break;
	case 0x01: /* set_loc */
		r->at = cfi_pointer(b, r->common->encoding, r->base + (uint64_t)(b->at - r->origin));
		break;
	case 0x02: /* advance_loc1, 2 and 4 */
		r->at += cfi_fixed(b, 1) * r->common->code_unit;
		break;
	case 0x03:
		r->at += cfi_fixed(b, 2) * r->common->code_unit;
		break;
	case 0x04:
		r->at += cfi_fixed(b, 4) * r->common->code_unit;
		break;
	case 0x0a:
	case 0x0b:
		step_state(r, b, code);
		break;
	case 0x0c ... 0x0f:
	case 0x12:
	case 0x13:
		step_cfa(r, b, code);
		break;
	case 0x2e: /* GNU_args_size: what exceptions need */
		cfi_uleb(b);
		break;
	default:
		step_register(r, b, code);
	}
}

/* Until the row that follows would begin past the address. */
static bool run_program(struct run *r, struct cfi_bytes b, uint64_t address)
{
	for (unsigned steps = 0; b.at < b.end && !b.bad; steps++) {
		uint8_t code = (uint8_t)cfi_fixed(&b, 1), low = code & 0x3f;

		if (steps == STEPS_MAX)
			return false;
		switch (code & 0xc0) {
		case 0x40: /* advance_loc */
			r->at += low * r->common->code_unit;
			break;
		case 0x80: /* offset */
			set_rule(r, low, offset_rule(CFI_OFFSET, scaled(r, cfi_uleb(&b))));
			break;
		case 0xc0: /* restore */
			restore(r, low);
			break;
		default:
			step_other(r, &b, low);
		}
		if (r->at > address) /* it only advanced: the row is still the one that held before */
			return !b.bad;
	}
	return !b.bad;
}

bool cfi_run(const struct cfi_entry *entry, uint64_t address, const uint8_t *origin, uint64_t base,
	     struct cfi_row *ret)
{
	struct run r = {.common = &entry->common, .at = entry->start, .origin = origin, .base = base};

	if (!run_program(&r, entry->common.program, UINT64_MAX))
		return false;
	r.first = r.row;
	r.at = entry->start;
	if (!run_program(&r, entry->program, address))
		return false;
	r.row.signal = entry->common.signal;
	*ret = r.row;
	return r.row.cfa.kind == CFI_VALUE_OFFSET || r.row.cfa.kind == CFI_VALUE_EXPRESSION;
}
