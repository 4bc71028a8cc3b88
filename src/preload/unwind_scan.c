/* Following code to its return, to see what it does to the stack on the way: unwind_code_step.
 *
 * Hand-written kernels of numeric libraries often have no unwind data. What they have is one frame, made at the start
 * and given back before the return; so from any instruction, going down the code in its written order to the next
 * return shows how far the stack pointer then lies from where it was. Loops are run through once, and branches not
 * taken. */
#include "preload/unwind_cache.h"
#include "preload/unwind_code.h"

#include <string.h>

#define BYTES_MAX (128u << 10)
#define INSTRUCTIONS_MAX 32768u

enum { RBX = 3, RSP = 4, RBP = 5, REGISTERS = 16 };

/* A value that is a register's (as it was at the start) plus an offset. */
struct place {
	bool known;
	uint8_t base;
	int32_t offset;
};

struct scan {
	struct place value[REGISTERS];    /* what registers hold, where that is known */
	struct place stored[REGISTERS];   /* where the code put a register's old value, on its way from the start */
	struct place restored[REGISTERS]; /* where it takes it back from, in the code next to the return */
	bool same[REGISTERS];             /* takes back what it had put there itself */
};

static bool is_kept(unsigned number)
{
	return number == RBX || number == RBP || number >= 12;
}

static bool places_equal(const struct place *a, const struct place *b)
{
	return a->known && b->known && a->base == b->base && a->offset == b->offset;
}

static void move_stack(struct scan *s, int64_t by)
{
	int64_t offset = s->value[RSP].offset + by;

	if (offset < -STEP_OFFSET_LIMIT || offset > STEP_OFFSET_LIMIT)
		s->value[RSP].known = false;
	else
		s->value[RSP].offset = (int32_t)offset;
}

/* The memory operand [base + displacement]. */
static struct place operand(const struct scan *s, const struct unwind_instruction *i)
{
	struct place at = {0};

	if (i->base < REGISTERS && i->displacement > -STEP_OFFSET_LIMIT && i->displacement < STEP_OFFSET_LIMIT) {
		at = s->value[i->base];
		at.offset += i->displacement;
	}
	return at;
}

static void store(struct scan *s, unsigned number, struct place at)
{
	if (is_kept(number) && s->value[number].known && s->value[number].base == number && !s->value[number].offset)
		s->stored[number] = at;
}

static void restore(struct scan *s, unsigned number, struct place at)
{
	s->restored[number] = at;
	s->same[number] = places_equal(&at, &s->stored[number]);
	s->value[number].known = s->same[number];
	s->value[number].base = (uint8_t)number;
	s->value[number].offset = 0;
}

static void pop(struct scan *s, unsigned number)
{
	restore(s, number, s->value[RSP]);
	if (number != RSP)
		move_stack(s, 8);
}

/* Arithmetic and moves. What other instructions do to other registers is not followed: a step that comes out wrong by
 * it leads to no call. */
static void run_move(struct scan *s, const struct unwind_instruction *i)
{
	switch (i->opcode) {
	case 0x81:
	case 0x83:
		if (i->mod != 3 || (i->reg & 7) == 7) /* a comparison */
			return;
		if (i->rm == RSP && ((i->reg & 7) == 0 || (i->reg & 7) == 5))
			move_stack(s, (i->reg & 7) == 0 ? i->immediate : -(int64_t)i->immediate);
		else
			s->value[i->rm].known = false;
		return;
	case 0x8d:
		s->value[i->reg] = operand(s, i);
		return;
	case 0x89:
		if (i->mod == 3)
			s->value[i->rm] = s->value[i->reg];
		else
			store(s, i->reg, operand(s, i));
		return;
	case 0x8b:
		if (i->mod == 3)
			s->value[i->reg] = s->value[i->rm];
		else
			restore(s, i->reg, operand(s, i));
		return;
	case 0x01:
	case 0x03:
	case 0x29:
	case 0x2b:
	case 0x87: /* by an amount that only the processor knows */
		if (i->mod == 3)
			s->value[i->opcode & 2 && i->opcode != 0x87 ? i->reg : i->rm].known = false;
		return;
	}
}

