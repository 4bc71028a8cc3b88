/* Which process of a parallel job this is, as its launcher tells in the environment. */
#include <stdlib.h>

#include "lib/recording.h"

static const struct {
	const char *rank, *size;
} launchers[] = {
#define RANK_ENV(rank, size, job) {rank, size},
#include "wire/rank_env.h"
#undef RANK_ENV
};

/* Digits only, and fewer than 10 of them; else false. */
static bool read_number(const char *name, int *ret)
{
	const char *text = *name ? secure_getenv(name) : NULL;
	int value = 0, digits = 0;

	if (!text)
		return false;
	for (; *text >= '0' && *text <= '9' && digits < 9; text++, digits++)
		value = value * 10 + (*text - '0');
	if (digits == 0 || *text)
		return false;
	*ret = value;
	return true;
}

bool rank_of_environment(int *ret_rank, int *ret_size)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		int rank, size;

		if (!read_number(launchers[i].rank, &rank))
			continue;
		*ret_rank = rank;
		*ret_size = read_number(launchers[i].size, &size) && size > rank ? size : 0;
		return true;
	}
	return false;
}
