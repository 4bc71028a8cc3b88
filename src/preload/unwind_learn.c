/* From a code address to the step that leads to its caller: by the module's tables where there are any, else by its
 * code. What comes out is remembered, so this runs once for each address that samples meet. */
#include "preload/unwind_code.h"
#include "preload/unwind_walk.h"

enum { OP_DEREF = 0x06, OP_BREG_RBP = 0x76 };

/* [rbp + offset] or rbp + offset as an expression: the ones that realigned frames use. */
static bool is_from_rbp(const struct cfi_section *section, int32_t place, bool deref, int64_t *ret_offset)
{
	struct cfi_bytes b = cfi_section_bytes(section, place);
	uint64_t length = cfi_uleb(&b);
	const uint8_t *start = b.at;

	if (cfi_byte(&b) != OP_BREG_RBP)
		return false;
	*ret_offset = cfi_sleb(&b);
	if (deref && cfi_byte(&b) != OP_DEREF)
		return false;
	return !b.bad && (uint64_t)(b.at - start) == length;
}

/* The six fields for saved registers. Returns false where they do not fit. */
static bool pack_saves(const struct cfi_section *section, const struct cfi_row *row, uint64_t *step)
{
	static const uint8_t order[] = {CFI_RBX, CFI_RBP, 12, 13, 14, 15};
	bool from_rbp = false, from_cfa = false;

	for (unsigned i = 0; i < sizeof order; i++) {
		cfi_rule rule = row->rules[order[i]];
		int64_t words, offset = -cfi_rule_value(rule);

		if (cfi_rule_kind(rule) == CFI_SAME)
			continue;
		if (cfi_rule_kind(rule) == CFI_AT_CFA) {
			from_cfa = true;
		} else if (cfi_rule_kind(rule) == CFI_AT &&
			   is_from_rbp(section, cfi_rule_value(rule), false, &offset)) {
			from_rbp = true;
			offset = 8 - offset; /* counted from the word above, since 0 says "not saved" */
		} else {
			return false;
		}
		words = offset / 8;
		if (offset % 8 || words <= 0 || words >= 1 << STEP_SAVES_BITS)
			return false;
		*step |= (uint64_t)words << (STEP_SAVES_SHIFT + STEP_SAVES_BITS * i);
	}
	if (from_rbp)
		*step |= STEP_FROM_RBP;
	return !(from_rbp && from_cfa);
}

/* A row of the tables as a step: STEP_TABLES where it does not fit into one. */
__attribute__((noinline)) static uint64_t pack(const struct cfi_section *section, const struct cfi_row *row)
{
	uint64_t step = row->bare ? STEP_BARE : 0;
	int64_t offset = row->cfa_value;

	if (row->rules[CFI_RIP] == CFI_UNDEFINED)
		return STEP_ROOT;
	if (row->signal_frame || row->rules[CFI_RIP] != -8 * 8 + CFI_AT_CFA || row->rules[CFI_RSP] != CFI_SAME)
		return STEP_TABLES;
	if (row->cfa_expression) {
		if (!is_from_rbp(section, row->cfa_value, true, &offset))
			return STEP_TABLES;
		step |= STEP_AT_RBP;
	} else if (row->cfa_register == CFI_RSP) {
		step |= STEP_RSP;
	} else if (row->cfa_register == CFI_RBP) {
		step |= STEP_RBP;
	} else if (row->cfa_register == CFI_RBX) {
		step |= STEP_RBX;
	} else {
		return STEP_TABLES;
	}
	if (offset % 8 || offset / 8 < -STEP_OFFSET_LIMIT || offset / 8 >= STEP_OFFSET_LIMIT ||
	    !pack_saves(section, row, &step))
		return STEP_TABLES;
	return step | (uint64_t)(offset / 8) << STEP_OFFSET_SHIFT;
}

/* Kept out of the way of deep calls: what it needs on the stack is given back before code is followed. */
__attribute__((noinline)) static bool by_tables(const struct unwind_image *image, uintptr_t at, bool exact,
						bool behind_call, uint64_t *ret_step)
{
	struct unwind_entry entry;
	struct cfi_row row;

	if (!exact && !behind_call && unwind_tables_find(image, at + 1, &entry, &row) && entry.code.start == at + 1) {
		*ret_step = STEP_ROOT | STEP_BY_HAND;
		return true;
	}
	if (!unwind_tables_find(image, at, &entry, &row))
		return false;
	*ret_step = pack(&entry.section, &row);
	return true;
}

static uint64_t examine(const struct unwind_image *image, uintptr_t at, bool exact)
{
	uintptr_t target;
	uint64_t step, flags = 0;

	if (unwind_code_is_sigreturn(image, exact ? at : at + 1) || (exact && unwind_code_is_sigreturn(image, at - 7)))
		return STEP_SIGNAL;
	if (!exact && unwind_code_call_before(image, at + 1, &target) != CALL_NONE)
		flags = STEP_BEHIND_CALL;
	if (by_tables(image, at, exact, flags != 0, &step))
		return step | flags;
	return unwind_code_step(image, at) | flags;
}

__attribute__((noinline)) static void announce(const struct unwind_walk *w, const struct unwind_image *image,
					       struct unwind_module *module)
{
	uint64_t key = unwind_cache_key(w->generation, module->start) | 1;
	_Atomic uint64_t *seen = NULL;

	if (w->remembered) {
		seen = &w->remembered->announced[(module->start >> 12) % UNWIND_ANNOUNCED];
		if (atomic_load_explicit(seen, memory_order_acquire) == key)
			return;
	}
	if (w->options->met) {
		unwind_module_identify(image, module);
		w->options->met(w->options->context, module);
	}
	if (seen)
		atomic_store_explicit(seen, key, memory_order_release);
}

__attribute__((noinline)) uint64_t unwind_learn(struct unwind_walk *w, uintptr_t at, bool exact)
{
	struct unwind_image image;
	struct unwind_module module;
	uint64_t step;

	if (!w->may_learn || at < UNWIND_LOWEST || at >= UNWIND_HIGHEST || !unwind_module_find(at, &image, &module))
		return STEP_NOTHING | STEP_FOREIGN;
	announce(w, &image, &module);
	step = examine(&image, at, exact);
	if (w->remembered)
		unwind_cache_put(unwind_walk_slot(w, at), unwind_cache_key(w->generation, at), step);
	return step;
}
