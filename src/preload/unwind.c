/* The walk itself, and what has to be kept between walks: see unwind.h. How to step from an address comes from
 * unwind_learn.c or is remembered; here the steps are taken, and each return address is checked before it counts. */
#include "preload/unwind.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "preload/unwind_code.h"
#include "preload/unwind_walk.h"

#define CLOSING_WAIT_NS 10000000
#define GENERATIONS (1u << 17) /* that a key can tell apart */
#define SAVES_BYTES (8u << STEP_SAVES_BITS) /* more than a step's saved registers can lie below their base */

/* Who is at work. On a page that a forked child finds empty: the walks and the unloading that were under way in other
 * threads do not exist there. */
struct busy {
	_Atomic uint32_t walks;
	_Atomic uint32_t closing;
};

static struct busy busy_before_init;
static struct busy *busy = &busy_before_init;
static struct unwind_remembered *remembered;
static _Atomic uint32_t generation;

int unwind_init(void)
{
	size_t page = 4096;
	void *memory = mmap(NULL, sizeof *remembered, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *shared;

	if (memory == MAP_FAILED)
		return -errno;
	shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || madvise(shared, page, MADV_WIPEONFORK) != 0) {
		int reason = -errno;

		munmap(memory, sizeof *remembered);
		if (shared != MAP_FAILED)
			munmap(shared, page);
		return reason;
	}
	unwind_module_init();
	/* Far more than is ever touched: a huge page would make all of it resident. */
	madvise(memory, sizeof *remembered, MADV_NOHUGEPAGE);
	remembered = memory;
	busy = shared;
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* not a system call where it matters: a restricted program */
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void unwind_modules_closing(void)
{
	int64_t deadline;

	atomic_fetch_add(&busy->closing, 1);
	if (!atomic_load(&busy->walks))
		return;
	deadline = now_ns() + CLOSING_WAIT_NS;
	while (atomic_load(&busy->walks) && now_ns() < deadline)
		__builtin_ia32_pause();
}

void unwind_modules_changed(void)
{
	uint32_t closing = atomic_load(&busy->closing);

	if ((atomic_fetch_add(&generation, 1) + 1) % GENERATIONS == 0 && remembered)
		for (unsigned i = 0; i < UNWIND_CACHE_SLOTS; i++)
			atomic_store_explicit(&remembered->slots[i].check, 0, memory_order_relaxed);
	/* In a child that was forked while modules were unloaded, the count started anew. */
	while (closing && !atomic_compare_exchange_weak(&busy->closing, &closing, closing - 1))
		continue;
}

/* Not below the frame itself, unless the stack was switched in between. */
static bool goes_up(const struct unwind_walk *w, uintptr_t cfa)
{
	return cfa > w->registers.value[CFI_RSP] || !unwind_range_holds(&w->memory.known, cfa - 8);
}

/* Code that is in no module cannot be told from data. Believed where the tables of a real function lead there; where
 * the tables say nothing, only if the code itself agrees with them. */
__attribute__((noinline)) static bool can_be_foreign(const struct unwind_walk *w, uint64_t step, uintptr_t address)
{
	struct unwind_image image;
	struct unwind_module module;

	if (address < UNWIND_LOWEST || address >= UNWIND_HIGHEST || unwind_range_holds(&w->memory.known, address) ||
	    step & STEP_GUESSED)
		return false;
	if (!(step & STEP_BARE) || !w->may_learn)
		return true;
	if (!unwind_module_find(w->at, &image, &module))
		return false;
	return unwind_code_step(&image, w->at) == (STEP_RSP | STEP_GUESSED | (uint64_t)1 << STEP_OFFSET_SHIFT);
}

bool unwind_can_return_oddly_to(struct unwind_walk *w, uint64_t step, uintptr_t cfa, uintptr_t address,
				uint64_t *ret_next)
{
	if (!goes_up(w, cfa))
		return false;
	if (!address) { /* what new stacks are given so that walks end */
		*ret_next = STEP_ROOT;
		return !w->exact && !(step & (STEP_BARE | STEP_GUESSED));
	}
	*ret_next = unwind_step_from(w, address - 1, false);
	if (*ret_next & STEP_BEHIND_CALL || unwind_step_kind(*ret_next) == STEP_SIGNAL)
		return true;
	if (unwind_step_kind(*ret_next) == STEP_NOTHING && *ret_next & STEP_FOREIGN)
		return can_be_foreign(w, step, address);
	return unwind_step_kind(*ret_next) == STEP_ROOT && *ret_next & STEP_BY_HAND && !w->exact &&
	       !(step & (STEP_BARE | STEP_GUESSED));
}

/* A slot below the stack pointer belongs to a register that was just taken back from there (what the tables of most
 * compilers leave unsaid) or that the function keeps in its red zone: in both cases it still holds the value, and where
 * it cannot be read, the register has it. The word at the stack pointer was found to be readable before, and with it
 * the rest of its page. */
static bool load_slot(struct unwind_walk *w, uintptr_t at, unsigned number, uint64_t *ret_value)
{
	uintptr_t stack = w->registers.value[CFI_RSP];

	if (at >= stack || (at & ~(uintptr_t)4095) != (stack & ~(uintptr_t)4095)) {
		if (unwind_read(&w->memory, at, ret_value))
			return true;
		if (at >= stack)
			return false;
		*ret_value = w->registers.value[number];
		return w->exact;
	}
	*ret_value = unwind_load(at);
	return true;
}

static void load_saves(struct unwind_walk *w, uint64_t step, uintptr_t cfa)
{
	static const uint8_t order[] = {CFI_RBX, CFI_RBP, 12, 13, 14, 15};
	uint64_t saves = step >> STEP_SAVES_SHIFT & STEP_SAVES_MASK;
	uintptr_t from = step & STEP_FROM_RBP ? w->registers.value[CFI_RBP] + 8 : cfa;
	uint64_t word;

	/* Nearly always all slots there can be are readable. Then each register is loaded from its slot or from where
	 * it is already, without a branch: which were saved changes from frame to frame and cannot be predicted. */
	if (from <= w->memory.known.high && from - SAVES_BYTES >= w->memory.known.low && from > SAVES_BYTES) {
		for (unsigned i = 0; i < sizeof order; i++, saves >>= STEP_SAVES_BITS) {
			uint64_t words = saves & ((1u << STEP_SAVES_BITS) - 1);
			uintptr_t here = (uintptr_t)&w->registers.value[order[i]];
			uintptr_t saved = (uintptr_t)0 - (words != 0);

			w->registers.value[order[i]] = unwind_load(((from - 8 * words) & saved) | (here & ~saved));
		}
		return;
	}
	if (saves && !unwind_read(&w->memory, w->registers.value[CFI_RSP], &word)) {
		w->registers.valid &= 1u << CFI_RSP | 1u << CFI_RIP;
		return;
	}
	for (unsigned i = 0; saves; i++, saves >>= STEP_SAVES_BITS) {
		uint64_t words = saves & ((1u << STEP_SAVES_BITS) - 1);

		if (words && !load_slot(w, from - 8 * words, order[i], &w->registers.value[order[i]]))
			w->registers.valid &= ~(1u << order[i]);
	}
}

bool unwind_step_plainly(struct unwind_walk *w, uint64_t step, uint64_t *ret_next)
{
	static const uint8_t bases[] = {
		[STEP_RSP] = CFI_RSP, [STEP_RBP] = CFI_RBP, [STEP_RBX] = CFI_RBX, [STEP_AT_RBP] = CFI_RBP};
	enum unwind_step_kind kind = unwind_step_kind(step);
	uint64_t cfa, address;

	if (!(w->registers.valid >> bases[kind] & 1))
		return false;
	cfa = w->registers.value[bases[kind]] + (uint64_t)unwind_step_offset(step);
	if (kind == STEP_AT_RBP && !unwind_read(&w->memory, cfa, &cfa))
		return false;
	if (!unwind_read(&w->memory, cfa - 8, &address) || !unwind_can_return_to(w, step, cfa, address, ret_next))
		return false;
	load_saves(w, step, cfa);
	unwind_move(w, cfa, address, *ret_next);
	if (step & STEP_GUESSED)
		w->result |= UNWIND_GUESSED;
	return true;
}

/* The interrupted frame's registers are where the kernel put them, and in the order that it has. */
static bool step_over_signal(struct unwind_walk *w, uint64_t *ret_next)
{
	static const uint8_t order[CFI_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	uintptr_t context = w->registers.value[CFI_RSP];
	uintptr_t values = context + offsetof(ucontext_t, uc_mcontext.gregs);
	uint64_t stack, size, top;

	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		if (!unwind_read(&w->memory, values + 8u * order[i], &w->registers.value[i]))
			return false;
	if (!unwind_read(&w->memory, context + offsetof(ucontext_t, uc_stack.ss_sp), &stack) ||
	    !unwind_read(&w->memory, context + offsetof(ucontext_t, uc_stack.ss_size), &size))
		return false;
	top = w->registers.value[CFI_RSP];
	if (top - stack < size)
		unwind_memory_alternate(&w->memory, top, stack + size);
	w->registers.valid = CFI_ALL_VALID;
	w->exact = true;
	w->at = w->registers.value[CFI_RIP];
	*ret_next = unwind_step_from(w, w->at, true);
	return true;
}

static bool read_memory(void *context, uint64_t at, uint64_t *ret_value)
{
	return unwind_read(context, at, ret_value);
}

/* Registers of the caller as a row of the tables has them; *ret_interrupted: it did not call. Of those that calls do
 * not preserve, only what the row names counts. Apart, so that the row's stack is given back. */
__attribute__((noinline)) static bool read_caller(struct unwind_walk *w, struct cfi_registers *ret, uint64_t *ret_cfa,
						  bool *ret_interrupted)
{
	struct unwind_image image;
	struct unwind_module module;
	struct unwind_entry entry;
	struct cfi_row row;
	struct cfi_frame frame = {&entry.section, &row, &w->registers, read_memory, &w->memory};
	uint64_t word;

	if (!w->may_learn || !unwind_read(&w->memory, w->registers.value[CFI_RSP], &word) ||
	    !unwind_module_find(w->at, &image, &module) || !unwind_tables_find(&image, w->at, &entry, &row) ||
	    !cfi_frame_cfa(&frame, ret_cfa))
		return false;
	ret->valid = 0;
	for (unsigned i = 0; i < CFI_REGISTERS; i++) {
		uint64_t *value = &ret->value[i];
		enum cfi_found found;

		if (row.rules[i] == CFI_SAME && !row.signal_frame && !(UNWIND_KEPT_VALID >> i & 1))
			continue;
		found = cfi_frame_find(&frame, i, *ret_cfa, value);
		if (found == CFI_FOUND_VALUE || (found == CFI_FOUND_SAVED && load_slot(w, *value, i, value)))
			ret->valid |= 1u << i;
	}
	*ret_interrupted = row.signal_frame;
	return ret->valid >> CFI_RIP & ret->valid >> CFI_RSP & 1;
}

/* By a row of the tables that does not fit into a step: stubs, hand-written frames. */
__attribute__((noinline)) static bool step_by_tables(struct unwind_walk *w, uint64_t step, uint64_t *ret_next)
{
	struct cfi_registers caller;
	uint64_t cfa, address;
	bool interrupted;

	if (!read_caller(w, &caller, &cfa, &interrupted))
		return false;
	address = caller.value[CFI_RIP];
	if (interrupted)
		*ret_next = unwind_step_from(w, address, true);
	else if (!unwind_can_return_to(w, step, cfa, address, ret_next))
		return false;
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		if (caller.valid >> i & 1)
			w->registers.value[i] = caller.value[i];
	w->registers.valid = caller.valid;
	w->exact = interrupted || unwind_step_kind(*ret_next) == STEP_SIGNAL;
	w->at = w->exact ? address : address - 1;
	return true;
}

static bool take(struct unwind_walk *w, uint64_t step, uint64_t *ret_next)
{
	if (unwind_step_kind(step) <= STEP_AT_RBP)
		return unwind_step_plainly(w, step, ret_next);
	if (unwind_step_kind(step) == STEP_SIGNAL)
		return step_over_signal(w, ret_next);
	return unwind_step_kind(step) == STEP_TABLES && step_by_tables(w, step, ret_next);
}

static size_t walk(struct unwind_walk *w, uint64_t *frames, size_t room)
{
	uint64_t step = unwind_step_from(w, w->at, true), next;
	size_t count = 1;

	for (frames[0] = w->at;; step = next) {
		if (unwind_step_kind(step) == STEP_ROOT) {
			w->result |= UNWIND_COMPLETE;
			break;
		}
		if (!take(w, step, &next) && !unwind_guess(w, step, count, &next))
			break;
		if (!w->exact && w->registers.value[CFI_RIP] == 0) {
			w->result |= UNWIND_COMPLETE;
			break;
		}
		if (count == room) {
			w->result |= UNWIND_CUT;
			break;
		}
		/* A place that was put on the stack by hand is a function's first instruction. */
		frames[count++] = unwind_step_kind(next) == STEP_ROOT && next & STEP_BY_HAND ? w->at + 1 : w->at;
	}
	if (w->doubtful && !(w->result & (UNWIND_COMPLETE | UNWIND_CUT)))
		count = w->doubtful;
	return count;
}

static void start(struct unwind_walk *w, const ucontext_t *at, const struct unwind_options *options)
{
	const greg_t *r = at->uc_mcontext.gregs;
	uintptr_t stack = (uintptr_t)at->uc_stack.ss_sp;
	uint64_t *value = w->registers.value;

	value[0] = (uint64_t)r[REG_RAX];
	value[1] = (uint64_t)r[REG_RDX];
	value[2] = (uint64_t)r[REG_RCX];
	value[CFI_RBX] = (uint64_t)r[REG_RBX];
	value[4] = (uint64_t)r[REG_RSI];
	value[5] = (uint64_t)r[REG_RDI];
	value[CFI_RBP] = (uint64_t)r[REG_RBP];
	value[CFI_RSP] = (uint64_t)r[REG_RSP];
	for (unsigned i = 8; i < 16; i++)
		value[i] = (uint64_t)r[REG_R8 + (int)i - 8];
	value[CFI_RIP] = (uint64_t)r[REG_RIP];
	w->registers.valid = CFI_ALL_VALID;
	unwind_memory_init(&w->memory, options);
	if (value[CFI_RSP] - stack < at->uc_stack.ss_size)
		unwind_memory_alternate(&w->memory, value[CFI_RSP], stack + at->uc_stack.ss_size);
	w->options = options;
	w->remembered = remembered;
	w->at = value[CFI_RIP];
	w->doubtful = 0;
	w->generation = atomic_load(&generation);
	w->searches = 0;
	w->result = 0;
	w->exact = true;
}

size_t unwind_walk(const ucontext_t *at, const struct unwind_options *options, uint64_t *frames, size_t room,
		   unsigned *ret_result)
{
	struct unwind_walk w;
	size_t count;

	if (!room) {
		*ret_result = UNWIND_CUT;
		return 0;
	}
	atomic_fetch_add(&busy->walks, 1);
	start(&w, at, options);
	w.may_learn = !atomic_load(&busy->closing);
	count = walk(&w, frames, room);
	atomic_fetch_sub(&busy->walks, 1);
	if (w.memory.refused && !(w.result & (UNWIND_COMPLETE | UNWIND_CUT)))
		w.result |= UNWIND_UNKNOWN;
	*ret_result = w.result;
	return count;
}
