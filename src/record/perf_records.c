#include "record/perf_records.h"

#include <string.h>

/* Behind every record but samples, as sample_id_all asks for: pid and tid, then the time. */
#define TRAILER_BYTES 16

/* What of the record has not been taken yet. */
struct rest {
	const uint8_t *at;
	size_t size;
};

static const void *take(struct rest *r, size_t size)
{
	const void *bytes = r->at;

	if (size > r->size)
		return NULL;
	r->at += size;
	r->size -= size;
	return bytes;
}

static bool take_u64(struct rest *r, uint64_t *ret)
{
	const void *bytes = take(r, sizeof *ret);

	if (bytes)
		memcpy(ret, bytes, sizeof *ret);
	return bytes != NULL;
}

static bool take_pair(struct rest *r, int *first, int *second)
{
	const void *bytes = take(r, 8);
	int32_t pair[2];

	if (!bytes)
		return false;
	memcpy(pair, bytes, sizeof pair);
	*first = pair[0];
	*second = pair[1];
	return true;
}

/* A text that ends within what is left. */
static const char *take_text(struct rest *r)
{
	return memchr(r->at, 0, r->size) ? (const char *)r->at : NULL;
}

static bool take_words(struct rest *r, uint64_t count, const uint64_t **ret)
{
	if (count > r->size / sizeof **ret)
		return false;
	*ret = take(r, count * sizeof **ret);
	return true;
}

static bool decode_stack(struct rest *r, const struct perf_layout *layout, struct perf_sample *s)
{
	uint64_t size, used;

	if (!take_u64(r, &s->registers_abi))
		return false;
	if (s->registers_abi != PERF_SAMPLE_REGS_ABI_NONE && !take_words(r, layout->registers, &s->registers))
		return false;
	if (!take_u64(r, &size))
		return false;
	if (size == 0)
		return true;
	if (size > r->size)
		return false;
	s->stack = take(r, size);
	if (!take_u64(r, &used) || used > size)
		return false;
	s->stack_size = used;
	return true;
}

static bool decode_sample(struct rest *r, const struct perf_layout *layout, struct perf_record *ret)
{
	struct perf_sample *s = &ret->sample;
	uint64_t t, count;

	if (!take_u64(r, &s->ip) || !take_pair(r, &ret->pid, &ret->tid) || !take_u64(r, &t) || !take_u64(r, &s->period))
		return false;
	ret->t = (int64_t)t;
	if (!take_u64(r, &count) || !take_words(r, count, &s->chain))
		return false;
	s->chain_count = count;
	return !(layout->fields & PERF_FIELDS_STACK) || decode_stack(r, layout, s);
}

static bool decode_mapping(struct rest *r, uint16_t misc, struct perf_record *ret)
{
	struct perf_mapping *m = &ret->mapping;
	const uint8_t *file;
	const uint32_t *bits;

	if (!take_pair(r, &ret->pid, &ret->tid) || !take_u64(r, &m->start) || !take_u64(r, &m->length) ||
	    !take_u64(r, &m->offset))
		return false;
	file = take(r, 24);
	bits = take(r, 8);
	m->path = take_text(r);
	if (!file || !bits || !m->path || m->length > UINT64_MAX - m->start)
		return false;
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		m->build_id_length = file[0] <= sizeof m->build_id ? file[0] : 0;
		memcpy(m->build_id, file + 4, sizeof m->build_id);
	} else {
		memcpy(&m->major, file, 4);
		memcpy(&m->minor, file + 4, 4);
		memcpy(&m->inode, file + 8, 8);
	}
	m->protection = bits[0];
	return true;
}

static bool decode_comm(struct rest *r, uint16_t misc, struct perf_record *ret)
{
	if (!take_pair(r, &ret->pid, &ret->tid))
		return false;
	ret->comm.exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	ret->comm.name = take_text(r);
	return ret->comm.name != NULL;
}

static bool decode_lost(struct rest *r, struct perf_record *ret)
{
	uint64_t id;

	return take_u64(r, &id) && take_u64(r, &ret->lost);
}

static bool decode_body(struct rest *r, uint16_t misc, struct perf_record *ret)
{
	switch (ret->type) {
	case PERF_RECORD_MMAP2:
		return decode_mapping(r, misc, ret);
	case PERF_RECORD_COMM:
		return decode_comm(r, misc, ret);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return take_pair(r, &ret->pid, &ret->parent.ppid) && take_pair(r, &ret->tid, &ret->parent.ptid);
	case PERF_RECORD_LOST:
		return decode_lost(r, ret);
	default:
		return true;
	}
}

bool perf_record_decode(const void *bytes, size_t size, const struct perf_layout *layout, struct perf_record *ret)
{
	struct perf_event_header header;
	struct rest rest = {bytes, size}, trailer;
	const void *start = take(&rest, sizeof header);
	uint64_t t;

	if (!start)
		return false;
	memcpy(&header, start, sizeof header);
	if (header.size != size || size % 8 != 0)
		return false;
	*ret = (struct perf_record){.type = header.type};
	if (header.type == PERF_RECORD_SAMPLE)
		return decode_sample(&rest, layout, ret);
	if (rest.size < TRAILER_BYTES)
		return false;
	rest.size -= TRAILER_BYTES;
	trailer = (struct rest){rest.at + rest.size, TRAILER_BYTES};
	if (!take_pair(&trailer, &ret->pid, &ret->tid) || !take_u64(&trailer, &t))
		return false;
	ret->t = (int64_t)t;
	return decode_body(&rest, header.misc, ret);
}
