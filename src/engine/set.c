/* Several parsers over one log, and the choice between them.
 *
 * Which lines are worth a parser's while is found with a filter over groups of four bytes: a phrase of eight bytes or
 * more covers five starts of such groups in a row, so looking at every fifth group cannot miss one. It may offer lines in
 * vain. Knows no engine's wording. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#define GRAM 4
#define STRIDE (ENGINE_PHRASE_MIN - GRAM + 1)
#define FILTER_BITS 15
#define ENGINES_MAX 8 /* as many as a byte has bits */

struct engine_set {
	size_t count;
	const struct engine *engines[ENGINES_MAX];
	void *states[ENGINES_MAX];
	uint8_t filter[1u << FILTER_BITS]; /* by hash of four bytes: the engines with such a phrase, one bit each */
};

static size_t gram_hash(const char *text)
{
	uint32_t gram;

	memcpy(&gram, text, sizeof gram);
	return (gram * UINT32_C(2654435761)) >> (32 - FILTER_BITS);
}

static int add_engine(struct engine_set *s, const struct engine *e, const struct engine_context *c)
{
	void *state = e->open(c);

	if (!state)
		return -1;
	for (const char *const *phrase = e->phrases; *phrase; phrase++)
		for (size_t i = 0; i < STRIDE; i++)
			s->filter[gram_hash(*phrase + i)] |= (uint8_t)(1u << s->count);
	s->engines[s->count] = e;
	s->states[s->count] = state;
	s->count++;
	return 0;
}

struct engine_set *engine_set_new(const char *name, const struct engine_context *c)
{
	struct engine_set *s = calloc(1, sizeof *s);
	bool all = strcmp(name, "auto") == 0;

	if (!s)
		return NULL;
	for (size_t i = 0; i < engine_count && s->count < ENGINES_MAX; i++) {
		if ((all || strcmp(engines[i]->name, name) == 0) && add_engine(s, engines[i], c) < 0) {
			engine_set_free(s);
			return NULL;
		}
	}
	if (s->count == 0) {
		engine_set_free(s);
		return NULL;
	}
	return s;
}

void engine_set_free(struct engine_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		s->engines[i]->close(s->states[i]);
	free(s);
}

static unsigned interested(const struct engine_set *s, const struct log_line *line)
{
	unsigned mask = 0;

	for (size_t at = 0; at + GRAM <= line->length; at += STRIDE)
		mask |= s->filter[gram_hash(line->text + at)];
	return mask;
}

void engine_set_line(struct engine_set *s, const struct log_line *line)
{
	unsigned mask = interested(s, line);

	for (size_t i = 0; i < s->count; i++) {
		const struct engine *e = s->engines[i];

		if (mask >> i & 1 || (e->attentive && e->attentive(s->states[i])))
			e->line(s->states[i], line);
	}
}

static bool yields(const struct engine_set *s, size_t which, const struct engine_result *results)
{
	const char *const *names = s->engines[which]->yields_to;

	for (; names && *names; names++)
		for (size_t i = 0; i < s->count; i++)
			if (strcmp(s->engines[i]->name, *names) == 0 && results[i].known > 0)
				return true;
	return false;
}

/* The index of the result to take. Says in it what else was there. */
static size_t choose(const struct engine_set *s, struct engine_result *results)
{
	bool out[ENGINES_MAX] = {false};
	size_t best = 0;

	for (size_t i = 0; i < s->count; i++)
		out[i] = yields(s, i, results);
	for (size_t i = 1; i < s->count; i++)
		if (!out[i] && (out[best] || results[i].known > results[best].known))
			best = i;
	for (size_t i = 0; i < s->count; i++)
		if (i != best && !out[i] && results[i].known > 0)
			warnings_add(&results[best].warnings,
				     "The output also holds lines of %s; its phases and rates were not taken.",
				     s->engines[i]->name);
	return best;
}

int engine_set_finish(struct engine_set *s, struct engine_result *result, struct error *err)
{
	struct engine_result results[ENGINES_MAX];
	size_t best;
	int status = 0;

	for (size_t i = 0; i < s->count; i++)
		engine_result_init(&results[i]);
	for (size_t i = 0; i < s->count && status == 0; i++)
		status = s->engines[i]->finish(s->states[i], &results[i], err);
	if (status == 0) {
		best = choose(s, results);
		if (results[best].known > 0) {
			*result = results[best];
			engine_result_init(&results[best]);
		}
	}
	for (size_t i = 0; i < s->count; i++)
		engine_result_release(&results[i]);
	return status;
}
