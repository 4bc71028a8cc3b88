/* Reading segments: from finished runs, from killed ones, and from files that only claim to be segments.
 *
 * Reads through a bounded buffer, so a file of any size costs the same memory. Trusts nothing: each size is checked
 * against what the file really holds. */
#ifndef ASSAY_STORE_SEGMENTS_H
#define ASSAY_STORE_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/records.h"
#include "wire/segment.h"

struct segment_reader;

/* Opens a segment; refuses what is not one, is of another version or endianness, or of another kind than asked for
 * (kind 0: any). The error names the path. */
int segment_reader_open(const char *path, uint32_t kind, struct segment_reader **ret, struct error *err);
void segment_reader_free(struct segment_reader *r);
void segment_reader_cleanup(struct segment_reader **r);

/* What the header says, with `committed` cut down to the file's real size. */
struct segment_facts {
	uint32_t kind;
	int32_t pid;
	int64_t mono_ns, wall_ns;
	uint64_t committed, dropped;
	int stopped; /* errno, 0: none */
	bool closed; /* false: the writer was killed (or still writes) */
};

void segment_reader_facts(const struct segment_reader *r, struct segment_facts *ret);

/* The next record: 1 and *ret_record, *ret_payload (valid until the next call, 8-byte aligned, `used` bytes); 0 at the
 * end; -1 with *err where the record is damaged (what came before it was good; no further record can be read). */
int segment_reader_next(struct segment_reader *r, struct segment_record *ret_record, const void **ret_payload,
			struct error *err);

/* Back to the first record. */
void segment_reader_rewind(struct segment_reader *r);

#endif
