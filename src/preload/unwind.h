/* Walking the stack of the interrupted thread, inside a signal handler.
 *
 * Uses the unwind tables (.eh_frame) of the loaded modules, found without a lock through _dl_find_object, and frame
 * pointers where there are none (code made at run time). Takes no lock, allocates nothing, keeps errno, makes no system
 * call while the stack lies in `known`, and never touches memory that it has not found to be readable. Knows neither
 * rings nor threads. x86-64 only. */
#ifndef ASSAY_PRELOAD_UNWIND_H
#define ASSAY_PRELOAD_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* Memory [low, high) that is known to be readable: of a thread's stack, what lies above the stack pointer. */
struct unwind_range {
	uintptr_t low, high;
};

/* A module as the walk met it; see sampler_module. */
struct unwind_module {
	uintptr_t start, end, bias;
	const char *path; /* the loader's; "" for the program itself */
	const uint8_t *build_id;
	size_t build_id_length;
};

enum unwind_result {
	UNWIND_COMPLETE = 1, /* reached code that says it has no caller: _start, clone */
	UNWIND_CUT = 2,      /* more frames than there is room for */
	UNWIND_GUESSED = 4,  /* together with others: a frame was found by searching */
	UNWIND_UNKNOWN = 8,  /* the stack led to memory that may not be read: ended there */
};

struct unwind_options {
	struct unwind_range known;
	bool may_probe; /* system calls are allowed, to find out whether memory outside `known` can be read */
	/* Called once for each module that the walk meets, per generation (see unwind_modules_changed): before that
	 * module's first address is in `frames`. May be called again for one that was announced. */
	void (*met)(void *context, const struct unwind_module *module);
	void *context;
};

/* Takes the memory for what it remembers between walks (below 1 MiB, mapped). Before the first walk, outside handlers.
 * Returns 0 or -errno: walks then go without memory, slowly. In a forked child everything stays valid. */
int unwind_init(void);

/* Fills `frames`, innermost first: the leaf's address as it was, a caller's less 1, the address that a signal handler
 * interrupted as it was, and so what the handler returns to (the call of sigreturn). Returns their number, at least 1
 * (with room >= 1); *ret_result: bits of enum unwind_result. */
size_t unwind_walk(const ucontext_t *at, const struct unwind_options *options, uint64_t *frames, size_t room,
		   unsigned *ret_result);

/* A module is about to be unloaded: until the matching _changed no walk reads unwind tables (what is remembered and
 * frame pointers have to do), and this waits until walks under way have ended, for 10 ms at most. Then, with _changed,
 * a new generation begins: everything remembered is forgotten. Outside handlers; calls nest. */
void unwind_modules_closing(void);
void unwind_modules_changed(void);

#endif
