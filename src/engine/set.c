/* Several parsers over one log, and the choice between them.
 *
 * A parser is offered the lines that hold one of its phrases. They are found through groups of four bytes: a phrase of
 * eight bytes or more covers five starts of such groups in a row, so looking at every fifth group of a line cannot miss
 * one; what is found is compared in full. Knows no engine's wording. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#define GRAM 4
#define STRIDE (ENGINE_PHRASE_MIN - GRAM + 1)
#define INDEX_BITS 14
#define GRAMS_MAX (STRIDE * ENGINE_PHRASES_MAX)
#define ENGINES_MAX 8

/* Four bytes of a phrase. */
struct gram {
	const char *phrase;
	uint16_t length; /* of the phrase */
	uint16_t next;   /* another with the same hash; 0: none */
	uint8_t offset;  /* in the phrase */
	uint8_t engine;  /* a bit */
};

struct engine_set {
	size_t count;
	const struct engine *engines[ENGINES_MAX];
	void *states[ENGINES_MAX];
	size_t gram_count; /* the first one is not used */
	struct gram grams[GRAMS_MAX + 1];
	uint16_t index[1u << INDEX_BITS]; /* by hash: the first such gram; 0: none */
};

static size_t gram_hash(const char *text)
{
	uint32_t gram;

	memcpy(&gram, text, sizeof gram);
	return (gram * UINT32_C(2654435761)) >> (32 - INDEX_BITS);
}

static void add_phrase(struct engine_set *s, const char *phrase)
{
	for (size_t i = 0; i < STRIDE && s->gram_count < GRAMS_MAX; i++) {
		uint16_t *head = &s->index[gram_hash(phrase + i)];

		s->grams[++s->gram_count] = (struct gram){
			.phrase = phrase,
			.length = (uint16_t)strlen(phrase),
			.next = *head,
			.offset = (uint8_t)i,
			.engine = (uint8_t)(1u << s->count),
		};
		*head = (uint16_t)s->gram_count;
	}
}

static int add_engine(struct engine_set *s, const struct engine *e, const struct engine_context *c)
{
	void *state = e->open(c);

	if (!state)
		return -1;
	for (const char *const *phrase = e->phrases; *phrase; phrase++)
		add_phrase(s, *phrase);
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

static bool holds(const struct log_line *line, size_t at, const struct gram *g)
{
	return at >= g->offset && at - g->offset + g->length <= line->length &&
	       memcmp(line->text + at - g->offset, g->phrase, g->length) == 0;
}

/* The engines with a phrase in this line, a bit each. */
static unsigned interested(const struct engine_set *s, const struct log_line *line)
{
	unsigned mask = 0;

	for (size_t at = 0; at + GRAM <= line->length; at += STRIDE)
		for (size_t i = s->index[gram_hash(line->text + at)]; i; i = s->grams[i].next)
			if (!(mask & s->grams[i].engine) && holds(line, at, &s->grams[i]))
				mask |= s->grams[i].engine;
	return mask;
}

void engine_set_line(struct engine_set *s, const struct log_line *line)
{
	unsigned mask = interested(s, line);

	for (size_t i = 0; i < s->count; i++) {
		const struct engine *e = s->engines[i];

		if (mask >> i & 1)
			e->line(s->states[i], line);
		else if (e->attentive && e->attentive(s->states[i]))
			e->rest(s->states[i], line);
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
