/* Any bytes, in any chunks, through a splitter and all parsers: what comes out must keep its promises. The first bytes
 * of an input say how it is cut, the rest is the log. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/lines.h"
#include "model/phase.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void each(void *context, const struct log_line *line)
{
	require(line->length <= LOG_LINE_MAX && line->text[line->length] == '\0');
	engine_set_line(context, line);
}

static void check(const struct engine_result *r, const struct engine_context *c)
{
	int64_t t = c->start;

	require(!(r->prefill_tokens_per_s <= 0) && !(r->decode_tokens_per_s <= 0));
	require(!(r->prefill_deviation < 0) && !(r->decode_deviation < 0));
	for (size_t i = 0; i < r->marks.count; i++) {
		require(r->marks.items[i].t >= t && r->marks.items[i].t <= c->end);
		t = r->marks.items[i].t;
	}
	for (size_t i = 0; i < r->test_count; i++)
		require(r->tests[i].name[0] != '\0' && !(r->tests[i].tokens_per_s <= 0));
	require(r->request_count <= 10000);
	require(r->known > 0 || (r->marks.count == 0 && r->test_count == 0 && r->request_count == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char llama_bench[] = "llama-bench", option[] = "-r", count[] = "2";
	char *argv[] = {llama_bench, option, count, NULL};
	struct engine_context context = {.argv = argv, .start = 1000, .end = 1000 + INT64_C(60000000000)};
	struct engine_set *set;
	struct line_splitter *splitters[2];
	struct engine_result result;
	size_t chunk, at = 2;
	int64_t t = context.start, step;

	if (size < 2)
		return 0;
	if (data[0] & 1)
		context.argv = NULL;
	chunk = (size_t)(data[0] >> 1) + 1;
	step = (int64_t)data[1] * 1000000;
	set = engine_set_new("auto", &context);
	require(set != NULL);
	for (int i = 0; i < 2; i++)
		require((splitters[i] = line_splitter_new(i, each, set)) != NULL);
	for (size_t i = 0; at < size; i++, t += step) {
		size_t length = size - at < chunk ? size - at : chunk;

		/* now and then a piece comes by the other stream */
		line_splitter_feed(splitters[i % 16 == 15], t, (const char *)data + at, length);
		at += length;
	}
	for (int i = 0; i < 2; i++)
		line_splitter_end(splitters[i]);
	engine_result_init(&result);
	require(engine_set_finish(set, &result, NULL) == 0);
	check(&result, &context);
	engine_result_release(&result);
	for (int i = 0; i < 2; i++)
		line_splitter_free(splitters[i]);
	engine_set_free(set);
	return 0;
}
