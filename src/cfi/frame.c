#include "cfi/frame.h"

#include "cfi/expression.h"

bool cfi_frame_cfa(const struct cfi_frame *frame, uint64_t *ret_cfa)
{
	const struct cfi_row *row = frame->row;

	if (row->cfa_expression)
		return cfi_evaluate(frame, row->cfa_value, NULL, ret_cfa);
	if (row->cfa_register >= CFI_REGISTERS || !(frame->registers->valid >> row->cfa_register & 1))
		return false;
	*ret_cfa = frame->registers->value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_value;
	return true;
}

enum cfi_found cfi_frame_find(const struct cfi_frame *frame, unsigned number, uint64_t cfa, uint64_t *ret)
{
	cfi_rule rule = frame->row->rules[number];
	int32_t value = cfi_rule_value(rule);
	const struct cfi_registers *registers = frame->registers;

	switch (cfi_rule_kind(rule)) {
	case CFI_SAME:
		*ret = number == CFI_RSP ? cfa : registers->value[number];
		if (number == CFI_RSP || (number != CFI_RIP && registers->valid >> number & 1))
			return CFI_FOUND_VALUE;
		break;
	case CFI_AT_CFA:
		*ret = cfa + (uint64_t)(int64_t)value;
		return CFI_FOUND_SAVED;
	case CFI_CFA_PLUS:
		*ret = cfa + (uint64_t)(int64_t)value;
		return CFI_FOUND_VALUE;
	case CFI_REGISTER:
		if (value < 0 || value >= (int32_t)CFI_REGISTERS || !(registers->valid >> value & 1))
			break;
		*ret = registers->value[value];
		return CFI_FOUND_VALUE;
	case CFI_AT:
		return cfi_evaluate(frame, value, &cfa, ret) ? CFI_FOUND_SAVED : CFI_NOT_FOUND;
	case CFI_EXPRESSION:
		return cfi_evaluate(frame, value, &cfa, ret) ? CFI_FOUND_VALUE : CFI_NOT_FOUND;
	case CFI_UNDEFINED:
		break;
	}
	return CFI_NOT_FOUND;
}
