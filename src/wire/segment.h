/* The segment: the one crash-safe record file of a run, its layout and its writer.
 *
 * A writer maps the file's whole capacity once, writes only below `allocated`, the end of the blocks that the file has
 * (it grows in steps), and publishes each record by storing `committed` with release order after it. Killing the writer
 * at any instruction loses at most the record being written. Shared with target processes: libc only, never exits,
 * prints or logs. Errors are returned as negative errno values. One writer is used by one thread at a time. */
#ifndef ASSAY_WIRE_SEGMENT_H
#define ASSAY_WIRE_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SEGMENT_MAGIC "ASSAYSEG"
#define SEGMENT_VERSION 1
#define SEGMENT_DATA_OFFSET 4096 /* where the first record starts: the header has a page to itself */
#define SEGMENT_RECORD_MAX (1u << 20) /* bytes of one record, its header included */

enum segment_kind {
	SEGMENT_KIND_MONITOR = 1, /* written by assay: series, points, marks, processes, notes */
	SEGMENT_KIND_OUTPUT = 2,  /* written by the helper: chunks of output, exits */
	SEGMENT_KIND_SAMPLES = 3, /* written by assay: call trees and CPU samples */
	SEGMENT_KIND_REGIONS = 4, /* written by libassay: names of regions, threads, clocks (wire/regions.h) */
	SEGMENT_KIND_CALLS = 5,   /* written by libassay: the calls of regions of one thread (wire/regions.h) */
};

/* Lies at offset 0 of the file. All integers are native-endian; a file from a machine of the other endianness has a
 * version that does not match and is refused. */
struct segment_header {
	char magic[8];
	uint32_t version;
	uint32_t kind; /* enum segment_kind */
	int32_t pid;   /* of the writer */
	uint32_t data_offset;
	uint64_t capacity; /* bytes of the whole file, header included */
	int64_t mono_ns;   /* CLOCK_MONOTONIC when the segment was made ... */
	int64_t wall_ns;   /* ... and CLOCK_REALTIME at that moment */
	_Atomic uint64_t allocated; /* file offset up to which blocks are there */
	_Atomic uint64_t committed; /* file offset behind the last whole record */
	_Atomic uint64_t dropped;   /* records that found no room (disk or capacity) */
	_Atomic int32_t stopped;    /* errno of what ended the writing, 0 while all is well */
	_Atomic uint32_t closed;    /* 1 once the writer ended in good order */
};

/* Before each record. Records start at multiples of 8. */
struct segment_record {
	uint32_t size; /* of the whole record, this header included; a multiple of 8 */
	uint16_t type; /* enum wire_record_type (records.h) */
	uint16_t flags;
	uint32_t tid;  /* the thread that the record speaks of, 0 where none */
	uint32_t used; /* bytes of payload behind this header, before padding */
};

/* Its own copies of the header's marks decide what it writes: the file may be scribbled on by others. */
struct segment_writer {
	struct segment_header *header; /* NULL: not open; every call is then harmless */
	uint64_t capacity, allocated, committed;
	uint64_t pending;  /* size of the record that is reserved and not committed yet, 0: none */
	uint64_t released; /* pages before this offset have been given back to the kernel */
	dev_t device;      /* with inode: the file that fd must still be */
	ino_t inode;
	int stopped; /* -errno of what ended the writing, 0 while all is well */
	int fd;      /* kept to grow the file */
};

/* Makes the file (it must not exist) and maps `capacity` bytes, rounded up to whole pages and to at least 64 KiB, or
 * less where the address space is limited. Returns 0 or -errno, and then leaves no file behind. The descriptor is
 * close-on-exec. */
int segment_create(struct segment_writer *w, const char *path, uint32_t kind, uint64_t capacity);

/* Where the payload of a record of `length` bytes goes (zeroed, 8-byte aligned), or NULL where there is no room: the
 * drop is counted. Nothing is visible to a reader until segment_commit; a reservation that is not committed is replaced
 * by the next one. Once the disk or the capacity was full the writer stays stopped. */
void *segment_reserve(struct segment_writer *w, uint16_t type, uint32_t tid, size_t length);
void segment_commit(struct segment_writer *w);

/* Reserve, copy, commit. Returns 0, -EMSGSIZE for a record above SEGMENT_RECORD_MAX (dropped, the writer goes on), or
 * -ENOSPC or what else stopped the writer. */
int segment_append(struct segment_writer *w, uint16_t type, uint32_t tid, const void *payload, size_t length);

/* Gives pages that are fully written back to the kernel (the page cache keeps them), so that a long recording does
 * not count as this process's memory. Call now and then. */
void segment_trim(struct segment_writer *w);

/* Marks it closed, cuts the file to what is committed, unmaps. Harmless when not open. */
void segment_close(struct segment_writer *w);

/* In a forked child (not one of vfork, which shares the memory): forget the mapping without touching the file. */
void segment_abandon(struct segment_writer *w);

#endif
