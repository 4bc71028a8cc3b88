#include "model/region_seek.h"

#include <stdlib.h>

#define PARTS 4096u       /* counts of a pass */
#define VALUES_MAX 32768u /* kept instead, where that spares another pass */

void region_seek_init(struct region_seek *s, uint64_t at, struct region_interval in)
{
	*s = (struct region_seek){.at = at, .in = in};
	if (in.low >= in.high) {
		s->found = true;
		s->value = in.low;
	}
}

static void end_pass(struct region_seek *s)
{
	free(s->values);
	free(s->counts);
	s->values = NULL;
	s->counts = NULL;
	s->value_count = s->part_count = 0;
}

void region_seek_release(struct region_seek *s)
{
	end_pass(s);
	s->found = true;
}

/* How many parts the interval is looked at in; 0: its values are kept. */
static size_t plan(const struct region_seek *s, unsigned *ret_shift)
{
	uint64_t span = (uint64_t)s->in.high - (uint64_t)s->in.low, parts;
	unsigned shift = 0;

	while (span >> shift >= PARTS)
		shift++;
	parts = (span >> shift) + 1;
	*ret_shift = shift;
	return s->in.inside <= parts || (shift && s->in.inside <= VALUES_MAX) ? 0 : (size_t)parts;
}

size_t region_seek_bytes(const struct region_seek *s)
{
	unsigned shift;
	size_t parts;

	if (s->found)
		return 0;
	parts = plan(s, &shift);
	return (parts ? parts : (size_t)s->in.inside) * sizeof(uint64_t);
}

int region_seek_begin(struct region_seek *s, struct error *err)
{
	if (s->found)
		return 0;
	s->part_count = plan(s, &s->shift);
	if (s->part_count)
		s->counts = calloc(s->part_count, sizeof *s->counts);
	else
		s->values = calloc((size_t)s->in.inside + 1, sizeof *s->values);
	return s->counts || s->values ? 0 : error_set(err, "out of memory for the percentiles of a region");
}

void region_seek_add(struct region_seek *s, const int64_t *starts, const int64_t *ends, size_t n)
{
	for (size_t i = 0; i < n && !s->found; i++) {
		int64_t d = region_duration(starts[i], ends[i]);

		if (d < s->in.low || d > s->in.high)
			continue;
		if (s->counts)
			s->counts[((uint64_t)d - (uint64_t)s->in.low) >> s->shift]++;
		else if (s->value_count < s->in.inside)
			s->values[s->value_count++] = d;
	}
}

/* The part that has the wanted rank becomes the interval. */
static void narrow(struct region_seek *s)
{
	uint64_t before = s->in.before, low, high;
	size_t part = 0;

	while (part + 1 < s->part_count && before + s->counts[part] <= s->at)
		before += s->counts[part++];
	low = (uint64_t)s->in.low + ((uint64_t)part << s->shift);
	high = low + ((UINT64_C(1) << s->shift) - 1);
	s->in.low = (int64_t)low;
	if ((int64_t)high < s->in.high)
		s->in.high = (int64_t)high;
	s->in.before = before;
	s->in.inside = s->counts[part];
	s->found = s->in.low == s->in.high;
	s->value = s->in.low;
}

void region_seek_end(struct region_seek *s)
{
	uint64_t place = s->at - s->in.before;

	if (s->found)
		return;
	if (s->counts) {
		narrow(s);
	} else {
		/* Fewer than before: the file has changed meanwhile, and the last one is as good as any. */
		if (place >= s->value_count)
			place = s->value_count ? s->value_count - 1 : 0;
		if (s->value_count)
			region_select(s->values, s->value_count, &place, 1);
		s->found = true;
		s->value = s->value_count ? s->values[place] : s->in.low;
	}
	end_pass(s);
}
