/* The call frame instructions of DWARF, as far as x86-64 code uses them: see unwind_program.h. */
#include "preload/unwind_program.h"

#define REMEMBERED_MAX 2u /* compilers nest one deep */
#define VALUE_MAX ((int64_t)1 << 27) /* so that a rule's value fits into its 29 bits */

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
	struct unwind_row row, initial, remembered[REMEMBERED_MAX];
	const struct unwind_cie *cie;
	const struct unwind_entry *entry;
	uintptr_t location;
	unsigned depth;
	bool bad;
};

/* Of a register that rows keep; UNWIND_KEPT: of another. */
static unsigned kept(uint64_t number)
{
	switch (number) {
	case UNWIND_RBX:
		return KEPT_RBX;
	case UNWIND_RBP:
		return KEPT_RBP;
	case UNWIND_RSP:
		return KEPT_RSP;
	case UNWIND_RIP:
		return KEPT_RIP;
	default:
		return number >= UNWIND_R12 && number <= UNWIND_R15 ? KEPT_R12 + (unsigned)(number - UNWIND_R12)
								    : UNWIND_KEPT;
	}
}

static void set_rule(struct state *s, uint64_t number, enum unwind_rule_kind kind, int64_t value)
{
	unsigned which = kept(number);

	if (value < -VALUE_MAX || value > VALUE_MAX)
		s->bad = true;
	else if (which < UNWIND_KEPT)
		s->row.rules[which] = (int32_t)(value * 8) + (int32_t)kind;
}

static void restore_rule(struct state *s, uint64_t number)
{
	unsigned which = kept(number);

	if (which < UNWIND_KEPT)
		s->row.rules[which] = s->initial.rules[which];
}

/* An operand times the data factor; anything that overflows a sane frame is bad. */
static int64_t factored(struct state *s, int64_t operand)
{
	if (operand < -VALUE_MAX || operand > VALUE_MAX) {
		s->bad = true;
		return 0;
	}
	return operand * s->cie->data_factor;
}

static int64_t expression(struct state *s, struct unwind_reader *r)
{
	int64_t place = (int64_t)((uintptr_t)r->at - s->entry->base);

	unwind_skip(r, unwind_read_uleb(r)); /* the block's length comes first: evaluated from there */
	return place;
}

static void set_cfa(struct state *s, uint64_t number, int64_t value, bool is_expression)
{
	if (number >= UNWIND_RIP || value < -VALUE_MAX || value > VALUE_MAX) {
		s->bad = true;
		return;
	}
	s->row.cfa_register = (uint8_t)number;
	s->row.cfa_value = (int32_t)value;
	s->row.cfa_expression = is_expression;
}

static void remember(struct state *s)
{
	if (s->depth == REMEMBERED_MAX)
		s->bad = true;
	else
		s->remembered[s->depth++] = s->row;
}

static void recall(struct state *s)
{
	if (!s->depth)
		s->bad = true;
	else
		s->row = s->remembered[--s->depth];
}

/* Instructions that say how the CFA is found. Returns false for others. */
static bool run_cfa(struct state *s, struct unwind_reader *r, uint8_t op)
{
	uint64_t number = s->row.cfa_register;

	switch (op) {
	case CFA_DEF:
		number = unwind_read_uleb(r);
		set_cfa(s, number, (int64_t)unwind_read_uleb(r), false);
		return true;
	case CFA_DEF_SF:
		number = unwind_read_uleb(r);
		set_cfa(s, number, factored(s, unwind_read_sleb(r)), false);
		return true;
	case CFA_DEF_REGISTER:
		set_cfa(s, unwind_read_uleb(r), s->row.cfa_value, false);
		return true;
	case CFA_DEF_OFFSET:
		set_cfa(s, number, (int64_t)unwind_read_uleb(r), false);
		return true;
	case CFA_DEF_OFFSET_SF:
		set_cfa(s, number, factored(s, unwind_read_sleb(r)), false);
		return true;
	case CFA_DEF_EXPRESSION:
		set_cfa(s, number, expression(s, r), true);
		return true;
	default:
		return false;
	}
}

