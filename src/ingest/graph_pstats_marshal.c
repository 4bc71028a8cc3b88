#include "ingest/graph_pstats_marshal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define DEPTH_MAX      16 /* a profile has four levels */
#define FLAG_REF       0x80
#define CODE_BITS      0x7f
#define LONG_BITS      15 /* of a digit of a long integer */
#define FLOAT_TEXT_MAX 255

/* What follows a code: nothing, so many bytes, so many bytes as a number before them says, or other objects. */
enum shape {
	NO_CODE,
	BARE,
	BYTES,      /* `size` of them */
	TEXT_FLOATS, /* `size` numbers as text, each behind a byte with its length */
	LONG_DIGITS,
	SIZED,      /* bytes behind a 32-bit count */
	SHORT,      /* bytes behind an 8-bit count */
	ITEMS,      /* objects behind a 32-bit count */
	FEW_ITEMS,  /* objects behind an 8-bit count */
	SLICE,
	DICT,
	REFERENCE,
};

struct code {
	uint8_t shape, size;
	bool numbered; /* counts as an object that can be referred to, where it has FLAG_REF */
};

static const struct code codes[128] = {
	['N'] = {BARE, 0, false},       ['S'] = {BARE, 0, false},    ['.'] = {BARE, 0, false},
	['F'] = {BARE, 0, false},       ['T'] = {BARE, 0, false},    ['i'] = {BYTES, 4, true},
	['I'] = {BYTES, 8, true},       ['g'] = {BYTES, 8, true},    ['y'] = {BYTES, 16, true},
	['f'] = {TEXT_FLOATS, 1, true}, ['x'] = {TEXT_FLOATS, 2, true}, ['l'] = {LONG_DIGITS, 0, true},
	['s'] = {SIZED, 0, true},       ['t'] = {SIZED, 0, true},    ['u'] = {SIZED, 0, true},
	['a'] = {SIZED, 0, true},       ['A'] = {SIZED, 0, true},    ['z'] = {SHORT, 0, true},
	['Z'] = {SHORT, 0, true},       ['('] = {ITEMS, 0, true},    ['['] = {ITEMS, 0, true},
	['<'] = {ITEMS, 0, true},       ['>'] = {ITEMS, 0, true},    [')'] = {FEW_ITEMS, 0, true},
	[':'] = {SLICE, 0, true},       ['{'] = {DICT, 0, true},     ['r'] = {REFERENCE, 0, false},
	['R'] = {REFERENCE, 0, false},
};

static uint32_t u32_at(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t u64_at(const unsigned char *at)
{
	return u32_at(at) | (uint64_t)u32_at(at + 4) << 32;
}

void marshal_release(struct marshal *m)
{
	free(m->refs.items);
	free(m->interned.items);
	free(m->members.items);
	*m = (struct marshal){0};
}

static int note(struct marshal_positions *p, size_t position, struct error *err)
{
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		uint32_t *items = reallocarray(p->items, room, sizeof *items);

		if (!items)
			return error_set(err, "out of memory for %zu objects of a profile", room);
		p->items = items;
		p->room = room;
	}
	p->items[p->count++] = (uint32_t)position;
	return 0;
}

/* An object that has begun and not ended: how many of its members are still to come. A dictionary's are not known;
 * `odd` says that a key has been read and its value has not. */
struct open_object {
	uint32_t left;
	uint32_t number; /* as what it is referred to; UINT32_MAX: it is not */
	bool dict, odd;
};

struct scan {
	struct marshal *m;
	struct error *err;
	size_t at;
	struct open_object open[DEPTH_MAX];
	size_t depth;
};

static int cut_short(const struct scan *s, size_t at)
{
	return error_set(s->err,
			 "%s: byte %zu: the profile is cut short: what begins here goes on behind its end of %zu bytes",
			 s->m->source, at, s->m->length);
}

static bool has(const struct scan *s, uint64_t bytes)
{
	return s->m->length - s->at >= bytes;
}

static int skip_bytes(struct scan *s, size_t begin, uint64_t count)
{
	if (!has(s, count))
		return cut_short(s, begin);
	s->at += count;
	return 0;
}

/* A count of 8 or 32 bits; what it counts takes at least a byte each. */
static int read_count(struct scan *s, size_t begin, bool small, uint32_t *ret)
{
	if (!has(s, small ? 1 : 4))
		return cut_short(s, begin);
	*ret = small ? s->m->bytes[s->at] : u32_at(s->m->bytes + s->at);
	s->at += small ? 1 : 4;
	if (*ret > INT32_MAX)
		return error_set(s->err, "%s: byte %zu: the size %u is no size", s->m->source, begin, *ret);
	return has(s, *ret) ? 0 : cut_short(s, begin);
}

