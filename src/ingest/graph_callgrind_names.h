/* Names in a callgrind file: written out, or "(id) name" where they stand first and "(id)" after that. Objects, files
 * and functions are numbered apart. Texts are not copied: they lie in the file's text. Inside src/ingest only. */
#ifndef ASSAY_INGEST_GRAPH_CALLGRIND_NAMES_H
#define ASSAY_INGEST_GRAPH_CALLGRIND_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CALLGRIND_NO_ENTRY UINT32_MAX

struct callgrind_name {
	const char *text; /* no 0 at its end; NULL: none was given yet */
	size_t length;
	uint32_t entry; /* CALLGRIND_NO_ENTRY: it has no id */
};

struct callgrind_entry {
	uint64_t id;
	const char *text;
	size_t length;
	/* Of functions: which node it was in that file and object when it was last asked for. */
	const char *file, *object;
	uint32_t node; /* GRAPH_NONE: not asked for yet */
	bool again;    /* it is deeper in a recursion: f'2 */
};

struct callgrind_names {
	struct callgrind_entry *entries;
	size_t count, room;
	uint32_t *slots; /* number of the entry + 1; 0: free */
	size_t slot_count;
};

void callgrind_names_release(struct callgrind_names *n); /* *n starts as zeroes */

/* The name that [at, end) gives. Fails for an id that has no name yet; the sentence lacks the line. */
int callgrind_names_read(struct callgrind_names *n, const char *at, const char *end, struct callgrind_name *ret,
			 struct error *err);

/* Where a function's name says how deep in a recursion it is ("f'2", "f'3'caller"): that part, as [*ret_from, *ret_to)
 * of the name. False where it says nothing. */
bool callgrind_recursion(const char *name, size_t length, size_t *ret_from, size_t *ret_to);

#endif
