#include "ingest/gguf_values.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Headers of real models have up to some 20 MB, nearly all of it vocabulary. */
#define HEADER_MAX (UINT64_C(256) << 20)
#define DEPTH_MAX 4 /* of lists in lists, which nobody writes */

enum value_type {
	VALUE_U8,
	VALUE_I8,
	VALUE_U16,
	VALUE_I16,
	VALUE_U32,
	VALUE_I32,
	VALUE_F32,
	VALUE_BOOL,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_U64,
	VALUE_I64,
	VALUE_F64,
	VALUE_TYPES,
};

/* Bytes; 0: not of fixed size. */
static const uint8_t value_sizes[VALUE_TYPES] = {
	[VALUE_U8] = 1,	 [VALUE_I8] = 1,   [VALUE_U16] = 2, [VALUE_I16] = 2, [VALUE_U32] = 4, [VALUE_I32] = 4,
	[VALUE_F32] = 4, [VALUE_BOOL] = 1, [VALUE_U64] = 8, [VALUE_I64] = 8, [VALUE_F64] = 8,
};

int gguf_wrong(const struct gguf_reader *r, struct error *err, const char *what)
{
	return error_set(err, "%s: byte %" PRIu64 ": %s", r->path, r->at, what);
}

static int check_room(const struct gguf_reader *r, uint64_t bytes, struct error *err)
{
	if (bytes > r->size - r->at)
		return error_set(err,
				 "%s: byte %" PRIu64 ": %" PRIu64
				 " bytes are to follow, but the file ends at byte %" PRIu64,
				 r->path, r->at, bytes, r->size);
	if (bytes > HEADER_MAX || r->at + bytes > HEADER_MAX)
		return gguf_wrong(r, err, "the header goes on beyond 256 MiB, which no model's does");
	return 0;
}

static int skip(struct gguf_reader *r, uint64_t bytes, struct error *err)
{
	if (check_room(r, bytes, err) < 0)
		return -1;
	r->at += bytes;
	return 0;
}

static int fill(struct gguf_reader *r, struct error *err)
{
	ssize_t got;

	do
		got = pread(r->fd, r->buffer, sizeof r->buffer, (off_t)r->at);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_set(err, "%s: %s", r->path, strerror(errno));
	if (got == 0)
		return gguf_wrong(r, err, "the file has become shorter");
	r->begin = r->at;
	r->held = (size_t)got;
	return 0;
}

int gguf_take(struct gguf_reader *r, void *to, size_t bytes, struct error *err)
{
	if (check_room(r, bytes, err) < 0)
		return -1;
	while (bytes > 0) {
		size_t from, here;

		if ((r->at < r->begin || r->at >= r->begin + r->held) && fill(r, err) < 0)
			return -1;
		from = (size_t)(r->at - r->begin);
		here = r->held - from < bytes ? r->held - from : bytes;
		memcpy(to, r->buffer + from, here);
		to = (char *)to + here;
		r->at += here;
		bytes -= here;
	}
	return 0;
}

int gguf_take_u32(struct gguf_reader *r, uint32_t *ret, struct error *err)
{
	if (gguf_take(r, ret, sizeof *ret, err) < 0)
		return -1;
	*ret = le32toh(*ret);
	return 0;
}

int gguf_take_u64(struct gguf_reader *r, uint64_t *ret, struct error *err)
{
	if (gguf_take(r, ret, sizeof *ret, err) < 0)
		return -1;
	*ret = le64toh(*ret);
	return 0;
}

int gguf_take_string(struct gguf_reader *r, char *text, size_t room, struct error *err)
{
	uint64_t length;

	if (gguf_take_u64(r, &length, err) < 0 || check_room(r, length, err) < 0)
		return -1;
	text[0] = '\0';
	if (length >= room)
		return skip(r, length, err);
	if (gguf_take(r, text, (size_t)length, err) < 0)
		return -1;
	text[length] = '\0';
	return 0;
}

/* Numbers below 0 count as absent, which is 0. */
static uint64_t whole_number(const unsigned char *bytes, uint32_t type)
{
	uint64_t unsigned_value = 0;
	int64_t value;

	for (size_t i = value_sizes[type]; i-- > 0;)
		unsigned_value = unsigned_value << 8 | bytes[i];
	switch (type) {
	case VALUE_I8:
		value = (int8_t)unsigned_value;
		break;
	case VALUE_I16:
		value = (int16_t)unsigned_value;
		break;
	case VALUE_I32:
		value = (int32_t)unsigned_value;
		break;
	case VALUE_I64:
		value = (int64_t)unsigned_value;
		break;
	case VALUE_F32:
	case VALUE_F64:
		return 0;
	default:
		return unsigned_value;
	}
	return value > 0 ? (uint64_t)value : 0;
}

static int take_numbers(struct gguf_reader *r, uint32_t type, uint64_t count, struct gguf_value *v, struct error *err)
{
	unsigned char bytes[8];
	uint64_t looked_at = count < GGUF_LIST_MAX ? count : GGUF_LIST_MAX;

	if (count > (r->size - r->at) / value_sizes[type])
		return gguf_wrong(r, err, "a list is longer than the rest of the file");
	for (uint64_t i = 0; i < looked_at; i++) {
		uint64_t number;

		if (gguf_take(r, bytes, value_sizes[type], err) < 0)
			return -1;
		number = whole_number(bytes, type);
		if (!v->first)
			v->first = number;
		if (__builtin_add_overflow(v->sum, number, &v->sum))
			v->sum = UINT64_MAX;
	}
	return skip(r, (count - looked_at) * value_sizes[type], err);
}

static int take_value(struct gguf_reader *r, uint32_t type, int depth, struct gguf_value *v, struct error *err);

static int take_list(struct gguf_reader *r, int depth, struct gguf_value *v, struct error *err)
{
	struct gguf_value unused;
	uint32_t type;
	uint64_t count;

	if (gguf_take_u32(r, &type, err) < 0 || gguf_take_u64(r, &count, err) < 0)
		return -1;
	if (type >= VALUE_TYPES)
		return gguf_wrong(r, err, "a list is of an unknown type");
	if (depth == DEPTH_MAX)
		return gguf_wrong(r, err, "lists stand in lists too deep");
	v->count = count;
	if (value_sizes[type] > 0)
		return take_numbers(r, type, count, v, err);
	if (count > (r->size - r->at) / 8) /* the length alone of an element has 8 bytes */
		return gguf_wrong(r, err, "a list is longer than the rest of the file");
	for (uint64_t i = 0; i < count; i++)
		if (take_value(r, type, depth + 1, &unused, err) < 0)
			return -1;
	return 0;
}

static int take_value(struct gguf_reader *r, uint32_t type, int depth, struct gguf_value *v, struct error *err)
{
	v->first = v->sum = v->count = 0;
	v->text[0] = '\0';
	if (type >= VALUE_TYPES)
		return gguf_wrong(r, err, "a value is of an unknown type");
	if (type == VALUE_STRING)
		return gguf_take_string(r, v->text, sizeof v->text, err);
	if (type == VALUE_ARRAY)
		return take_list(r, depth, v, err);
	return take_numbers(r, type, 1, v, err);
}

int gguf_take_value(struct gguf_reader *r, struct gguf_value *ret, struct error *err)
{
	uint32_t type;

	return gguf_take_u32(r, &type, err) < 0 ? -1 : take_value(r, type, 0, ret, err);
}
