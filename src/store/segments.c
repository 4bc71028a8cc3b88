/* The reader of segments. It believes nothing that the file says about sizes, and reads with pread into one bounded
 * buffer, never through a mapping of the data: a file that shrinks while it is read is then an error, not a signal. */
#include "store/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHUNK (256u << 10) /* bytes read at a time, unless a record needs more */
#define ROOM (SEGMENT_RECORD_MAX + CHUNK)

struct segment_reader {
	char *path;
	int fd;
	struct segment_facts facts;
	uint64_t begin;  /* file offset of the first record */
	uint64_t offset; /* file offset of the next record */
	bool damaged;
	unsigned char *buffer; /* holds [at, at + held) of the file; malloc's alignment keeps payloads 8-byte aligned */
	uint64_t at;
	size_t held;
};

void segment_reader_free(struct segment_reader *r)
{
	if (!r)
		return;
	fd_cleanup(&r->fd);
	free(r->buffer);
	free(r->path);
	free(r);
}

void segment_reader_cleanup(struct segment_reader **r)
{
	segment_reader_free(*r);
}

/* Reads until `length` bytes or the end of the file; returns how many, or -errno. */
static ssize_t read_at(int fd, void *to, size_t length, uint64_t offset)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(fd, (char *)to + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* The marks of a segment that may still be written: loaded from a mapping, because pread promises no whole words. A
 * file system that cannot map gets by with what pread gave. */
static void load_marks(struct segment_reader *r, const struct segment_header *copy)
{
	struct segment_header *h = mmap(NULL, sizeof *h, PROT_READ, MAP_SHARED, r->fd, 0);
	const struct segment_header *from = h == MAP_FAILED ? copy : h;

	/* `closed` first: what is closed does not change any more. */
	r->facts.closed = atomic_load_explicit(&from->closed, memory_order_acquire) == 1;
	r->facts.committed = atomic_load_explicit(&from->committed, memory_order_acquire);
	r->facts.dropped = atomic_load_explicit(&from->dropped, memory_order_relaxed);
	r->facts.stopped = atomic_load_explicit(&from->stopped, memory_order_relaxed);
	if (h != MAP_FAILED)
		munmap(h, sizeof *h);
}

static int read_header(struct segment_reader *r, uint32_t kind, struct error *err)
{
	struct segment_header h;
	struct stat st;
	ssize_t got;

	if (fstat(r->fd, &st) < 0)
		return error_set(err, "%s: %s", r->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, "%s: not a file, so not a segment", r->path);
	got = read_at(r->fd, &h, sizeof h, 0);
	if (got < 0)
		return error_set(err, "%s: %s", r->path, strerror((int)-got));
	if ((size_t)got < sizeof h || memcmp(h.magic, SEGMENT_MAGIC, sizeof h.magic) != 0)
		return error_set(err, "%s: not a segment of assay", r->path);
	if (h.version == __builtin_bswap32(SEGMENT_VERSION))
		return error_set(err, "%s: written on a machine of the other byte order; read it there", r->path);
	if (h.version != SEGMENT_VERSION)
		return error_set(err, "%s: a segment of version %u; this program reads version %d", r->path,
				 (unsigned)h.version, SEGMENT_VERSION);
	if (kind && h.kind != kind)
		return error_set(err, "%s: a segment of kind %u where kind %u is expected", r->path, (unsigned)h.kind,
				 (unsigned)kind);
	if (h.data_offset < sizeof h || h.data_offset % 8 || h.data_offset > (1u << 20))
		return error_set(err, "%s: damaged: its records cannot start at byte %u", r->path,
				 (unsigned)h.data_offset);
	r->facts = (struct segment_facts){
		.kind = h.kind, .pid = h.pid, .mono_ns = h.mono_ns, .wall_ns = h.wall_ns};
	load_marks(r, &h);
	/* A writer that still runs may have grown the file since the fstat, but not past what it then commits. */
	if (fstat(r->fd, &st) < 0)
		return error_set(err, "%s: %s", r->path, strerror(errno));
	if (r->facts.committed > (uint64_t)st.st_size)
		r->facts.committed = (uint64_t)st.st_size;
	if (r->facts.committed < h.data_offset)
		r->facts.committed = h.data_offset;
	r->begin = r->offset = h.data_offset;
	return 0;
}

int segment_reader_open(const char *path, uint32_t kind, struct segment_reader **ret, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *r = calloc(1, sizeof *r);

	if (!r)
		return error_set(err, "%s: out of memory", path);
	/* O_NONBLOCK: a FIFO of that name would otherwise wait for its writer. */
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	r->path = strdup(path);
	r->buffer = malloc(ROOM);
	if (!r->path || !r->buffer)
		return error_set(err, "%s: out of memory", path);
	if (read_header(r, kind, err) < 0)
		return -1;
	*ret = r;
	r = NULL;
	return 0;
}

void segment_reader_facts(const struct segment_reader *r, struct segment_facts *ret)
{
	*ret = r->facts;
}

void segment_reader_rewind(struct segment_reader *r)
{
	r->offset = r->begin;
	r->damaged = false;
}

/* Makes the buffer hold `length` bytes from the next record on; the caller has checked that they are committed. */
static int fill(struct segment_reader *r, size_t length, struct error *err)
{
	uint64_t left = r->facts.committed - r->offset;
	size_t kept = 0, want;
	ssize_t got;

	if (r->offset >= r->at && r->offset + length <= r->at + r->held)
		return 0;
	if (r->offset >= r->at && r->offset < r->at + r->held) {
		kept = (size_t)(r->at + r->held - r->offset);
		memmove(r->buffer, r->buffer + (r->offset - r->at), kept);
	}
	want = length > CHUNK ? length : CHUNK;
	if (want > left)
		want = (size_t)left;
	r->at = r->offset;
	r->held = kept;
	got = read_at(r->fd, r->buffer + kept, want - kept, r->offset + kept);
	if (got < 0)
		return error_set(err, "%s: byte %" PRIu64 ": %s", r->path, r->offset, strerror((int)-got));
	r->held += (size_t)got;
	if (r->held < length)
		return error_set(err, "%s: became shorter while it was read, at byte %" PRIu64, r->path,
				 r->at + r->held);
	return 0;
}

static int read_record(struct segment_reader *r, struct segment_record *ret_record, const void **ret_payload,
		       struct error *err)
{
	uint64_t left = r->facts.committed - r->offset;
	struct segment_record record;

	if (left < sizeof record)
		return error_set(err, "%s: damaged at byte %" PRIu64 ": %" PRIu64 " bytes are left, less than a record",
				 r->path, r->offset, left);
	if (fill(r, sizeof record, err) < 0)
		return -1;
	memcpy(&record, r->buffer + (r->offset - r->at), sizeof record);
	if (record.size < sizeof record || record.size % 8 || record.size > SEGMENT_RECORD_MAX)
		return error_set(err, "%s: damaged at byte %" PRIu64 ": a record of %u bytes cannot be", r->path,
				 r->offset, (unsigned)record.size);
	if (record.used > record.size - sizeof record)
		return error_set(err, "%s: damaged at byte %" PRIu64 ": %u bytes in a record of %u bytes", r->path,
				 r->offset, (unsigned)record.used, (unsigned)record.size);
	if (record.size > left)
		return error_set(err, "%s: cut short at byte %" PRIu64 ": a record of %u bytes, %" PRIu64 " are left",
				 r->path, r->offset, (unsigned)record.size, left);
	if (fill(r, record.size, err) < 0)
		return -1;
	*ret_record = record;
	*ret_payload = r->buffer + (r->offset - r->at) + sizeof record;
	r->offset += record.size;
	return 1;
}

int segment_reader_next(struct segment_reader *r, struct segment_record *ret_record, const void **ret_payload,
			struct error *err)
{
	int got;

	if (r->damaged)
		return error_set(err, "%s: damaged at byte %" PRIu64 ", nothing can be read behind it", r->path,
				 r->offset);
	if (r->offset == r->facts.committed)
		return 0;
	got = read_record(r, ret_record, ret_payload, err);
	r->damaged = got < 0;
	return got;
}
