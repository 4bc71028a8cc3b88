#include "model/engine_result.h"

#include <math.h>
#include <stdlib.h>

#define REQUESTS_MAX 10000

void engine_result_init(struct engine_result *r)
{
	*r = (struct engine_result){
		.prefill_tokens_per_s = NAN,
		.decode_tokens_per_s = NAN,
		.prefill_deviation = NAN,
		.decode_deviation = NAN,
	};
	marks_init(&r->marks);
	warnings_init(&r->warnings);
}

void engine_result_release(struct engine_result *r)
{
	marks_release(&r->marks);
	warnings_release(&r->warnings);
	free(r->tests);
	free(r->requests);
	engine_result_init(r);
}

int engine_result_add_test(struct engine_result *r, const struct engine_test *test, struct error *err)
{
	if (r->test_count == r->test_room) {
		size_t room = r->test_room ? 2 * r->test_room : 8;
		struct engine_test *tests = reallocarray(r->tests, room, sizeof *tests);

		if (!tests)
			return error_set(err, "out of memory for %zu tests of an engine", room);
		r->tests = tests;
		r->test_room = room;
	}
	r->tests[r->test_count++] = *test;
	return 0;
}

int engine_result_add_request(struct engine_result *r, const struct engine_request *request, struct error *err)
{
	if (r->request_count >= REQUESTS_MAX) {
		r->requests_dropped++;
		return 0;
	}
	if (r->request_count == r->request_room) {
		size_t room = r->request_room ? 2 * r->request_room : 16;
		struct engine_request *requests = reallocarray(r->requests, room, sizeof *requests);

		if (!requests)
			return error_set(err, "out of memory for %zu requests of an engine", room);
		r->requests = requests;
		r->request_room = room;
	}
	r->requests[r->request_count++] = *request;
	return 0;
}
