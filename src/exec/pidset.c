#include "exec/pidset.h"

#include <stdlib.h>
#include <string.h>

#define PID_LIMIT (1 << 22) /* the kernel's own */

void pidset_init(struct pidset *s)
{
	*s = (struct pidset){0};
}

void pidset_release(struct pidset *s)
{
	free(s->words);
	pidset_init(s);
}

bool pidset_has(const struct pidset *s, int pid)
{
	size_t word = (size_t)pid / 64;

	return pid >= 0 && word < s->count && s->words[word] >> (pid % 64) & 1;
}

bool pidset_add(struct pidset *s, int pid)
{
	size_t word = (size_t)pid / 64;

	if (pid < 0 || pid > PID_LIMIT)
		return false;
	if (word >= s->count) {
		size_t count = word + word / 2 + 64;
		uint64_t *words = reallocarray(s->words, count, sizeof *words);

		if (!words)
			return false;
		memset(words + s->count, 0, (count - s->count) * sizeof *words);
		s->words = words;
		s->count = count;
	}
	s->words[word] |= UINT64_C(1) << (pid % 64);
	return true;
}

void pidset_remove(struct pidset *s, int pid)
{
	if (pidset_has(s, pid))
		s->words[pid / 64] &= ~(UINT64_C(1) << (pid % 64));
}

void pidset_clear(struct pidset *s)
{
	if (s->count)
		memset(s->words, 0, s->count * sizeof *s->words);
}

void pidset_keep_common(struct pidset *s, const struct pidset *other)
{
	for (size_t i = 0; i < s->count; i++)
		s->words[i] &= i < other->count ? other->words[i] : 0;
}
