/* Which runs of two sides are neighbours and make a pair. Knows their places and times, never their values: a choice
 * by values would be a choice of the result. */
#ifndef ASSAY_JUDGE_COMPARE_PAIRS_H
#define ASSAY_JUDGE_COMPARE_PAIRS_H

#include "model/arm.h"

struct pair {
	size_t a, b; /* indexes of the arms */
};

/* The pairs of usable arms, in the order of time; *ret_pairs is owned by the caller.
 *
 * By blocks, where arms of both sides have a block, no two have the same place, and their times, where all are known,
 * ascend with the places: neighbours of different sides within a block, from its start (ABBA: A B, B A). Else by
 * start times, where they show both sides in turn: neighbours of different sides from the first run on, if that
 * leaves out at most one run, or a quarter. Arms that failed hold their places, so that their partners pair with
 * nobody. False in *ret_interleaved: neither is so, and there are none. */
int compare_find_pairs(const struct arms *a, const struct arms *b, struct pair **ret_pairs, size_t *ret_count,
		       bool *ret_interleaved, struct error *err);

#endif
