/* The call frame instructions of DWARF, as far as x86-64 code uses them: see program.h. */
#include "cfi/program.h"

#define VALUE_MAX ((int64_t)1 << 27) /* so that a rule's value fits into its 29 bits */
#define STEPS_MAX 65536u             /* instructions of one program: the longest real ones have some hundreds */

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_1 = 0x02,
	CFA_ADVANCE_2 = 0x03,
	CFA_ADVANCE_4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE = 0x0b,
	CFA_DEF = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ARGS_SIZE = 0x2e,
	CFA_NEGATIVE_OFFSET = 0x2f,
	CFA_ADVANCE_SHORT = 0x40, /* these three keep an operand in their low six bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE_SHORT = 0xc0,
};

struct state {
	struct cfi_row *row;
	cfi_rule initial[CFI_REGISTERS]; /* as the common part leaves them */
	const struct cfi_section *section;
	const struct cfi_common *common;
	const struct cfi_states *states;
	unsigned depth; /* states in use */
	unsigned steps;
	uint64_t location;
	bool bad;
};

/* Of vector registers and others that are not followed, nothing is kept. */
static void set_rule(struct state *s, uint64_t number, enum cfi_rule_kind kind, int64_t value)
{
	if (value < -VALUE_MAX || value > VALUE_MAX)
		s->bad = true;
	else if (number < CFI_REGISTERS)
		s->row->rules[number] = (int32_t)(value * 8) + (int32_t)kind;
}

static void restore_rule(struct state *s, uint64_t number)
{
	if (number < CFI_REGISTERS)
		s->row->rules[number] = s->initial[number];
}

/* An operand times the data factor; anything that overflows a sane frame is bad. */
static int64_t factored(struct state *s, int64_t operand)
{
	if (operand < -VALUE_MAX || operand > VALUE_MAX) {
		s->bad = true;
		return 0;
	}
	return operand * s->common->data_factor;
}

/* The block's length comes first: evaluated from there. */
static int64_t expression(const struct state *s, struct cfi_bytes *b)
{
	int64_t place = (int64_t)(cfi_address_of(s->section, b->at) - s->section->origin);

	cfi_skip(b, cfi_uleb(b));
	return place;
}

static void set_cfa(struct state *s, uint64_t number, int64_t value)
{
	if (number >= CFI_RIP || value < -VALUE_MAX || value > VALUE_MAX) {
		s->bad = true;
		return;
	}
	s->row->cfa_register = (uint8_t)number;
	s->row->cfa_value = (int32_t)value;
	s->row->cfa_expression = false;
}

static void set_cfa_expression(struct state *s, int64_t place)
{
	if (place < -VALUE_MAX || place > VALUE_MAX)
		s->bad = true;
	s->row->cfa_register = 0;
	s->row->cfa_value = (int32_t)place;
	s->row->cfa_expression = true;
}

/* Only a CFA that is a register's can be changed in part. */
static void change_cfa(struct state *s, uint64_t number, int64_t value)
{
	if (s->row->cfa_expression)
		s->bad = true;
	else
		set_cfa(s, number, value);
}

static void remember(struct state *s)
{
	if (s->depth == s->states->room)
		s->bad = true;
	else
		s->states->rows[s->depth++] = *s->row;
}

static void recall(struct state *s)
{
	if (!s->depth)
		s->bad = true;
	else
		*s->row = s->states->rows[--s->depth];
}

/* Instructions that say how the CFA is found. Returns false for others. */
static bool run_cfa(struct state *s, struct cfi_bytes *b, uint8_t op)
{
	uint64_t number = s->row->cfa_register;

	switch (op) {
	case CFA_DEF:
		number = cfi_uleb(b);
		set_cfa(s, number, (int64_t)cfi_uleb(b));
		return true;
	case CFA_DEF_SF:
		number = cfi_uleb(b);
		set_cfa(s, number, factored(s, cfi_sleb(b)));
		return true;
	case CFA_DEF_REGISTER:
		change_cfa(s, cfi_uleb(b), s->row->cfa_value);
		return true;
	case CFA_DEF_OFFSET:
		change_cfa(s, number, (int64_t)cfi_uleb(b));
		return true;
	case CFA_DEF_OFFSET_SF:
		change_cfa(s, number, factored(s, cfi_sleb(b)));
		return true;
	case CFA_DEF_EXPRESSION:
		set_cfa_expression(s, expression(s, b));
		return true;
	default:
		return false;
	}
}

