#include "trial/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/stats.h"

#define ARMS_MAX ((size_t)1 << 24)

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Ours, so that a seed
 * gives the same plan with every C library. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Below `limit`, without the bias of a plain remainder. */
static size_t random_below(uint64_t *state, size_t limit)
{
	uint64_t least = -(uint64_t)limit % limit, value;

	do
		value = next_random(state);
	while (value < least);
	return (size_t)(value % limit);
}

/* Fills sides[0..2n) with a permutation and its mirror image. */
static void draw_block(uint64_t *state, uint16_t *sides, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = random_below(state, i + 1);

		sides[i] = sides[at];
		sides[at] = (uint16_t)i;
	}
	for (size_t i = 0; i < n; i++)
		sides[n + i] = sides[n - 1 - i];
}

static void plan_random(const struct trial_options *o, uint16_t *sides)
{
	uint64_t state = o->seed;
	uint16_t block[2 * TRIAL_SIDES_MAX] = {0};

	for (size_t pair = 0; pair < o->pairs; pair += 2) {
		size_t halves = o->pairs - pair > 1 ? 2 : 1;

		draw_block(&state, block, o->sides);
		memcpy(sides + pair * o->sides, block, halves * o->sides * sizeof *block);
	}
}

static bool is_random(const struct trial_options *o)
{
	return !o->order || strcmp(o->order, "random") == 0;
}

static int check_order(const struct trial_options *o, struct error *err)
{
	size_t counts[26] = {0};

	if (o->sides > 26)
		return error_set(err, "the order '%s': a fixed order is for at most 26 sides", o->order);
	for (const char *c = o->order; *c; c++) {
		if (*c < 'A' || (size_t)(*c - 'A') >= o->sides)
			return error_set(err,
					 "the order '%.40s': expected \"random\", or a row of letters from A to %c",
					 o->order, (int)('A' + o->sides - 1));
		counts[*c - 'A']++;
	}
	for (size_t i = 0; i < o->sides; i++)
		if (counts[i] == 0 || counts[i] != counts[0])
			return error_set(err,
					 "the order '%.40s': every side has to run equally often in it, at least once",
					 o->order);
	return 0;
}

/* Letters of a side that has had all its turns are passed over. */
static void plan_fixed(const struct trial_options *o, uint16_t *sides, size_t count)
{
	size_t turns[26] = {0}, filled = 0;

	for (const char *c = o->order; filled < count; c = c[1] ? c + 1 : o->order) {
		uint16_t side = (uint16_t)(*c - 'A');

		if (turns[side]++ < o->pairs)
			sides[filled++] = side;
	}
}

size_t trial_pairs_to_look(size_t pairs)
{
	size_t most = pairs;

	for (size_t i = 0; i < STATS_LOOKS; i++)
		if (stats_looks[i] <= pairs)
			most = stats_looks[i];
	return most;
}

int trial_plan(const struct trial_options *asked, uint16_t **ret_sides, size_t *ret_count, struct error *err)
{
	struct trial_options whole = *asked, *o = &whole;
	size_t count;
	uint16_t *sides;

	/* The end is a look, too: what was judged at its own number of pairs once more would be one look too many. */
	if (o->until_decided)
		o->pairs = trial_pairs_to_look(o->pairs);
	if (o->sides < 1 || o->sides > TRIAL_SIDES_MAX || o->pairs > ARMS_MAX / o->sides)
		return error_set(err, "a plan of %zu pairs of %zu sides is out of bounds", o->pairs, o->sides);
	count = o->pairs * o->sides;
	if (!is_random(o) && check_order(o, err) < 0)
		return -1;
	sides = calloc(count ? count : 1, sizeof *sides);
	if (!sides)
		return error_set(err, "out of memory for a plan of %zu runs", count);
	if (is_random(o))
		plan_random(o, sides);
	else
		plan_fixed(o, sides, count);
	*ret_sides = sides;
	*ret_count = count;
	return 0;
}

/* Arms of a block. */
static size_t block_length(const struct trial_options *o)
{
	return is_random(o) ? 2 * o->sides : strlen(o->order);
}

static bool is_look(size_t pairs)
{
	for (size_t i = 0; i < STATS_LOOKS; i++)
		if (stats_looks[i] == pairs)
			return true;
	return false;
}

static enum trial_stop stop_of(int got)
{
	return got > 0 ? TRIAL_INTERRUPTED : TRIAL_FAILED;
}

static int warm_up(const struct trial_options *o, size_t of, struct error *err)
{
	int got = 0;

	for (size_t i = 0; got == 0 && i < o->warmup * o->sides; i++) {
		if (o->progress)
			o->progress(o->context, i, of, i % o->sides);
		got = o->run(o->context, i % o->sides, -1, -1, i / o->sides, err);
	}
	return got;
}

/* How far the sides have come. */
struct turns {
	size_t *of_side;
	size_t whole; /* turns that every side has had */
	size_t ahead; /* sides that have had more */
};

static void count_turn(const struct trial_options *o, struct turns *t, size_t side)
{
	if (t->of_side[side]++ == t->whole)
		t->ahead++;
	if (t->ahead < o->sides)
		return;
	t->whole++;
	t->ahead = 0;
	for (size_t i = 0; i < o->sides; i++)
		t->ahead += t->of_side[i] > t->whole;
}

static bool is_decided(const struct trial_options *o, size_t whole)
{
	return o->until_decided && o->decided && is_look(whole) && o->decided(o->context, whole);
}

static enum trial_stop run_plan(const struct trial_options *o, const uint16_t *sides, size_t count, struct error *err)
{
	CLEANUP(free_cleanup) size_t *of_side = calloc(o->sides, sizeof *of_side);
	struct turns turns = {.of_side = of_side};
	size_t length = block_length(o), warmups = o->done < count ? o->warmup * o->sides : 0;
	int got = 0;

	if (!of_side) {
		error_set(err, "out of memory for %zu sides", o->sides);
		return TRIAL_FAILED;
	}
	for (size_t i = 0; i < count; i++) {
		size_t before = turns.whole;

		if (i == o->done && (got = warm_up(o, warmups + count, err)) != 0)
			return stop_of(got);
		if (i >= o->done && o->progress)
			o->progress(o->context, warmups + i, warmups + count, sides[i]);
		if (i >= o->done)
			got = o->run(o->context, sides[i], (int)(i / length), (int)(i % length), of_side[sides[i]],
				     err);
		if (got != 0)
			return stop_of(got);
		count_turn(o, &turns, sides[i]);
		/* A look that a run before went past is not taken again; the one that it stopped at is. */
		if (turns.whole > before && i + 1 >= o->done && is_decided(o, turns.whole))
			return TRIAL_DECIDED;
	}
	return TRIAL_DONE;
}

enum trial_stop trial_run(const struct trial_options *o, struct error *err)
{
	CLEANUP(free_cleanup) uint16_t *sides = NULL;
	size_t count;

	if (trial_plan(o, &sides, &count, err) < 0)
		return TRIAL_FAILED;
	return run_plan(o, sides, count, err);
}
