/* "Did you mean": the word of a list that is nearest to what was typed. */
#ifndef ASSAY_BASE_SPELL_H
#define ASSAY_BASE_SPELL_H

#include <stddef.h>

/* Edit distance with insertion, deletion, substitution and swap of neighbours each counting 1. */
size_t spell_distance(const char *a, const char *b);

/* The nearest of `count` words, or NULL where none is near enough to be meant. */
const char *spell_nearest(const char *typed, const char *const *words, size_t count);

#endif
