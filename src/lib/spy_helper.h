/* Starting the program that watches memory for the library, and ending it. The layout of what both share is
 * wire/spy.h; who asked and what becomes of the figures is not known here. */
#ifndef ASSAY_LIB_SPY_HELPER_H
#define ASSAY_LIB_SPY_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/spy.h"

struct spy_helper {
	int socket;  /* -1: closed */
	ino_t inode; /* of the socket: a host that closes all its descriptors may use the number again */
	pid_t pid;
	const struct spy_wire_page *page;
};

/* Starts it. No fork of the host may happen meanwhile: its child would hold the program's end of the socket open, so
 * that nobody noticed the program's end. 0, or -1 with last_error set. */
int spy_helper_spawn(pid_t pid, int64_t delay_ns, unsigned flags, struct spy_helper *ret);

/* Waits for its first reading. 0, or -1 with last_error set: it ends, then, and is to be forgotten and released. */
int spy_helper_await(struct spy_helper *h);

enum spy_helper_end {
	SPY_HELPER_DONE,
	SPY_HELPER_DEAD,   /* somebody killed it */
	SPY_HELPER_SILENT, /* it did not answer, and was killed */
	SPY_HELPER_LOST,   /* the host has closed the socket: it has ended by itself */
};

/* Asks for the last reading, and ends it; killed where it does not answer. The page stays until it is released. */
enum spy_helper_end spy_helper_stop(struct spy_helper *h);

/* Lets go of the socket in a child of fork, so that it does not keep the program alive. */
void spy_helper_forget(struct spy_helper *h);

void spy_helper_release(struct spy_helper *h);

#endif