/* Instructions that say where a register is. Returns false for others. */
static bool run_register(struct state *s, struct unwind_reader *r, uint8_t op)
{
	uint64_t number;

	if (op < CFA_OFFSET_EXTENDED || (op > CFA_REGISTER && op < CFA_EXPRESSION) ||
	    (op > CFA_VAL_EXPRESSION && op != CFA_NEGATIVE_OFFSET))
		return false;
	number = unwind_read_uleb(r);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_rule(s, number, RULE_AT_CFA, factored(s, (int64_t)unwind_read_uleb(r)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(s, number, RULE_AT_CFA, factored(s, unwind_read_sleb(r)));
		break;
	case CFA_NEGATIVE_OFFSET:
		set_rule(s, number, RULE_AT_CFA, -factored(s, (int64_t)unwind_read_uleb(r)));
		break;
	case CFA_VAL_OFFSET:
		set_rule(s, number, RULE_CFA_PLUS, factored(s, (int64_t)unwind_read_uleb(r)));
		break;
	case CFA_VAL_OFFSET_SF:
		set_rule(s, number, RULE_CFA_PLUS, factored(s, unwind_read_sleb(r)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore_rule(s, number);
		break;
	case CFA_UNDEFINED:
		set_rule(s, number, RULE_UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		set_rule(s, number, RULE_SAME, 0);
		break;
	case CFA_REGISTER:
		set_rule(s, number, RULE_REGISTER, (int64_t)unwind_read_uleb(r));
		break;
	case CFA_EXPRESSION:
		set_rule(s, number, RULE_AT, expression(s, r));
		break;
	case CFA_VAL_EXPRESSION:
		set_rule(s, number, RULE_EXPRESSION, expression(s, r));
		break;
	default:
		return false;
	}
	return true;
}

static void run_one(struct state *s, struct unwind_reader *r)
{
	uint8_t op = unwind_read_u8(r), low = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_SHORT:
		s->location += low * s->cie->code_factor;
		return;
	case CFA_OFFSET:
		set_rule(s, low, RULE_AT_CFA, factored(s, (int64_t)unwind_read_uleb(r)));
		return;
	case CFA_RESTORE_SHORT:
		restore_rule(s, low);
		return;
	}
	switch (op) {
	case CFA_NOP:
		break;
	case CFA_ADVANCE_1:
		s->location += unwind_read_bytes(r, 1) * s->cie->code_factor;
		break;
	case CFA_ADVANCE_2:
		s->location += unwind_read_bytes(r, 2) * s->cie->code_factor;
		break;
	case CFA_ADVANCE_4:
		s->location += unwind_read_bytes(r, 4) * s->cie->code_factor;
		break;
	case CFA_REMEMBER:
		remember(s);
		break;
	case CFA_RESTORE:
		recall(s);
		break;
	case CFA_ARGS_SIZE:
		unwind_read_uleb(r);
		break;
	default: /* among them: set_loc, which no compiler writes, and the windows of other processors */
		if (!run_cfa(s, r, op) && !run_register(s, r, op))
			s->bad = true;
	}
}

bool unwind_program_run(const struct unwind_cie *cie, const struct unwind_reader *program, uintptr_t pc,
			const struct unwind_entry *entry, struct unwind_row *ret_row)
{
	struct unwind_reader r = {cie->program, cie->end, false};
	struct state s;
	bool bare = true;

	memset(&s.row, 0, sizeof s.row);
	s.initial = s.row;
	s.cie = cie;
	s.entry = entry;
	s.location = entry->start;
	s.depth = 0;
	s.bad = false;
	while (r.at < r.end && !s.bad && !r.bad)
		run_one(&s, &r);
	s.initial = s.row;
	for (r = *program; r.at < r.end && !s.bad && !r.bad && s.location <= pc;) {
		bare = bare && *r.at == CFA_NOP;
		run_one(&s, &r);
	}
	if (s.bad || r.bad)
		return false;
	*ret_row = s.row;
	ret_row->signal_frame = cie->signal_frame;
	ret_row->bare = bare;
	return true;
}
