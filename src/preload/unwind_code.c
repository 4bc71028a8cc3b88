/* The shapes of x86-64 instructions: see unwind_code.h. Only what is needed to find their ends, and to see calls and
 * what moves the stack pointer. */
#include "preload/unwind_code.h"

#include <string.h>

#define INSTRUCTION_MAX 15

/* What follows an opcode. */
enum shape {
	BAD = 0,
	NONE = 1,
	MODRM = 2,
	IMM_8 = 4,
	IMM_16 = 8,
	IMM_Z = 16,   /* 4 bytes, 2 with the operand size prefix */
	REL_32 = 32,  /* always 4 */
	OFFSET = 64,  /* 8 bytes, 4 with the address size prefix */
};

static unsigned shape_of_plain(uint8_t op, bool wide)
{
	if (op < 0x40)
		return (op & 7) < 4 ? MODRM : (op & 7) == 4 ? IMM_8 : (op & 7) == 5 ? IMM_Z : BAD;
	switch (op) {
	case 0x63:
	case 0x84 ... 0x8f:
	case 0xd0 ... 0xd3:
	case 0xd8 ... 0xdf:
	case 0xf6 ... 0xf7: /* these two: an immediate in their first two forms, seen to by the caller */
	case 0xfe ... 0xff:
		return MODRM;
	case 0x50 ... 0x5f:
	case 0x6c ... 0x6f:
	case 0x90 ... 0x99:
	case 0x9b ... 0x9f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
	case 0xc3:
	case 0xc9:
	case 0xcb ... 0xcc:
	case 0xcf:
	case 0xd7:
	case 0xec ... 0xef:
	case 0xf1:
	case 0xf4 ... 0xf5:
	case 0xf8 ... 0xfd:
		return NONE;
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xcd:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return IMM_8;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0 ... 0xc1:
	case 0xc6:
		return MODRM | IMM_8;
	case 0x69:
	case 0x81:
	case 0xc7:
		return MODRM | IMM_Z;
	case 0x68:
	case 0xa9:
		return IMM_Z;
	case 0xb8 ... 0xbf:
		return wide ? OFFSET : IMM_Z;
	case 0xa0 ... 0xa3:
		return OFFSET;
	case 0xc2:
	case 0xca:
		return IMM_16;
	case 0xc8:
		return IMM_16 | IMM_8;
	case 0xe8 ... 0xe9:
		return REL_32;
	default:
		return BAD;
	}
}

static unsigned shape_of_0f(uint8_t op)
{
	switch (op) {
	case 0x05 ... 0x06:
	case 0x08 ... 0x09:
	case 0x0b:
	case 0x0e:
	case 0x30 ... 0x37:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		return NONE;
	case 0x0f:
	case 0x70 ... 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return MODRM | IMM_8;
	case 0x80 ... 0x8f:
		return REL_32;
	case 0x04:
	case 0x07:
	case 0x0a:
	case 0x0c:
	case 0x24 ... 0x27:
	case 0x38 ... 0x3f:
		return BAD;
	default:
		return MODRM;
	}
}

/* Decoding in progress: [at, end) is what is left. */
struct decoder {
	const uint8_t *at, *end;
	uint8_t rex; /* its four low bits; also what VEX and EVEX say in their place */
	bool operand_16, address_32;
};

static bool take(struct decoder *d, uint8_t *ret)
{
	if (d->at == d->end)
		return false;
	*ret = *d->at++;
	return true;
}

/* Of `size` bytes, the first four, sign-extended. */
static bool take_number(struct decoder *d, unsigned size, int32_t *ret)
{
	if ((uintptr_t)(d->end - d->at) < size)
		return false;
	if (size == 1) {
		*ret = (int8_t)*d->at;
	} else if (size == 2) {
		*ret = (int16_t)(d->at[0] | d->at[1] << 8);
	} else {
		memcpy(ret, d->at, 4);
	}
	d->at += size;
	return true;
}

static bool take_modrm(struct decoder *d, struct unwind_instruction *out)
{
	uint8_t modrm, sib = 0, low;

	if (!take(d, &modrm))
		return false;
	out->has_modrm = true;
	out->mod = modrm >> 6;
	out->reg = (uint8_t)((modrm >> 3 & 7) | (d->rex & 4) << 1);
	low = modrm & 7;
	out->rm = (uint8_t)(low | (d->rex & 1) << 3);
	if (out->mod == 3)
		return true;
	out->base = out->rm;
	if (low == 4) {
		if (!take(d, &sib))
			return false;
		out->base = (uint8_t)((sib & 7) | (d->rex & 1) << 3);
		if ((sib >> 3 & 7) != 4 || d->rex & 2)
			out->base = UNWIND_NO_BASE; /* there is an index */
		low = sib & 7;
	}
	if (out->mod == 0 && low == 5) {
		out->base = UNWIND_NO_BASE; /* relative to the instruction, or absolute */
		return take_number(d, 4, &out->displacement);
	}
	return out->mod == 0 || take_number(d, out->mod == 1 ? 1 : 4, &out->displacement);
}

