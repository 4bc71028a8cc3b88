/* What the plug-in assay-elf.so offers: the functions that stand at addresses of one ELF file.
 *
 * Between the program, which loads it, and the plug-in (symbols_elf.c and elf_*.c, the only files that know elfutils).
 * It knows no profile. It may crash, loop or grow on a hostile file, so it is called in a process of its own. */
#ifndef ASSAY_SYMBOL_SYMBOLS_PLUGIN_H
#define ASSAY_SYMBOL_SYMBOLS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SYMBOLS_PLUGIN_FILE "assay-elf.so"
#define SYMBOLS_PLUGIN_SYMBOL "assay_symbols_plugin"
#define SYMBOLS_PLUGIN_VERSION 2 /* of these structs; a plug-in left over from another build is refused */

/* One file and the addresses asked for. All borrowed for the call. */
struct symbols_request {
	int fd;           /* the file, opened by anybody; -1: `path` is opened */
	const char *path; /* where it was; tells where to look for a separate debug file */
	const char *name; /* as shown: "NAME!?" */
	/* Of the file as it was loaded; the file must still have these to give names. */
	const uint8_t *build_id;
	size_t build_id_length; /* 0: it has none, and the next four count */
	uint64_t device, inode, size;
	int64_t mtime_ns;
	const char *debug_folder;
	bool no_dwarf;            /* symbol tables only */
	bool no_inlines;          /* functions and lines, without what was inlined into them */
	const uint64_t *addresses; /* the file's own (p_vaddr), ascending, each once */
	size_t count;
};

struct symbols_frame {
	uint32_t function; /* as numbered by the sink */
	uint32_t line;     /* 0: not known */
};

/* Takes what was found; each function returns 0, or -1 when nothing more can be taken, which ends the call. Texts may
 * hold any bytes. */
struct symbols_sink {
	void *context;
	/* A function, numbered 0, 1, 2, ... in the order of these calls. */
	int (*function)(void *context, bool known, const char *name, const char *file, uint32_t line);
	/* The frames at addresses[at], innermost first. Those without a call get "NAME!?". */
	int (*frames)(void *context, size_t at, const struct symbols_frame *frames, size_t count);
	/* Where the names are from (a sentence), or why the file was refused (what follows "No names: "). */
	int (*note)(void *context, bool refused, const char *text);
	/* Called now and then: the work goes on. */
	int (*alive)(void *context);
	/* Called last, where nothing failed: what the plug-in still does is give memory back. May be NULL. */
	int (*done)(void *context);
};

struct symbols_plugin {
	unsigned version;

	/* *text says which library is used. */
	int (*start)(char *text, size_t size, struct error *err);

	/* A file that has no names to give is no failure: the sink gets a note. Fails when the sink does, or when out
	 * of memory. */
	int (*resolve)(const struct symbols_request *request, const struct symbols_sink *sink, struct error *err);

	/* Owned; NULL where the name is not mangled. */
	char *(*demangle)(const char *name);
};

#endif
