/* Any bytes as what a user says of ranks and names: "0-3,8", a regular expression and a name for it. Each is taken or
 * refused with a sentence, and what was taken answers every rank and every name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/region_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void ask_ranks(const char *text)
{
	static const uint32_t looked_at[] = {0, 1, 3, 8, UINT32_MAX - 1, UINT32_MAX};
	struct region_query q;
	struct regions r;
	struct error err = {{0}};

	region_query_init(&q);
	regions_init(&r);
	if (region_query_set_ranks(&q, text, &err) < 0)
		require(strlen(err.text) > 0 && q.range_count == 0);
	for (size_t i = 0; i < q.range_count; i++) {
		require(q.ranges[i].from <= q.ranges[i].to);
		require(region_query_takes_rank(&q, q.ranges[i].from) && region_query_takes_rank(&q, q.ranges[i].to));
	}
	for (size_t i = 0; i < sizeof looked_at / sizeof *looked_at; i++)
		require(region_query_takes_rank(&q, looked_at[i]) || q.range_count > 0);
	require(regions_add_rank(&r, 3, NULL) == 0);
	free(region_query_missing_ranks(&q, &r));
	regions_release(&r);
	region_query_release(&q);
}

/* The expression ends at the first newline; the rest is a name. */
static void ask_names(char *text)
{
	char *name = strchr(text, '\n');
	struct region_query included, excluded;
	struct error err = {{0}};

	if (name)
		*name++ = '\0';
	region_query_init(&included);
	region_query_init(&excluded);
	if (region_query_include(&included, text, &err) < 0) {
		require(strlen(err.text) > 0);
	} else {
		require(region_query_exclude(&excluded, text, &err) == 0);
		const char *const names[] = {name ? name : ""};
		bool in, out;

		/* One that takes too long does so on both sides. */
		if (region_query_names(&included, names, 1, &in, &err) == 0 &&
		    region_query_names(&excluded, names, 1, &out, &err) == 0)
			require(in != out);
	}
	region_query_release(&included);
	region_query_release(&excluded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	ask_ranks(text);
	ask_names(text);
	free(text);
	return 0;
}