/* Instructions that say where a register is. Returns false for others. */
static bool run_register(struct state *s, struct cfi_bytes *b, uint8_t op)
{
	uint64_t number;

	if (op < CFA_OFFSET_EXTENDED || (op > CFA_REGISTER && op < CFA_EXPRESSION) ||
	    (op > CFA_VAL_EXPRESSION && op != CFA_NEGATIVE_OFFSET))
		return false;
	number = cfi_uleb(b);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_rule(s, number, CFI_AT_CFA, factored(s, (int64_t)cfi_uleb(b)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(s, number, CFI_AT_CFA, factored(s, cfi_sleb(b)));
		break;
	case CFA_NEGATIVE_OFFSET:
		set_rule(s, number, CFI_AT_CFA, -factored(s, (int64_t)cfi_uleb(b)));
		break;
	case CFA_VAL_OFFSET:
		set_rule(s, number, CFI_CFA_PLUS, factored(s, (int64_t)cfi_uleb(b)));
		break;
	case CFA_VAL_OFFSET_SF:
		set_rule(s, number, CFI_CFA_PLUS, factored(s, cfi_sleb(b)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore_rule(s, number);
		break;
	case CFA_UNDEFINED:
		set_rule(s, number, CFI_UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		set_rule(s, number, CFI_SAME, 0);
		break;
	case CFA_REGISTER:
		set_rule(s, number, CFI_REGISTER, (int64_t)cfi_uleb(b));
		break;
	case CFA_EXPRESSION:
		set_rule(s, number, CFI_AT, expression(s, b));
		break;
	case CFA_VAL_EXPRESSION:
		set_rule(s, number, CFI_EXPRESSION, expression(s, b));
		break;
	default:
		return false;
	}
	return true;
}

static void run_one(struct state *s, struct cfi_bytes *b)
{
	uint8_t op = cfi_byte(b), low = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_SHORT:
		s->location += (uint64_t)low * s->common->code_factor;
		return;
	case CFA_OFFSET:
		set_rule(s, low, CFI_AT_CFA, factored(s, (int64_t)cfi_uleb(b)));
		return;
	case CFA_RESTORE_SHORT:
		restore_rule(s, low);
		return;
	}
	switch (op) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		s->location = cfi_pointer(b, s->common->encoding, cfi_address_of(s->section, b->at));
		break;
	case CFA_ADVANCE_1:
		s->location += cfi_fixed(b, 1) * s->common->code_factor;
		break;
	case CFA_ADVANCE_2:
		s->location += cfi_fixed(b, 2) * s->common->code_factor;
		break;
	case CFA_ADVANCE_4:
		s->location += cfi_fixed(b, 4) * s->common->code_factor;
		break;
	case CFA_REMEMBER:
		remember(s);
		break;
	case CFA_RESTORE:
		recall(s);
		break;
	case CFA_ARGS_SIZE: /* what exceptions need */
		cfi_uleb(b);
		break;
	default: /* among them: the windows of other processors */
		if (!run_cfa(s, b, op) && !run_register(s, b, op))
			s->bad = true;
	}
}

/* Until the row that follows would begin behind `address`. Returns false for a broken program. */
static bool run(struct state *s, const uint8_t *program, const uint8_t *end, uint64_t address)
{
	struct cfi_bytes b = {program, end, false};

	while (b.at < b.end && s->location <= address) {
		s->row->bare = s->row->bare && *b.at == CFA_NOP;
		run_one(s, &b);
		if (s->bad || b.bad || ++s->steps > STEPS_MAX)
			return false;
	}
	return true;
}

bool cfi_run(const struct cfi_section *section, const struct cfi_common *common, const struct cfi_entry *entry,
	     uint64_t address, const struct cfi_states *states, struct cfi_row *row)
{
	struct state s;

	memset(row, 0, sizeof *row);
	row->cfa_register = CFI_REGISTERS;
	memcpy(s.initial, row->rules, sizeof s.initial);
	s.row = row;
	s.section = section;
	s.common = common;
	s.states = states;
	s.depth = 0;
	s.steps = 0;
	s.location = entry->start;
	s.bad = false;
	if (!run(&s, common->program, common->end, UINT64_MAX))
		return false;
	memcpy(s.initial, row->rules, sizeof s.initial);
	s.location = entry->start;
	row->bare = true;
	if (!run(&s, entry->program, entry->end, address))
		return false;
	row->signal_frame = common->signal_frame;
	return row->cfa_register < CFI_REGISTERS || cfi_rule_kind(row->rules[CFI_RIP]) == CFI_UNDEFINED;
}