static void run_plain(struct scan *s, const struct unwind_instruction *i)
{
	unsigned number = (i->opcode & 7u) + (i->extended ? 8u : 0u);

	if (i->opcode >= 0x50 && i->opcode < 0x58) {
		move_stack(s, -8);
		store(s, number, s->value[RSP]);
	} else if (i->opcode >= 0x58 && i->opcode < 0x60) {
		pop(s, number);
	} else if (i->opcode == 0x68 || i->opcode == 0x6a || i->opcode == 0x9c ||
		   (i->opcode == 0xff && (i->reg & 7) == 6)) {
		move_stack(s, -8);
	} else if (i->opcode == 0x9d || i->opcode == 0x8f) {
		move_stack(s, 8);
	} else if (i->opcode == 0xc9) {
		s->value[RSP] = s->value[RBP];
		pop(s, RBP);
	} else {
		run_move(s, i);
	}
}

static void forget_restored(struct scan *s)
{
	for (unsigned i = 0; i < REGISTERS; i++) {
		s->restored[i].known = false;
		s->same[i] = false;
	}
}

/* The CFA at a return, and the registers taken back before it, as a step. */
static uint64_t as_step(const struct scan *s)
{
	static const uint8_t order[] = {RBX, RBP, 12, 13, 14, 15};
	const struct place *at = &s->value[RSP];
	uint64_t step = STEP_GUESSED;
	int64_t cfa = (int64_t)at->offset + 8;

	if (!at->known || cfa % 8)
		return STEP_NOTHING;
	if (at->base == RSP)
		step |= STEP_RSP;
	else if (at->base == RBP)
		step |= STEP_RBP;
	else if (at->base == RBX)
		step |= STEP_RBX;
	else
		return STEP_NOTHING;
	for (unsigned i = 0; i < sizeof order; i++) {
		const struct place *saved = &s->restored[order[i]];
		int64_t below = cfa - saved->offset;

		if (!saved->known || s->same[order[i]])
			continue;
		if (saved->base != at->base || below <= 0 || below % 8 || below / 8 >= 1 << STEP_SAVES_BITS)
			return STEP_NOTHING;
		step |= (uint64_t)(below / 8) << (STEP_SAVES_SHIFT + STEP_SAVES_BITS * i);
	}
	return step | (uint64_t)(cfa / 8) << STEP_OFFSET_SHIFT;
}

static bool is_return(const struct unwind_instruction *i)
{
	return i->map == 0 && (i->opcode == 0xc3 || i->opcode == 0xc2);
}

static bool is_conditional(const struct unwind_instruction *i)
{
	return (i->map == 0 && i->opcode >= 0x70 && i->opcode < 0x80) ||
	       (i->map == 1 && !i->vector && i->opcode >= 0x80 && i->opcode < 0x90);
}

uint64_t unwind_code_step(const struct unwind_image *image, uintptr_t pc)
{
	struct scan s;
	uintptr_t low, limit = unwind_image_is_code(image, pc) ? unwind_image_limit(image, pc, &low) : 0;

	memset(&s, 0, sizeof s);
	for (unsigned i = 0; i < REGISTERS; i++)
		s.value[i] = (struct place){true, (uint8_t)i, 0};
	if (limit > pc + BYTES_MAX)
		limit = pc + BYTES_MAX;
	for (unsigned count = 0; count < INSTRUCTIONS_MAX && pc < limit; count++) {
		struct unwind_instruction i;

		if (!unwind_code_decode((const uint8_t *)pc, (const uint8_t *)limit, &i))
			return STEP_NOTHING;
		if (is_return(&i))
			return as_step(&s);
		pc += i.length;
		if (i.map != 0) {
			if (is_conditional(&i))
				forget_restored(&s);
			continue;
		}
		if (i.opcode == 0xe9 || i.opcode == 0xeb) {
			/* Backwards ends a loop: what follows is reached some other way. */
			if (i.immediate > 0)
				pc += (uintptr_t)i.immediate;
		} else if (i.opcode == 0xff && (i.reg & 7) == 4) {
			return STEP_NOTHING;
		} else if (i.opcode == 0xe8 || is_conditional(&i) || (i.opcode == 0xff && (i.reg & 7) == 2)) {
			forget_restored(&s);
		} else {
			run_plain(&s, &i);
		}
	}
	return STEP_NOTHING;
}
