/* The requests of llama-server while they are under way, and what they add up to.
 *
 * A request is launched, timed and released, in any order after the first; one whose launch was not seen is known by
 * its timings. Which requests count for the prefill is decided here. Lines and their wording are not known here. */
#ifndef ASSAY_ENGINE_SERVER_REQUESTS_H
#define ASSAY_ENGINE_SERVER_REQUESTS_H

#include "engine/engine.h"
#include "engine/printed_time.h"

#define OPEN_REQUESTS_MAX 1024 /* beyond that the oldest is taken for ended */

struct open_request {
	struct engine_request request;
	bool timed, released;
	bool cache_told;       /* a line said outright how much was cached */
	bool truncated;        /* tokens_at_end tells nothing then */
	int64_t tokens_at_end; /* in the slot when it was released; -1: not said */
	double similarity;     /* of the slot's old prompt to this one, 0..1; NaN: not said */
};

struct server_requests {
	struct engine_result *result; /* borrowed: where ended requests go */
	struct open_request *open;
	size_t count;
	double similarity; /* of the slot that was selected last, for the request launched next; NaN: not said */
	struct rate_mean prefill, decode;
	uint64_t cached; /* prompts that were left out of the prefill */
	bool failed;     /* out of memory */
};

/* -1 without memory. */
int server_requests_init(struct server_requests *r, struct engine_result *result);
void server_requests_release(struct server_requests *r);

/* slot and task may be -1 where a line does not say them. */
void server_requests_launched(struct server_requests *r, int64_t t, int64_t slot, int64_t task);
void server_requests_released(struct server_requests *r, int64_t t, int64_t slot, int64_t task, int64_t tokens,
			      bool truncated);

/* How many tokens of the prompt came from the cache. Only the first word on that counts, unless it is `final`. */
void server_requests_cached(struct server_requests *r, int64_t slot, int64_t task, int64_t cached, bool final);

/* Returns false where it can be no request's. */
bool server_requests_timing(struct server_requests *r, int64_t t, int64_t slot, int64_t task,
			    const struct printed_time *printed);

/* No more lines: those still under way end here. */
void server_requests_end(struct server_requests *r);

#endif
