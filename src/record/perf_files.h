/* The files that sampled processes have mapped as code: the module of each, where it lies for a given mapping, and its
 * unwind tables once they are asked for. Bounded: tables past 256 MiB are forgotten and read again. */
#ifndef ASSAY_RECORD_PERF_FILES_H
#define ASSAY_RECORD_PERF_FILES_H

#include <stdint.h>

#include "record/perf_tables.h"
#include "record/module_files.h"
#include "record/perf_records.h"
#include "record/perf_unwind.h"

struct perf_files;
struct perf_file;

/* Borrowed: what keeps the files open; the unwinder that remembers rows of the tables. */
struct perf_files *perf_files_new(struct module_files *files, struct perf_unwinder *unwinder);
void perf_files_free(struct perf_files *f); /* NULL accepted */

/* The file of a mapping; the same for the same file in all processes. NULL when out of memory. `program`: it is what
 * the process executes. */
struct perf_file *perf_files_find(struct perf_files *f, int pid, const struct perf_mapping *m, bool program);

uint32_t perf_file_module(const struct perf_file *file);
const char *perf_file_path(const struct perf_file *file);

/* Address less bias is the file's own; 0 where the file could not be read as ELF. */
uint64_t perf_file_bias(const struct perf_file *file, uint64_t start, uint64_t offset);

/* Borrowed until the next call; NULL: none. */
const struct perf_tables *perf_file_tables(struct perf_files *f, struct perf_file *file);
const struct perf_tables *perf_files_vdso(struct perf_files *f);

#endif
