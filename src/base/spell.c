#include "base/spell.h"

#include <string.h>

#define WORD_MAX 63

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

size_t spell_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 2];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	size_t m = strnlen(a, WORD_MAX), n = strnlen(b, WORD_MAX);

	for (size_t j = 0; j <= n; j++)
		above[j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *spare = before;

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = above;
		above = row;
		row = spare;
	}
	return above[n];
}

const char *spell_nearest(const char *typed, const char *const *words, size_t count)
{
	size_t length = strnlen(typed, WORD_MAX);
	size_t best = length < 3 ? 2 : length / 3 + 2; /* one more than the distance that is still near */
	const char *nearest = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t distance = spell_distance(typed, words[i]);

		/* A word that was begun right is meant even if its end is missing. */
		if (length >= 3 && strncmp(typed, words[i], length) == 0)
			distance = 1;
		if (distance < best) {
			best = distance;
			nearest = words[i];
		}
	}
	return nearest;
}
