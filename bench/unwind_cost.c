/* What walking a stack costs: frame pointers, the sampler's unwinder with and without what it remembers, libunwind and
 * libgcc, over one and the same interrupted stack, in turn. The stack is made of comparison callbacks through the C
 * library's qsort, whose frames have no frame pointers. Prints one line per way: ns per stack (the median of the
 * rounds), frames, ns per frame. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include "preload/unwind.h"

#define FRAMES_MAX 1024
#define ROUNDS 31

extern void *__libc_stack_end;

static int depth;
static uint64_t frames[FRAMES_MAX];
static ucontext_t *interrupted;

/* libunwind's own walk for profilers, which remembers how each address was stepped from. */
static int (*libunwind)(void **addresses, int room);

/* CPU time: other programs may run meanwhile. */
static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t by_frame_pointers(void)
{
	uintptr_t low = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP], high = (uintptr_t)__libc_stack_end - 16;
	uintptr_t frame = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RBP];
	size_t count = 1;

	frames[0] = (uint64_t)interrupted->uc_mcontext.gregs[REG_RIP];
	while (count < FRAMES_MAX && frame >= low && frame < high && frame % 8 == 0) {
		frames[count++] = ((uintptr_t *)frame)[1] - 1;
		low = frame + 1;
		frame = *(uintptr_t *)frame;
	}
	return count;
}

static size_t by_ours(void)
{
	struct unwind_options options = {
		.known = {(uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP], (uintptr_t)__libc_stack_end}};
	unsigned result;

	return unwind_walk(interrupted, &options, frames, FRAMES_MAX, &result);
}

static size_t by_ours_without_memory(void)
{
	unwind_modules_closing();
	unwind_modules_changed();
	return by_ours();
}

/* This and libgcc start in the handler, so they have a few frames more. */
static size_t by_libunwind(void)
{
	return (size_t)libunwind((void **)frames, FRAMES_MAX);
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *count)
{
	size_t *n = count;

	frames[(*n)++] = _Unwind_GetIP(context);
	return *n < FRAMES_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static size_t by_libgcc(void)
{
	size_t count = 0;

	_Unwind_Backtrace(add_frame, &count);
	return count;
}

static const struct {
	const char *name;
	size_t (*walk)(void);
	unsigned calls; /* in a round */
} ways[] = {
	{"frame pointers alone", by_frame_pointers, 20000},
	{"assay, remembered", by_ours, 5000},
	{"assay, empty memory", by_ours_without_memory, 50},
	{"libunwind, cached", by_libunwind, 2000},
	{"libgcc", by_libgcc, 50},
};

#define WAYS (sizeof ways / sizeof *ways)

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(void)
{
	double ns[WAYS][ROUNDS], ours = 0;
	size_t count[WAYS] = {0};

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned w = 0; w < WAYS; w++) {
			int64_t start;

			if (ways[w].walk == by_libunwind && !libunwind)
				continue;
			count[w] = ways[w].walk();
			start = now_ns();
			for (unsigned i = 0; i < ways[w].calls; i++)
				ways[w].walk();
			ns[w][round] = (double)(now_ns() - start) / ways[w].calls;
		}
	for (unsigned w = 0; w < WAYS; w++) {
		if (!count[w]) {
			printf("  %-22s not installed\n", ways[w].name);
			continue;
		}
		qsort(ns[w], ROUNDS, sizeof ns[w][0], by_value);
		if (ways[w].walk == by_ours)
			ours = ns[w][ROUNDS / 2];
		printf("  %-22s %9.0f ns per stack  %4zu frames  %7.1f ns per frame", ways[w].name, ns[w][ROUNDS / 2],
		       count[w], ns[w][ROUNDS / 2] / (double)count[w]);
		if (ours > 0)
			printf("  %6.2f times ours", ns[w][ROUNDS / 2] / ours);
		printf("\n");
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	interrupted = context;
	measure();
}

static int descend(const void *a, const void *b)
{
	int pair[2] = {*(const int *)a, *(const int *)b};

	if (depth-- > 0)
		qsort(pair, 2, sizeof *pair, descend);
	else if (interrupted == NULL)
		raise(SIGUSR1);
	return pair[0] - pair[1];
}

static void find_libunwind(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	int (*caching)(void *space, int policy);
	void **space;

	if (!library)
		return;
	*(void **)&caching = dlsym(library, "_ULx86_64_set_caching_policy");
	space = dlsym(library, "_ULx86_64_local_addr_space");
	if (caching && space) {
		caching(*space, 2); /* one memory per thread, its fastest way */
		*(void **)&libunwind = dlsym(library, "unw_backtrace");
	}
}

int main(void)
{
	static const int depths[] = {1, 9};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	if (unwind_init() != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
		return 1;
	find_libunwind();
	for (unsigned i = 0; i < sizeof depths / sizeof *depths; i++) {
		int pair[2] = {1, 2};

		depth = depths[i];
		interrupted = NULL;
		printf("%d nested sorts\n", depths[i] + 1);
		qsort(pair, 2, sizeof *pair, descend);
	}
	return 0;
}
