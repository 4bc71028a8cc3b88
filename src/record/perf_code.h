/* What a process has mapped as code, in the order of addresses: a later mapping takes the place of what it covers. */
#ifndef ASSAY_RECORD_PERF_CODE_H
#define ASSAY_RECORD_PERF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_file;

enum perf_code_kind { PERF_CODE_FILE, PERF_CODE_VDSO, PERF_CODE_ANON };

struct perf_code {
	uint64_t start, end, bias;
	enum perf_code_kind kind;
	struct perf_file *file; /* of a FILE */
};

struct perf_codes {
	struct perf_code *items;
	size_t count, room;
};

void perf_codes_init(struct perf_codes *c);
void perf_codes_release(struct perf_codes *c);

/* False when out of memory or at the 65,536th: *c is as it was then. An empty one is passed over. */
bool perf_codes_add(struct perf_codes *c, const struct perf_code *code);
bool perf_codes_copy(struct perf_codes *to, const struct perf_codes *from);

const struct perf_code *perf_codes_find(const struct perf_codes *c, uint64_t address);

#endif
