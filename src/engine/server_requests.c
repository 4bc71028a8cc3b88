#include "engine/server_requests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int server_requests_init(struct server_requests *r, struct engine_result *result)
{
	*r = (struct server_requests){.result = result, .similarity = NAN};
	r->open = calloc(OPEN_REQUESTS_MAX, sizeof *r->open);
	return r->open ? 0 : -1;
}

void server_requests_release(struct server_requests *r)
{
	free(r->open);
}

/* A finished slot holds the prompt and what was generated, less the last token: what that leaves over was cached. */
static void infer_cached(struct open_request *o)
{
	struct engine_request *q = &o->request;
	int64_t cached;

	if (o->cache_told || o->truncated || o->tokens_at_end < 0 || q->prompt_tokens < 0 || q->generated_tokens < 1)
		return;
	if (__builtin_sub_overflow(o->tokens_at_end, q->prompt_tokens, &cached) ||
	    __builtin_sub_overflow(cached, q->generated_tokens - 1, &cached))
		return;
	q->cached_tokens = cached > 0 ? cached : 0;
}

/* The evaluated rest of a prompt that mostly came from the cache is not the prefill's speed: few tokens, each of which
 * attends to many. A single token is a decode step. */
static bool prompt_counts(const struct open_request *o)
{
	const struct engine_request *q = &o->request;

	if (q->prompt_tokens <= 1)
		return false;
	if (q->cached_tokens >= 0)
		return q->cached_tokens <= q->prompt_tokens;
	return !(o->similarity > 0.5);
}

static void close_request(struct server_requests *r, struct open_request *o)
{
	const struct engine_request *q = &o->request;
	size_t index = (size_t)(o - r->open);

	infer_cached(o);
	if (!isnan(q->prompt_per_s) && !prompt_counts(o))
		r->cached++;
	else
		rate_mean_add(&r->prefill, q->prompt_per_s, q->prompt_ms);
	rate_mean_add(&r->decode, q->generated_per_s, q->generated_ms);
	if (engine_result_add_request(r->result, q, NULL) < 0)
		r->failed = true;
	memmove(o, o + 1, (r->count - index - 1) * sizeof *o);
	r->count--;
}

/* The open request of that slot and task, the newest where one of them is not said. */
static struct open_request *find(struct server_requests *r, int64_t slot, int64_t task)
{
	for (size_t i = r->count; i-- > 0;) {
		const struct engine_request *q = &r->open[i].request;

		if ((slot < 0 || q->slot == slot) && (task < 0 || q->id == task))
			return &r->open[i];
	}
	return NULL;
}

static struct open_request *add(struct server_requests *r, int64_t slot, int64_t task)
{
	struct open_request *o;

	if (r->count == OPEN_REQUESTS_MAX)
		close_request(r, r->open);
	o = &r->open[r->count++];
	*o = (struct open_request){.request = request_unknown, .tokens_at_end = -1, .similarity = NAN};
	o->request.slot = slot;
	o->request.id = task;
	return o;
}

/* The log may begin in the middle: a task that is named is a request, even if its launch was not seen. */
static struct open_request *find_or_add(struct server_requests *r, int64_t slot, int64_t task)
{
	struct open_request *o = find(r, slot, task);

	return o || task < 0 ? o : add(r, slot, task);
}

void server_requests_launched(struct server_requests *r, int64_t t, int64_t slot, int64_t task)
{
	struct open_request *o;

	while ((o = find(r, slot, -1)) != NULL) /* a slot has one task at a time */
		close_request(r, o);
	o = add(r, slot, task);
	o->request.start = t;
	o->similarity = r->similarity;
	r->similarity = NAN;
}

void server_requests_released(struct server_requests *r, int64_t t, int64_t slot, int64_t task, int64_t tokens,
			      bool truncated)
{
	struct open_request *o = find(r, slot, task);

	if (!o || o->released)
		return;
	o->released = true;
	o->tokens_at_end = tokens;
	o->truncated = truncated;
	if (!o->request.end)
		o->request.end = t;
	if (o->timed)
		close_request(r, o);
}

void server_requests_cached(struct server_requests *r, int64_t slot, int64_t task, int64_t cached, bool final)
{
	struct open_request *o = find_or_add(r, slot, task);

	if (!o || cached < 0 || (o->cache_told && !final))
		return;
	o->cache_told = true;
	o->request.cached_tokens = cached;
}

bool server_requests_timing(struct server_requests *r, int64_t t, int64_t slot, int64_t task,
			    const struct printed_time *printed)
{
	struct open_request *o = find_or_add(r, slot, task);

	if (!o)
		return false;
	printed_time_store(printed, &o->request);
	if (printed->kind != PRINTED_TOTAL)
		return true;
	o->timed = true;
	if (!o->request.end)
		o->request.end = t;
	if (!o->request.start && !isnan(printed->ms))
		o->request.start = o->request.end - printed_time_ns(printed->ms);
	if (o->released)
		close_request(r, o);
	return true;
}

void server_requests_end(struct server_requests *r)
{
	while (r->count > 0)
		close_request(r, r->open);
}
