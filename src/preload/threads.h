/* Threads: each gets a slot and a timer when it begins, and gives them back when it ends. */
#ifndef ASSAY_PRELOAD_THREADS_H
#define ASSAY_PRELOAD_THREADS_H

#include <stdbool.h>

#include "preload/ring.h"

/* Creates what ends a thread's sampling. Once per program image. */
bool threads_prepare(void);

/* The calling thread begins to be sampled with this slot; `stack` is where its stack is known to lie. One that is new
 * has not used any CPU time before. */
void threads_begin(struct slot *s, struct unwind_range stack, bool by_pthread, bool is_new);
void threads_end(struct slot *s);

/* In a forked child, where the parent's ring is gone: the range of the stack that the only thread runs on. */
struct unwind_range threads_stack_here(void);

/* In the handler: arms the thread that it runs on, if it has no slot. Returns whether it had none. */
bool threads_adopt(void);

/* Are there more threads than have slots? */
bool threads_unknown(void);

/* The calling thread's slot, or NULL. */
struct slot *threads_slot_here(void);

#endif
