/* Tokens: calls that end by what their begin returned, in any order and thread.
 *
 * A token's check is entered in a table of those that are open, so that ending one twice is seen. Where more are open
 * than the table holds, the rest are recorded without that. */
#include <assay.h>

#include "lib/export.h"
#include "lib/recording.h"

#define TRIES 8
/* A check is number << 2 | mode. This number stands for the tokens that have no place in the table. */
#define NUMBER_UNKEPT (UINT32_MAX >> 2)

static uint32_t keep(struct recording *r, uint32_t mode)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t number = atomic_fetch_add_explicit(&r->next_token, 1, memory_order_relaxed) & NUMBER_UNKEPT;
		uint32_t check = number << 2 | mode, none = 0;

		if (number != NUMBER_UNKEPT &&
		    atomic_compare_exchange_strong_explicit(&r->tokens[number % OPEN_TOKENS], &none, check,
							    memory_order_relaxed, memory_order_relaxed))
			return check;
	}
	return NUMBER_UNKEPT << 2 | mode;
}

static bool take_out(struct recording *r, uint32_t check)
{
	uint32_t number = check >> 2;

	return number == NUMBER_UNKEPT ||
	       atomic_compare_exchange_strong_explicit(&r->tokens[number % OPEN_TOKENS], &check, 0,
						       memory_order_relaxed, memory_order_relaxed);
}

ASSAY_EXPORT assay_token assay_token_begin(struct assay_region *region)
{
	uint32_t hot = atomic_load_explicit(&recording_hot, memory_order_relaxed);
	assay_token token = {0, 0, 0};
	struct thread *t = self;
	struct entry entry;

	if (!region || (hot & HOT_MODE) == REGION_OFF)
		return token;
	token.region = __atomic_load_n(&region->id, __ATOMIC_RELAXED);
	if (hot != t->hot || token.region == 0) {
		if (recording_is_refused() || !recording_enter(&entry))
			return (assay_token){0, 0, 0};
		t = recording_thread();
		token.region = t ? name_id(region) : 0;
		recording_leave(&entry);
		if (!t)
			return token;
	}
	token.check = keep(recording_memory(), t->hot & HOT_MODE);
	if ((t->hot & HOT_MODE) != REGION_COUNT)
		token.start = clock_now(t->tsc);
	return token;
}

/* What has entered. */
static void end(struct thread *t, assay_token token, uint64_t now)
{
	struct recording *r = recording_memory();
	uint32_t mode = t->hot & HOT_MODE;
	struct region_event event = {token.start, now, token.region, 0, REGION_EVENT_DETACHED, REGION_EVENT_CALL};

	if (token.region > REGION_ID_MAX || (token.check & HOT_MODE) == REGION_OFF || !take_out(r, token.check)) {
		bool forked = settings.forked && token.start < r->started;

		trouble_count(t, forked ? REGION_TROUBLE_FORKED : REGION_TROUBLE_BAD_TOKEN, 0);
	} else if ((token.check & HOT_MODE) != mode) {
		trouble_count(t, REGION_TROUBLE_SWITCHED, token.region);
	} else {
		if (token.region == REGION_ID_MAX)
			trouble_count(t, REGION_TROUBLE_OTHER_NAMES, token.region);
		event.depth = (uint16_t)atomic_load_explicit(&t->depth, memory_order_relaxed);
		call_write(t, mode, &event);
	}
}

ASSAY_EXPORT void assay_token_end(assay_token token)
{
	uint32_t hot = atomic_load_explicit(&recording_hot, memory_order_relaxed);
	struct thread *t = self;
	struct entry entry;
	uint64_t now;

	if (token.region == 0 || (hot & HOT_MODE) == REGION_OFF)
		return;
	if (hot == t->hot && (hot & HOT_MODE) == REGION_TRACE && token.region < REGION_ID_MAX &&
	    (token.check & HOT_MODE) == REGION_TRACE && take_out(recording_memory(), token.check)) {
		now = clock_now(t->tsc);
		event_write_entering(t, &(struct region_event){token.start, now, token.region,
							       (uint16_t)atomic_load_explicit(&t->depth,
											      memory_order_relaxed),
							       REGION_EVENT_DETACHED, REGION_EVENT_CALL});
		return;
	}
	if (recording_is_refused() || !recording_enter(&entry))
		return;
	t = recording_thread();
	if (t)
		end(t, token, clock_now(t->tsc));
	recording_leave(&entry);
}