static int skip_long(struct scan *s, size_t begin)
{
	uint32_t raw, digits;

	if (!has(s, 4))
		return cut_short(s, begin);
	raw = u32_at(s->m->bytes + s->at);
	digits = raw > INT32_MAX ? 0u - raw : raw;
	s->at += 4;
	return skip_bytes(s, begin, 2 * (uint64_t)digits);
}

static int skip_text_floats(struct scan *s, size_t begin, unsigned count)
{
	for (; count > 0; count--) {
		uint32_t length = 0;

		if (read_count(s, begin, true, &length) < 0 || skip_bytes(s, begin, length) < 0)
			return -1;
	}
	return 0;
}

/* Whether a number is that of an object which has not ended. */
static bool is_open(const struct scan *s, uint32_t number)
{
	for (size_t i = s->depth; i-- > 0;)
		if (s->open[i].number == number)
			return true;
	return false;
}

static int check_reference(struct scan *s, size_t begin, unsigned char code)
{
	const struct marshal_positions *known = code == 'R' ? &s->m->interned : &s->m->refs;
	uint32_t number;

	if (!has(s, 4))
		return cut_short(s, begin);
	number = u32_at(s->m->bytes + s->at);
	s->at += 4;
	if (number >= known->count)
		return error_set(s->err, "%s: byte %zu: a reference to object %u, but only %zu come before it",
				 s->m->source, begin, number, known->count);
	if (code == 'r' && is_open(s, number))
		return error_set(s->err, "%s: byte %zu: a reference to an object that it is part of (a circle)",
				 s->m->source, begin);
	return 0;
}

static int open_object(struct scan *s, size_t begin, struct open_object object)
{
	if (!object.dict && !object.left)
		return 0;
	if (s->depth == DEPTH_MAX)
		return error_set(s->err, "%s: byte %zu: objects are nested more than %d deep", s->m->source, begin,
				 DEPTH_MAX);
	s->open[s->depth++] = object;
	return 0;
}

static int scan_code(struct scan *s, size_t begin, unsigned char byte, uint32_t number)
{
	const struct code *code = &codes[byte & CODE_BITS];
	uint32_t count = 0;

	switch (code->shape) {
	case BARE:
		return 0;
	case BYTES:
		return skip_bytes(s, begin, code->size);
	case TEXT_FLOATS:
		return skip_text_floats(s, begin, code->size);
	case LONG_DIGITS:
		return skip_long(s, begin);
	case SIZED:
	case SHORT:
		return read_count(s, begin, code->shape == SHORT, &count) < 0 ? -1 : skip_bytes(s, begin, count);
	case ITEMS:
	case FEW_ITEMS:
		if (read_count(s, begin, code->shape == FEW_ITEMS, &count) < 0)
			return -1;
		return open_object(s, begin, (struct open_object){count, number, false, false});
	case SLICE:
		return open_object(s, begin, (struct open_object){3, number, false, false});
	case DICT:
		return open_object(s, begin, (struct open_object){0, number, true, false});
	case REFERENCE:
		return check_reference(s, begin, byte & CODE_BITS);
	default:
		break;
	}
	if ((byte & CODE_BITS) == 'c')
		return error_set(s->err,
				 "%s: byte %zu: a code object, as `python -m profile` puts it into its profile of a "
				 "whole script: `python -m cProfile` names it instead",
				 s->m->source, begin);
	return error_set(s->err, "%s: byte %zu: the type code 0x%02x is none of Python's marshal format", s->m->source,
			 begin, byte);
}

/* One more object has begun inside the innermost open one, and those that are complete by it are closed after it. */
static int scan_object(struct scan *s)
{
	struct open_object *in = s->depth ? &s->open[s->depth - 1] : NULL;
	size_t begin = s->at;
	unsigned char byte;
	uint32_t number = UINT32_MAX;

	if (!has(s, 1))
		return cut_short(s, begin);
	byte = s->m->bytes[s->at++];
	if (in && in->dict && !in->odd && (byte & CODE_BITS) == '0') {
		s->depth--;
		return 0;
	}
	if (in && in->dict && s->depth == 1 && note(&s->m->members, begin, s->err) < 0)
		return -1;
	if (in && in->dict)
		in->odd = !in->odd;
	else if (in)
		in->left--;
	if (byte & FLAG_REF && codes[byte & CODE_BITS].numbered) {
		number = (uint32_t)s->m->refs.count;
		if (note(&s->m->refs, begin, s->err) < 0)
			return -1;
	}
	if ((byte & CODE_BITS) == 't' && note(&s->m->interned, begin, s->err) < 0)
		return -1;
	return scan_code(s, begin, byte, number);
}

static void close_complete(struct scan *s)
{
	while (s->depth && !s->open[s->depth - 1].dict && !s->open[s->depth - 1].left)
		s->depth--;
}

int marshal_scan(struct marshal *m, struct error *err)
{
	struct scan s = {.m = m, .err = err};

	if (m->length > UINT32_MAX)
		return error_set(err, "%s: a profile of more than 4 GiB is not read", m->source);
	do {
		if (scan_object(&s) < 0)
			return -1;
		close_complete(&s);
	} while (s.depth);
	m->end = s.at;
	return 0;
}

