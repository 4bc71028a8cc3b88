/* What is left where the tables are missing or were found to be wrong: the code itself, the frame pointer, and a search
 * of the stack for the address that the function returns to. Whatever comes of it has to look like a call. */
#include "preload/unwind_code.h"
#include "preload/unwind_walk.h"

#define SEARCHES_MAX 3u    /* in one walk */
#define SEARCHED_MAX 6144u /* words: kernels have frames up to 40 KiB */
#define FUNCTION_MAX ((uintptr_t)128 << 10)

/* By what the code will do. A step that leads to a call is remembered in the place of the tables'. */
__attribute__((noinline)) static bool by_code(struct unwind_walk *w, uint64_t step, uint64_t *ret_next)
{
	struct unwind_image image;
	struct unwind_module module;
	uintptr_t at = w->at;
	uint64_t read;

	if (step & STEP_GUESSED || !unwind_module_find(at, &image, &module))
		return false;
	read = unwind_code_step(&image, at) | (step & STEP_BEHIND_CALL);
	if (unwind_step_kind(read) == STEP_NOTHING || !unwind_step_plainly(w, read, ret_next))
		return false;
	if (w->remembered)
		unwind_cache_put(unwind_walk_slot(w, at), unwind_cache_key(w->generation, at), read);
	return true;
}

/* An interrupted function may not have made its frame yet, or have given it back. Code made at run time keeps frame
 * pointers, and its calls cannot be told from other words; so only two cases show: the return address is on top of the
 * stack, or below a frame pointer that was just pushed. */
__attribute__((noinline)) static bool without_frame(struct unwind_walk *w, uint64_t *ret_next)
{
	uintptr_t top = w->registers.value[CFI_RSP];
	uint64_t word;

	if (!unwind_read(&w->memory, top, &word))
		return false;
	if (word == w->registers.value[CFI_RBP]) {
		top += 8;
		if (!unwind_read(&w->memory, top, &word))
			return false;
	}
	if (word < UNWIND_LOWEST || !(unwind_step_from(w, word - 1, false) & STEP_BEHIND_CALL) ||
	    !unwind_can_return_to(w, STEP_RSP, top + 8, word, ret_next))
		return false;
	unwind_move(w, top + 8, word, *ret_next);
	return true;
}

static bool by_frame_pointer(struct unwind_walk *w, uint64_t *ret_next)
{
	uintptr_t frame = w->registers.value[CFI_RBP];
	uint64_t outer, address;

	if (!(w->registers.valid >> CFI_RBP & 1) || frame < w->registers.value[CFI_RSP] || frame % 8 ||
	    !unwind_read(&w->memory, frame, &outer) || !unwind_read(&w->memory, frame + 8, &address))
		return false;
	if (!unwind_can_return_to(w, STEP_RBP, frame + 16, address, ret_next))
		return false;
	/* Where the caller cannot be seen to call, at least its frame has to be further up. */
	if (!(*ret_next & STEP_BEHIND_CALL) && outer && outer <= frame)
		return false;
	w->registers.value[CFI_RBP] = outer;
	unwind_move(w, frame + 16, address, *ret_next);
	return true;
}

/* Whether a call of `target` can be a call of the function at w->at, whose start is `start` (0: not known). */
static bool calls_this(struct unwind_walk *w, const struct unwind_image *image, uintptr_t start, uintptr_t target)
{
	if (start)
		return target == start;
	return unwind_image_is_code(image, target) && target <= w->at && w->at - target < FUNCTION_MAX;
}

