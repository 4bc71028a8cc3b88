#include "record/perf_unwind.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 2048 /* a power of two */

struct remembered {
	const struct cfi *cfi; /* NULL: nothing is remembered here */
	uint64_t address;
	bool found;
	struct cfi_row row;
};

struct perf_unwinder {
	struct remembered rows[ROWS];
};

/* A walk under way. */
struct walk {
	struct perf_unwinder *unwinder;
	const struct perf_stack *stack;
	uint64_t low; /* address of the copied bytes */
	uint64_t registers[CFI_REGISTERS];
	bool beyond;  /* memory was wanted that lies above the copied piece */
	perf_unwind_code code;
	void *context;
};

enum step { STEP_CALLER, STEP_INTERRUPTED, STEP_END, STEP_STUCK };

struct perf_unwinder *perf_unwinder_new(void)
{
	return calloc(1, sizeof(struct perf_unwinder));
}

void perf_unwinder_free(struct perf_unwinder *u)
{
	free(u);
}

void perf_unwinder_forget(struct perf_unwinder *u)
{
	for (size_t i = 0; i < ROWS; i++)
		u->rows[i].cfi = NULL;
}

static const struct cfi_row *find_row(struct perf_unwinder *u, const struct cfi *cfi, uint64_t address)
{
	uint64_t hash = (address ^ (uintptr_t)cfi >> 4) * UINT64_C(0x9e3779b97f4a7c15);
	struct remembered *r = &u->rows[hash >> 32 & (ROWS - 1)];

	if (r->cfi != cfi || r->address != address) {
		r->cfi = cfi;
		r->address = address;
		r->found = cfi_find(cfi, address, &r->row);
	}
	return r->found ? &r->row : NULL;
}

static bool read_memory(void *context, uint64_t address, uint64_t *ret)
{
	struct walk *w = context;
	uint64_t at = address - w->low;

	if (address < w->low)
		return false;
	if (w->stack->size < sizeof *ret || at > w->stack->size - sizeof *ret) {
		w->beyond = true;
		return false;
	}
	memcpy(ret, w->stack->bytes + at, sizeof *ret);
	return true;
}

static bool apply(struct walk *w, const struct cfi_rule *rule, const uint64_t *before, uint64_t cfa, uint64_t *value)
{
	uint64_t at;

	switch (rule->kind) {
	case CFI_OFFSET:
		/* Below the stack pointer: an epilogue has popped it already, and tables do not bother to say so. */
		if (cfa + (uint64_t)rule->offset < before[CFI_RSP])
			return true;
		return read_memory(w, cfa + (uint64_t)rule->offset, value);
	case CFI_VALUE_OFFSET:
		*value = cfa + (uint64_t)rule->offset;
		return true;
	case CFI_REGISTER:
		*value = before[rule->other];
		return true;
	case CFI_EXPRESSION:
		return cfi_evaluate(rule, before, &cfa, read_memory, w, &at) && read_memory(w, at, value);
	case CFI_VALUE_EXPRESSION:
		return cfi_evaluate(rule, before, &cfa, read_memory, w, value);
	default: /* what is undefined is not needed by those who say so */
		return true;
	}
}

static enum step step_by_table(struct walk *w, const struct cfi_row *row)
{
	uint64_t before[CFI_REGISTERS], cfa;

	memcpy(before, w->registers, sizeof before);
	if (row->cfa.kind == CFI_VALUE_OFFSET)
		cfa = before[row->cfa.other] + (uint64_t)row->cfa.offset;
	else if (!cfi_evaluate(&row->cfa, before, NULL, read_memory, w, &cfa))
		return STEP_STUCK;
	if (row->rules[CFI_RIP].kind == CFI_UNDEFINED)
		return STEP_END;
	/* A signal may have come on another stack; else each frame lies above the one before. */
	if (!row->signal && cfa <= before[CFI_RSP])
		return STEP_STUCK;
	w->registers[CFI_RSP] = cfa;
	for (size_t i = 0; i < CFI_REGISTERS; i++)
		if (row->rules[i].kind != CFI_SAME && !apply(w, &row->rules[i], before, cfa, &w->registers[i]))
			return STEP_STUCK;
	if (row->rules[CFI_RIP].kind == CFI_SAME || w->registers[CFI_RIP] == 0)
		return w->registers[CFI_RIP] == 0 ? STEP_END : STEP_STUCK;
	return row->signal ? STEP_INTERRUPTED : STEP_CALLER;
}

/* push %rbp; mov %rsp, %rbp at the beginning of each function: the caller's frame pointer, and above it the address to
 * return to. A first frame begins at 0. */
static enum step step_by_frame_pointer(struct walk *w)
{
	uint64_t at = w->registers[CFI_RBP], pointer, caller;

	if (at == 0)
		return STEP_END;
	if (at % 8 != 0 || at < w->registers[CFI_RSP] || !read_memory(w, at, &pointer) ||
	    !read_memory(w, at + 8, &caller))
		return STEP_STUCK;
	if (caller == 0)
		return STEP_END;
	w->registers[CFI_RSP] = at + 16;
	w->registers[CFI_RBP] = pointer;
	w->registers[CFI_RIP] = caller;
	return STEP_CALLER;
}

/* `address` is where to look the tables up: in the call, not behind it. */
static enum step step(struct walk *w, uint64_t address)
{
	const struct cfi_row *row = NULL;
	const struct cfi *cfi = NULL;
	uint64_t bias = 0;

	if (!w->code(w->context, address, &cfi, &bias))
		return STEP_STUCK;
	if (cfi)
		row = find_row(w->unwinder, cfi, address - bias);
	return row ? step_by_table(w, row) : step_by_frame_pointer(w);
}

size_t perf_unwind(struct perf_unwinder *u, const struct perf_stack *stack, perf_unwind_code code, void *context,
		   uint64_t *frames, size_t room, enum perf_unwind_end *ret_end)
{
	struct walk w = {
		.unwinder = u, .stack = stack, .low = stack->registers[CFI_RSP], .code = code, .context = context};
	uint64_t address = stack->registers[CFI_RIP];
	size_t count = 0;

	memcpy(w.registers, stack->registers, sizeof w.registers);
	for (;;) {
		enum step went;
		const struct cfi *cfi;
		uint64_t bias;

		frames[count++] = address;
		went = step(&w, address);
		if (went == STEP_END || went == STEP_STUCK) {
			*ret_end = went == STEP_END ? PERF_UNWIND_COMPLETE
				   : w.beyond       ? PERF_UNWIND_CUT
						    : PERF_UNWIND_STUCK;
			return count;
		}
		address = w.registers[CFI_RIP] - (went == STEP_CALLER);
		/* What is no code was no return address. */
		if (!code(context, address, &cfi, &bias)) {
			*ret_end = PERF_UNWIND_STUCK;
			return count;
		}
		if (count == room) {
			*ret_end = PERF_UNWIND_CUT;
			return count;
		}
	}
}