/* --- After the scan: all is known to be within bounds. --- */

uint32_t marshal_reference(const struct marshal *m, size_t at)
{
	return (m->bytes[at] & CODE_BITS) == 'r' ? u32_at(m->bytes + at + 1) : UINT32_MAX;
}

bool marshal_dict_ends(const struct marshal *m, size_t at)
{
	return (m->bytes[at] & CODE_BITS) == '0';
}

static struct marshal_value long_value(const unsigned char *at, size_t *ret_length)
{
	uint32_t raw = u32_at(at), digits = raw > INT32_MAX ? 0u - raw : raw;
	struct marshal_value v = {.kind = MARSHAL_INT};
	uint64_t sum = 0;

	*ret_length = 4 + 2 * (size_t)digits;
	for (uint32_t i = digits; i-- > 0;) {
		uint64_t digit = at[4 + 2 * (size_t)i] | (uint64_t)at[5 + 2 * (size_t)i] << 8;

		if (sum > INT64_MAX >> LONG_BITS || digit >> LONG_BITS) {
			v.kind = MARSHAL_HUGE;
			return v;
		}
		sum = sum << LONG_BITS | digit;
	}
	v.integer = raw > INT32_MAX ? -(int64_t)sum : (int64_t)sum;
	return v;
}

static struct marshal_value text_float(const unsigned char *at)
{
	struct marshal_value v = {.kind = MARSHAL_REAL};
	char text[FLOAT_TEXT_MAX + 1];

	memcpy(text, at + 1, at[0]);
	text[at[0]] = '\0';
	if (!parse_double(text, &v.real))
		v.real = NAN;
	return v;
}

static struct marshal_value number_value(const unsigned char *at, char code)
{
	struct marshal_value v = {.kind = MARSHAL_INT};
	uint64_t bits;

	if (code == 'i')
		v.integer = (int32_t)u32_at(at);
	bits = code == 'i' ? 0 : u64_at(at);
	if (code == 'I')
		v.integer = (int64_t)bits;
	if (code == 'g') {
		v.kind = MARSHAL_REAL;
		memcpy(&v.real, &bits, sizeof v.real);
	}
	return v;
}

static void skip_text_float(const struct marshal *m, size_t *at)
{
	*at += 1 + (size_t)m->bytes[*at];
}

/* The value whose code stands at *at, which is no reference. */
static struct marshal_value read_here(const struct marshal *m, size_t *at)
{
	char code = (char)(m->bytes[*at] & CODE_BITS);
	const struct code *c = &codes[(unsigned char)code];
	const unsigned char *body = m->bytes + ++*at;
	struct marshal_value v = {.kind = MARSHAL_OTHER};
	size_t length;

	switch (c->shape) {
	case BYTES:
		*at += c->size;
		return code == 'y' ? v : number_value(body, code);
	case TEXT_FLOATS:
		for (unsigned i = 0; i < c->size; i++)
			skip_text_float(m, at);
		return code == 'f' ? text_float(body) : v;
	case LONG_DIGITS:
		v = long_value(body, &length);
		*at += length;
		return v;
	case SIZED:
	case SHORT:
	case ITEMS:
	case FEW_ITEMS:
		length = c->shape == SHORT || c->shape == FEW_ITEMS ? 1 : 4;
		v.count = length == 1 ? body[0] : u32_at(body);
		*at += length;
		v.contents = *at;
		if (c->shape == ITEMS || c->shape == FEW_ITEMS) {
			v.kind = code == '<' || code == '>' ? MARSHAL_OTHER : MARSHAL_SEQUENCE;
			return v;
		}
		v.kind = MARSHAL_TEXT;
		v.text = (const char *)body + length;
		v.latin1 = code == 'a' || code == 'A' || code == 'z' || code == 'Z';
		*at += v.count;
		return v;
	case DICT:
		v.kind = MARSHAL_DICT;
		v.contents = *at;
		return v;
	default:
		return v;
	}
}

struct marshal_value marshal_read(const struct marshal *m, size_t *at)
{
	char code = (char)(m->bytes[*at] & CODE_BITS);
	size_t there;

	if (code != 'r' && code != 'R')
		return read_here(m, at);
	there = (code == 'R' ? &m->interned : &m->refs)->items[u32_at(m->bytes + *at + 1)];
	*at += MARSHAL_REFERENCE_BYTES;
	return read_here(m, &there);
}

void marshal_append_text(struct buf *out, const struct marshal_value *v)
{
	if (!v->latin1) {
		buf_append(out, v->text, v->count);
		return;
	}
	for (size_t i = 0; i < v->count; i++) {
		unsigned char c = (unsigned char)v->text[i];

		if (c >= 0x80)
			buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c));
	}
}
