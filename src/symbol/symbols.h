/* Addresses to names: ELF symbols, DWARF inlines and lines, build-ids, debug files, maps of code made at run time.
 *
 * A name is given only inside its symbol's extent; else the place: "module!?+0xSTART" with the start of the unwind
 * entry that contains the address, or "module!?". elfutils is loaded on first use, through a plug-in (symbols_elf.c).
 * Knows no run directory and prints nothing. */
#ifndef ASSAY_SYMBOL_SYMBOLS_H
#define ASSAY_SYMBOL_SYMBOLS_H

#include <stdbool.h>

#include "base/error.h"
#include "model/profile.h"
#include "model/warnings.h"

struct symbols_options {
	/* The module's file as it was opened during the run, or -1; borrowed. NULL: none was. */
	int (*module_fd)(void *context, uint32_t module);
	void *context;
	bool no_inlines;           /* symbols and lines only */
	bool no_dwarf;             /* symbols only */
	const char *debug_folder;  /* NULL: /usr/lib/debug */
	const char *map_folder;    /* of perf-PID.map; NULL: /tmp */
	const volatile int *hurry; /* set by a signal: what is left gets no names; may be NULL */
};

/* Gives every location of *p its frames, and each module a note. A file whose build-id (or, without one, size and time)
 * is no longer that of the run gives no names, and the note says so. What cannot be read costs names, never the rest.
 * Fails only when out of memory or without the plug-in (then every location still gets its place as a name). */
int symbols_resolve(struct profile *p, const struct symbols_options *options, struct warnings *warnings,
		    struct error *err);

/* Whether the plug-in can be loaded, with what version or why not; for `doctor`. */
int symbols_available(char *version, unsigned long size, struct error *err);

/* A C++ or Rust name for people; owned, NULL where it is not mangled (or on any failure). `.constprop.0` and its like
 * stay readable behind it. Through the plug-in. */
char *symbols_demangle(const char *name);

#endif
