/* A loaded module as the unwinder sees it: what of it can be read, and its unwind tables, which src/cfi/ takes apart.
 * Runs inside a signal handler. */
#ifndef ASSAY_PRELOAD_UNWIND_TABLES_H
#define ASSAY_PRELOAD_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi/row.h"
#include "cfi/tables.h"

#define UNWIND_SEGMENTS_MAX 8u

/* What of a module can be read, and where its tables start. */
struct unwind_image {
	uintptr_t base;
	uint32_t low[UNWIND_SEGMENTS_MAX], high[UNWIND_SEGMENTS_MAX]; /* from base */
	uint16_t segments; /* in use */
	uint16_t code;     /* bit i: segment i can be executed */
	uint16_t headers_count;
	uintptr_t headers; /* the program headers */
	uintptr_t header;  /* of .eh_frame_hdr; 0: there is none */
};

/* What encloses a row: the code that its entry is for, and where that entry stands. */
struct unwind_entry {
	struct cfi_entry code;
	struct cfi_section section;
};

/* The row for `pc`. Returns false, with *entry and *row spoilt, where the tables have none or cannot be read. */
bool unwind_tables_find(const struct unwind_image *image, uintptr_t pc, struct unwind_entry *entry,
			struct cfi_row *row);

/* The end of the readable segment that holds `at`, or 0; *ret_low: its start. */
uintptr_t unwind_image_limit(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_low);
bool unwind_image_is_code(const struct unwind_image *image, uintptr_t at);

#endif