/* The rest of a VEX or EVEX prefix, whose first byte was `first`. */
static bool take_vector_prefix(struct decoder *d, uint8_t first, struct unwind_instruction *out)
{
	uint8_t a, b, c;

	out->vector = true;
	if (!take(d, &a))
		return false;
	d->rex = (uint8_t)(~a >> 5 & 4);
	if (first == 0xc5) {
		out->map = 1;
		return true;
	}
	if (!take(d, &b) || (first == 0x62 && !take(d, &c)))
		return false;
	d->rex = (uint8_t)(~a >> 5 & 7); /* R, X, B */
	out->map = a & (first == 0x62 ? 7 : 31);
	return out->map >= 1 && out->map <= 6 && out->map != 4;
}

static bool take_prefixes(struct decoder *d, struct unwind_instruction *out, uint8_t *ret_op)
{
	uint8_t op;

	do {
		if (!take(d, &op))
			return false;
		d->operand_16 = d->operand_16 || op == 0x66;
		d->address_32 = d->address_32 || op == 0x67;
	} while (op == 0x66 || op == 0x67 || op == 0xf2 || op == 0xf3 || op == 0xf0 || (op & 0xe7) == 0x26 ||
		 (op & 0xfe) == 0x64);
	if ((op & 0xf0) == 0x40) {
		d->rex = op & 15;
		out->wide = op & 8;
		out->extended = op & 1;
		if (!take(d, &op))
			return false;
	}
	if (op == 0xc4 || op == 0xc5 || op == 0x62) {
		if (!take_vector_prefix(d, op, out) || !take(d, &op))
			return false;
	} else if (op == 0x0f) {
		out->map = 1;
		if (!take(d, &op))
			return false;
		if (op == 0x38 || op == 0x3a) {
			out->map = op == 0x38 ? 2 : 3;
			if (!take(d, &op))
				return false;
		}
	}
	*ret_op = op;
	return true;
}

static unsigned shape_of(const struct unwind_instruction *i)
{
	switch (i->map) {
	case 0:
		return shape_of_plain(i->opcode, i->wide);
	case 1:
		return shape_of_0f(i->opcode);
	case 3:
		return MODRM | IMM_8;
	default:
		return MODRM;
	}
}

bool unwind_code_decode(const uint8_t *at, const uint8_t *end, struct unwind_instruction *ret)
{
	struct decoder d = {.at = at, .end = end - at > INSTRUCTION_MAX ? at + INSTRUCTION_MAX : end};
	unsigned shape;

	memset(ret, 0, sizeof *ret);
	ret->base = UNWIND_NO_BASE;
	if (!take_prefixes(&d, ret, &ret->opcode))
		return false;
	shape = shape_of(ret);
	if (shape == BAD || (shape & MODRM && !take_modrm(&d, ret)))
		return false;
	if (ret->map == 0 && (ret->opcode & 0xfe) == 0xf6 && (ret->reg & 7) < 2)
		shape |= ret->opcode == 0xf6 ? IMM_8 : IMM_Z;
	if (shape & IMM_16 && !take_number(&d, 2, &ret->immediate))
		return false;
	if (shape & IMM_8 && !take_number(&d, 1, &ret->immediate))
		return false;
	if (shape & IMM_Z && !take_number(&d, d.operand_16 && !ret->wide ? 2 : 4, &ret->immediate))
		return false;
	if (shape & REL_32 && !take_number(&d, 4, &ret->immediate))
		return false;
	if (shape & OFFSET && !take_number(&d, d.address_32 && !ret->wide ? 4 : 8, &ret->immediate))
		return false;
	ret->length = (uint8_t)(d.at - at);
	return true;
}

/* [at - size, at) if all of it is code that can be read. */
static const uint8_t *code_before(const struct unwind_image *image, uintptr_t at, unsigned size)
{
	return at > size && unwind_image_is_code(image, at - size) && unwind_image_is_code(image, at - 1)
		       ? (const uint8_t *)(at - size)
		       : NULL;
}

enum unwind_call unwind_code_call_before(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_target)
{
	const uint8_t *code = code_before(image, at, 5);
	int32_t distance;

	if (code && code[0] == 0xe8) {
		memcpy(&distance, code + 1, sizeof distance);
		*ret_target = at + (uintptr_t)(intptr_t)distance;
		if (unwind_image_is_code(image, *ret_target))
			return CALL_DIRECT;
	}
	for (unsigned size = 2; size <= 7; size++) {
		struct unwind_instruction i;

		code = code_before(image, at, size);
		if (code && code[0] == 0xff && (code[1] >> 3 & 7) == 2 &&
		    unwind_code_decode(code, code + size, &i) && i.length == size)
			return CALL_INDIRECT;
	}
	return CALL_NONE;
}

bool unwind_code_is_sigreturn(const struct unwind_image *image, uintptr_t at)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */

	return code_before(image, at + sizeof code, sizeof code) && memcmp((const void *)at, code, sizeof code) == 0;
}

uintptr_t unwind_code_stub_pointer(const struct unwind_image *image, uintptr_t at)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	const uint8_t *code = code_before(image, at + 16, 16);
	int32_t distance;

	if (!code)
		return 0;
	if (memcmp(code, landing, sizeof landing) == 0)
		code += sizeof landing;
	if (*code == 0xf2) /* bnd */
		code++;
	if (code[0] != 0xff || code[1] != 0x25)
		return 0;
	memcpy(&distance, code + 2, sizeof distance);
	return (uintptr_t)code + 6 + (uintptr_t)(intptr_t)distance;
}
