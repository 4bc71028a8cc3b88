/* What the sampler knows of the process that it is loaded into, and its life: start, fork, end.
 *
 * Nothing here is thread-local. Before anything in the ring file is touched, process_sampled() must have said yes: the
 * file is not mapped in a forked child, which may have been made past every hook. */
#ifndef ASSAY_PRELOAD_PROCESS_H
#define ASSAY_PRELOAD_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/ring.h"

enum process_state { PROCESS_NEW = 0, PROCESS_STARTING = 1, PROCESS_OFF = 2, PROCESS_ON = 3 };

struct process {
	_Atomic int state; /* enum process_state */
	/* A page of its own, which reads as 0 in a forked child; else 1. */
	_Atomic uint32_t *_Atomic here;
	_Atomic bool restricted; /* no system calls of ours any more */
	_Atomic bool blind;      /* nor may the clock be read: ticks that still come do nothing */
	int pid;
	uint32_t hz;
	_Atomic int signal; /* that the ticks use now */
	pthread_key_t key;  /* a thread's slot, as its index + 1; the destructor ends the thread's sampling */
	bool has_key;
	struct unwind_range stack; /* the first thread's, at its largest */
};

extern struct process process;

/* Starts sampling where the environment asks for it; only the first call does anything. The constructor does it, but
 * other libraries' constructors run before ours and may make threads. */
void process_start(void);

/* This process is being sampled; its ring may be written. */
bool process_sampled(void);

/* The same, system calls of ours are allowed, and this is not the child of a vfork, which shares our memory and must
 * not change anything. Costs a system call. */
bool process_active(void);

/* In a forked child, whatever forked it: starts anew with a file of its own. Does nothing where that was done. */
void process_forked(void);

/* The program is about to restrict its system calls, perhaps also its reading of the clock: then no sample is taken any
 * more. */
void process_restrict(bool without_clock);

void process_trouble(uint32_t bit);

int64_t process_now(void);

#endif
