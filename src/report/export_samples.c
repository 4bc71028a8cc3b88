#include "report/export_samples.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "model/hotspots.h"

#define BEFORE "before" /* the group of what comes before the first phase, as in the table of hot spots */
#define NO_PHASES "run" /* the group of everything where there are none */

void export_samples_init(struct export_samples *s)
{
	*s = (struct export_samples){0};
}

void export_samples_release(struct export_samples *s)
{
	free(s->items);
	free(s->first);
	free(s->threads);
	free(s->weights);
	export_samples_init(s);
}

static bool wanted(const struct export_input *in, int64_t t)
{
	size_t phase;

	if (!in->group)
		return true;
	if (!in->phases->count)
		return strcmp(in->group, NO_PHASES) == 0;
	phase = phases_at(in->phases, t);
	return phase == SIZE_MAX ? strcmp(in->group, BEFORE) == 0 : phase_is(&in->phases->items[phase], in->group);
}

/* Nothing was chosen: why. */
static int say_nothing(const struct export_input *in, struct error *err)
{
	CLEANUP(buf_release) struct buf names;
	bool known = in->phases->count == 0 && in->group && strcmp(in->group, NO_PHASES) == 0, before = false;

	buf_init(&names);
	if (!in->profile->sample_count || !in->group) {
		error_set(err, "there are no CPU samples in this run");
		return EXPORT_NOTHING;
	}
	for (size_t i = 0; i < in->phases->count && !known; i++)
		known = phase_is(&in->phases->items[i], in->group);
	for (size_t i = 0; i < in->profile->sample_count && !before; i++)
		before = phases_at(in->phases, in->profile->samples[i].t) == SIZE_MAX;
	hotspots_list_groups(in->phases, before, &names);
	if (known)
		error_set(err, "option '--group': there are no CPU samples in '%.100s'", in->group);
	else
		error_set(err, "option '--group': there is no group or phase '%.100s' in this run; its groups are: %s",
			  in->group, names.text);
	return EXPORT_NOTHING;
}

static int by_weight(const void *a, const void *b, void *weights)
{
	const uint64_t *of = weights;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (of[x] != of[y])
		return of[x] > of[y] ? -1 : 1;
	return (x > y) - (x < y);
}

/* Samples stand in the order of time, so that counting puts them in the order of threads and keeps that. */
static void place(struct export_samples *s, const struct profile *p, const bool *chosen)
{
	for (size_t i = 0; i < p->sample_count; i++)
		if (chosen[i])
			s->first[p->samples[i].thread + 1]++;
	for (size_t i = 0; i < p->thread_count; i++)
		s->first[i + 1] += s->first[i];
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];

		if (!chosen[i])
			continue;
		s->items[s->first[sample->thread]++] = (uint32_t)i;
		s->weights[sample->thread] += sample->weight;
		s->weight += sample->weight;
	}
	/* Each first[] has moved on to where the next thread begins. */
	memmove(s->first + 1, s->first, p->thread_count * sizeof *s->first);
	s->first[0] = 0;
}

int export_samples_choose(struct export_samples *ret, const struct export_input *in, struct error *err)
{
	const struct profile *p = in->profile;
	CLEANUP(free_cleanup) bool *chosen = calloc(p->sample_count + 1, sizeof *chosen);

	for (size_t i = 0; chosen && i < p->sample_count; i++) {
		/* A weight of none is no time: it would only be an empty entry. */
		chosen[i] = p->samples[i].weight && wanted(in, p->samples[i].t);
		ret->count += chosen[i];
	}
	if (chosen && (!ret->count || !p->hz))
		return say_nothing(in, err);
	ret->items = calloc(ret->count, sizeof *ret->items);
	ret->first = calloc(p->thread_count + 2, sizeof *ret->first);
	ret->threads = calloc(p->thread_count + 1, sizeof *ret->threads);
	ret->weights = calloc(p->thread_count + 1, sizeof *ret->weights);
	if (!chosen || !ret->items || !ret->first || !ret->threads || !ret->weights)
		return error_set(err, "out of memory for %zu samples", p->sample_count);
	ret->period_ns = (UINT64_C(1000000000) + p->hz / 2) / p->hz;
	place(ret, p, chosen);
	for (uint32_t i = 0; i < p->thread_count; i++)
		if (ret->weights[i])
			ret->threads[ret->thread_count++] = i;
	qsort_r(ret->threads, ret->thread_count, sizeof *ret->threads, by_weight, ret->weights);
	return EXPORT_OK;
}

static int by_key(const void *a, const void *b)
{
	const struct export_sum *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

size_t export_sums_join(struct export_sum *sums, size_t count)
{
	size_t kept = 0;

	qsort(sums, count, sizeof *sums, by_key);
	for (size_t i = 0; i < count; i++) {
		if (kept && sums[kept - 1].key == sums[i].key && sums[kept - 1].node == sums[i].node)
			sums[kept - 1].weight += sums[i].weight;
		else
			sums[kept++] = sums[i];
	}
	return kept;
}

const char *export_process_name(const struct profile_image *image)
{
	const char *slash = strrchr(image->exe, '/'), *name = slash ? slash + 1 : image->exe;

	return *name ? name : "?";
}
