#include "record/perf_unwind.h"

#include <stdlib.h>
#include <string.h>

#include "cfi/frame.h"

#define ROWS 8192 /* a power of two */

struct remembered {
	const struct perf_tables *tables; /* NULL: nothing is remembered here */
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
	struct cfi_registers registers; /* all valid: what calls do not preserve is as it was further in */
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
		u->rows[i].tables = NULL;
}

static const struct cfi_row *find_row(struct perf_unwinder *u, const struct perf_tables *tables, uint64_t address)
{
	uint64_t hash = (address ^ (uintptr_t)tables >> 4) * UINT64_C(0x9e3779b97f4a7c15);
	struct remembered *r = &u->rows[hash >> 32 & (ROWS - 1)];

	if (r->tables != tables || r->address != address) {
		r->tables = tables;
		r->address = address;
		r->found = perf_tables_find(tables, address, &r->row);
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

/* Where nothing says what the caller has in a register, it keeps what is in it: it is not needed there. */
static bool apply(const struct cfi_frame *frame, unsigned number, uint64_t cfa, uint64_t *value)
{
	cfi_rule rule = frame->row->rules[number];
	uint64_t found;

	if (cfi_rule_kind(rule) == CFI_UNDEFINED)
		return true;
	switch (cfi_frame_find(frame, number, cfa, &found)) {
	case CFI_FOUND_VALUE:
		*value = found;
		return true;
	case CFI_FOUND_SAVED:
		/* Below the stack pointer: an epilogue has popped it already, and tables do not bother to say so. */
		return found < frame->registers->value[CFI_RSP] || read_memory(frame->context, found, value);
	case CFI_NOT_FOUND:
		break;
	}
	return false;
}

static enum step step_by_table(struct walk *w, const struct cfi_section *section, const struct cfi_row *row)
{
	struct cfi_registers before = w->registers;
	struct cfi_frame frame = {section, row, &before, read_memory, w};
	uint64_t cfa, *value = w->registers.value;

	if (cfi_rule_kind(row->rules[CFI_RIP]) == CFI_UNDEFINED)
		return STEP_END;
	if (!cfi_frame_cfa(&frame, &cfa))
		return STEP_STUCK;
	/* A signal may have come on another stack; else each frame lies above the one before. */
	if (!row->signal_frame && cfa <= before.value[CFI_RSP])
		return STEP_STUCK;
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		if (!apply(&frame, i, cfa, &value[i]))
			return STEP_STUCK;
	if (value[CFI_RIP] == 0)
		return STEP_END;
	return row->signal_frame ? STEP_INTERRUPTED : STEP_CALLER;
}

/* push %rbp; mov %rsp, %rbp at the beginning of each function: the caller's frame pointer, and above it the address to
 * return to. A first frame begins at 0. */
static enum step step_by_frame_pointer(struct walk *w)
{
	uint64_t *value = w->registers.value, at = value[CFI_RBP], pointer, caller;

	if (at == 0)
		return STEP_END;
	if (at % 8 != 0 || at < value[CFI_RSP] || !read_memory(w, at, &pointer) || !read_memory(w, at + 8, &caller))
		return STEP_STUCK;
	if (caller == 0)
		return STEP_END;
	value[CFI_RSP] = at + 16;
	value[CFI_RBP] = pointer;
	value[CFI_RIP] = caller;
	return STEP_CALLER;
}

/* `address` is where to look the tables up: in the call, not behind it. */
static enum step step(struct walk *w, uint64_t address)
{
	const struct cfi_row *row = NULL;
	const struct perf_tables *tables = NULL;
	uint64_t bias = 0;

	if (!w->code(w->context, address, &tables, &bias))
		return STEP_STUCK;
	if (tables)
		row = find_row(w->unwinder, tables, address - bias);
	return row ? step_by_table(w, perf_tables_section(tables), row) : step_by_frame_pointer(w);
}

size_t perf_unwind(struct perf_unwinder *u, const struct perf_stack *stack, perf_unwind_code code, void *context,
		   uint64_t *frames, size_t room, enum perf_unwind_end *ret_end)
{
	struct walk w = {
		.unwinder = u, .stack = stack, .low = stack->registers[CFI_RSP], .code = code, .context = context};
	uint64_t address = stack->registers[CFI_RIP];
	size_t count = 0;

	memcpy(w.registers.value, stack->registers, sizeof w.registers.value);
	w.registers.valid = CFI_ALL_VALID;
	for (;;) {
		enum step went;
		const struct perf_tables *tables;
		uint64_t bias;

		frames[count++] = address;
		went = step(&w, address);
		if (went == STEP_END || went == STEP_STUCK) {
			*ret_end = went == STEP_END ? PERF_UNWIND_COMPLETE
				   : w.beyond       ? PERF_UNWIND_CUT
						    : PERF_UNWIND_STUCK;
			return count;
		}
		address = w.registers.value[CFI_RIP] - (went == STEP_CALLER);
		/* What is no code was no return address. */
		if (!code(context, address, &tables, &bias)) {
			*ret_end = PERF_UNWIND_STUCK;
			return count;
		}
		if (count == room) {
			*ret_end = PERF_UNWIND_CUT;
			return count;
		}
	}
}
