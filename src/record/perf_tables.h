/* The unwind tables (.eh_frame) of an x86-64 ELF file, with an index of their entries: for an address in its code, what
 * src/cfi/ makes of the entry.
 *
 * Read from outside the process, into memory of ours, from files that nobody vouches for. Knows neither processes nor
 * stacks. */
#ifndef ASSAY_RECORD_PERF_TABLES_H
#define ASSAY_RECORD_PERF_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi/row.h"
#include "cfi/tables.h"

struct perf_tables;

/* NULL where the file has no usable tables, is of another machine, or memory is short. */
struct perf_tables *perf_tables_read(int fd);
struct perf_tables *perf_tables_of_image(const void *image, size_t size); /* a file's bytes in memory: the vdso */
/* The bytes of .eh_frame themselves, loaded at p_vaddr `address`. */
struct perf_tables *perf_tables_of_bytes(const void *bytes, size_t size, uint64_t address);
void perf_tables_free(struct perf_tables *t); /* NULL accepted */

size_t perf_tables_size(const struct perf_tables *t); /* bytes of memory that they take */

/* The row for an address (p_vaddr); false, with *row spoilt: the tables do not tell. */
bool perf_tables_find(const struct perf_tables *t, uint64_t address, struct cfi_row *row);

/* Where the expressions of rows stand. */
const struct cfi_section *perf_tables_section(const struct perf_tables *t);

#endif