/* Strength of the evidence that [.., address) called the function at w->at. */
static enum unwind_call evidence(struct unwind_walk *w, const struct unwind_image *image, uintptr_t start,
				 uintptr_t address)
{
	struct unwind_image other;
	struct unwind_module module;
	uintptr_t target, pointer, low;
	uint64_t resolved;
	enum unwind_call call;

	if (!unwind_module_find(address - 1, &other, &module))
		return CALL_NONE;
	call = unwind_code_call_before(&other, address, &target);
	if (call != CALL_DIRECT || calls_this(w, image, start, target))
		return call;
	pointer = unwind_code_stub_pointer(&other, target);
	if (!pointer || pointer % 8 || !unwind_image_limit(&other, pointer, &low))
		return CALL_NONE;
	memcpy(&resolved, (const void *)pointer, sizeof resolved);
	return calls_this(w, image, start, resolved) ? CALL_DIRECT : CALL_NONE;
}

/* Upwards from the stack pointer to the first word that is behind a call of this very function; else to the first that
 * is behind a call through a pointer. Returns how sure that is, and where. */
static enum unwind_call find_call(struct unwind_walk *w, const struct unwind_image *image, uintptr_t start,
				  uintptr_t *ret_place, uint64_t *ret_word)
{
	uintptr_t from = (w->registers.value[CFI_RSP] + 7) & ~(uintptr_t)7;
	enum unwind_call found = CALL_NONE;
	uint64_t word;

	for (uintptr_t at = from; at - from < 8 * SEARCHED_MAX && unwind_read(&w->memory, at, &word); at += 8) {
		enum unwind_call call;

		if (word < UNWIND_LOWEST || word >= UNWIND_HIGHEST || unwind_range_holds(&w->memory.known, word) ||
		    !(unwind_step_from(w, word - 1, false) & STEP_BEHIND_CALL))
			continue;
		call = evidence(w, image, start, word);
		if (call == CALL_DIRECT || (call == CALL_INDIRECT && found == CALL_NONE)) {
			found = call;
			*ret_place = at;
			*ret_word = word;
		}
		if (call == CALL_DIRECT)
			break;
	}
	return found;
}

/* Of the function at `at`, by the tables; 0: they do not tell. Apart, so that its stack is given back. */
__attribute__((noinline)) static uintptr_t function_start(const struct unwind_image *image, uintptr_t at)
{
	struct unwind_entry entry;
	struct cfi_row row;

	return unwind_tables_find(image, at, &entry, &row) ? entry.code.start : 0;
}

/* The caller's registers are taken to be what they are now, for want of better: if they are not, the next step that
 * needs them leads to no call. */
__attribute__((noinline)) static bool by_search(struct unwind_walk *w, size_t frames, uint64_t *ret_next)
{
	struct unwind_image image;
	struct unwind_module module;
	uintptr_t place = 0;
	uint64_t word = 0;
	bool refused = w->memory.refused;
	enum unwind_call call;

	if (!unwind_module_find(w->at, &image, &module))
		return false;
	call = find_call(w, &image, function_start(&image, w->at), &place, &word);
	w->memory.refused = refused; /* the search's end says nothing about the stack */
	if (call == CALL_NONE || !unwind_can_return_to(w, STEP_GUESSED, place + 8, word, ret_next))
		return false;
	if (call == CALL_INDIRECT && !w->doubtful)
		w->doubtful = frames;
	unwind_move(w, place + 8, word, *ret_next);
	return true;
}

bool unwind_guess(struct unwind_walk *w, uint64_t step, size_t frames, uint64_t *ret_next)
{
	bool foreign = unwind_step_kind(step) == STEP_NOTHING && step & STEP_FOREIGN;

	if (foreign) {
		/* Code made at run time keeps frame pointers: following them is its rule, not a guess. */
		if (w->exact && without_frame(w, ret_next)) {
			w->result |= UNWIND_GUESSED;
			return true;
		}
		return by_frame_pointer(w, ret_next);
	}
	if (!(w->may_learn && by_code(w, step, ret_next)) && !by_frame_pointer(w, ret_next) &&
	    !(w->may_learn && w->searches++ < SEARCHES_MAX && by_search(w, frames, ret_next)))
		return false;
	w->result |= UNWIND_GUESSED;
	return true;
}
