#include "model/region_query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define TEXT_SHOWN 60    /* characters of a list in an error */
#define RANGES_SHOWN 20u /* in the sentence on missing ranks */

void region_query_init(struct region_query *q)
{
	*q = (struct region_query){0};
}

static void release_patterns(struct pattern **patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pattern_free(patterns[i]);
	free(patterns);
}

void region_query_release(struct region_query *q)
{
	free(q->ranges);
	release_patterns(q->include, q->include_count);
	release_patterns(q->exclude, q->exclude_count);
	region_query_init(q);
}

/* Digits alone, no sign and no blanks: the number, and *at behind it. */
static bool take_rank(const char **at, uint32_t *ret)
{
	uint64_t value = 0;
	const char *c = *at;

	while (*c >= '0' && *c <= '9' && value <= INT32_MAX)
		value = 10 * value + (uint64_t)(*c++ - '0');
	if (c == *at || value > INT32_MAX)
		return false;
	*at = c;
	*ret = (uint32_t)value;
	return true;
}

static int add_range(struct rank_range **ranges, size_t *count, struct rank_range range, struct error *err)
{
	struct rank_range *more = reallocarray(*ranges, *count + 1, sizeof *more);

	if (!more)
		return error_set(err, "out of memory for %zu ranges of ranks", *count + 1);
	*ranges = more;
	more[(*count)++] = range;
	return 0;
}

int region_query_set_ranks(struct region_query *q, const char *text, struct error *err)
{
	CLEANUP(free_cleanup) struct rank_range *ranges = NULL;
	CLEANUP(buf_release) struct buf shown;
	struct rank_range *old = q->ranges;
	const char *at = text;
	size_t count = 0;

	buf_init(&shown);
	utf8_append_line(&shown, text, TEXT_SHOWN);
	for (;;) {
		struct rank_range range;

		if (!take_rank(&at, &range.from))
			return error_set(err, "'%s' is no list of ranks such as 0-3,8", shown.text);
		range.to = range.from;
		if (*at == '-' && (at++, !take_rank(&at, &range.to)))
			return error_set(err, "'%s' is no list of ranks such as 0-3,8", shown.text);
		if (range.to < range.from)
			return error_set(err, "'%s': the range %" PRIu32 "-%" PRIu32 " runs backwards", shown.text,
					 range.from, range.to);
		if (add_range(&ranges, &count, range, err) < 0)
			return -1;
		if (!*at)
			break;
		if (*at++ != ',')
			return error_set(err, "'%s' is no list of ranks such as 0-3,8", shown.text);
	}
	q->ranges = ranges;
	q->range_count = count;
	ranges = old;
	return 0;
}

static int add_pattern(struct pattern ***patterns, size_t *count, const char *expression, struct error *err)
{
	struct pattern **more = reallocarray(*patterns, *count + 1, sizeof *more);

	if (!more)
		return error_set(err, "out of memory for %zu regular expressions", *count + 1);
	*patterns = more;
	if (pattern_new(expression, &more[*count], err) < 0)
		return -1;
	(*count)++;
	return 0;
}

int region_query_include(struct region_query *q, const char *expression, struct error *err)
{
	return add_pattern(&q->include, &q->include_count, expression, err);
}

int region_query_exclude(struct region_query *q, const char *expression, struct error *err)
{
	return add_pattern(&q->exclude, &q->exclude_count, expression, err);
}

bool region_query_takes_rank(const struct region_query *q, uint32_t rank)
{
	for (size_t i = 0; i < q->range_count; i++)
		if (rank >= q->ranges[i].from && rank <= q->ranges[i].to)
			return true;
	return q->range_count == 0;
}

static int match_one(struct pattern *const *patterns, size_t count, const char *name, bool *ret, struct error *err)
{
	*ret = false;
	for (size_t i = 0; i < count && !*ret; i++)
		if (pattern_match(patterns[i], name, ret, err) < 0)
			return -1;
	return 0;
}

int region_query_names(const struct region_query *q, const char *const *names, size_t count, bool *ret,
		       struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		bool included = true, excluded = false;

		if (q->include_count && match_one(q->include, q->include_count, names[i], &included, err) < 0)
			return error_prefix(err, "option '--include'");
		if (included && match_one(q->exclude, q->exclude_count, names[i], &excluded, err) < 0)
			return error_prefix(err, "option '--exclude'");
		ret[i] = included && !excluded;
	}
	return 0;
}

static void put_range(struct buf *out, struct rank_range range, size_t at)
{
	if (at == RANGES_SHOWN)
		buf_puts(out, ", ...");
	if (at >= RANGES_SHOWN)
		return;
	buf_printf(out, "%s%" PRIu32, at ? ", " : "", range.from);
	if (range.to > range.from)
		buf_printf(out, "-%" PRIu32, range.to);
}

/* The parts of `asked` that are not in the file, into `out`; returns how many ranks these are. */
static uint64_t put_missing(struct buf *out, struct rank_range asked, const struct regions *r, size_t *shown)
{
	uint64_t from = asked.from, missing = 0;

	for (size_t i = 0; i <= r->rank_count && from <= asked.to; i++) {
		uint64_t next = i < r->rank_count ? r->ranks[i] : UINT64_MAX;

		if (next < from)
			continue;
		if (next > from) {
			uint64_t to = next - 1 < asked.to ? next - 1 : asked.to;

			put_range(out, (struct rank_range){(uint32_t)from, (uint32_t)to}, (*shown)++);
			missing += to - from + 1;
		}
		from = next == UINT64_MAX ? next : next + 1;
	}
	return missing;
}

static void put_present(struct buf *out, const struct regions *r)
{
	size_t shown = 0;

	for (size_t i = 0, next; i < r->rank_count; i = next) {
		for (next = i + 1; next < r->rank_count && r->ranks[next] == r->ranks[next - 1] + 1;)
			next++;
		put_range(out, (struct rank_range){r->ranks[i], r->ranks[next - 1]}, shown++);
	}
	if (shown == 0)
		buf_puts(out, "none");
}

char *region_query_missing_ranks(const struct region_query *q, const struct regions *r)
{
	CLEANUP(buf_release) struct buf text, list;
	uint64_t missing = 0;
	size_t shown = 0;

	buf_init(&text);
	buf_init(&list);
	for (size_t i = 0; i < q->range_count; i++)
		missing += put_missing(&list, q->ranges[i], r, &shown);
	if (missing == 0)
		return NULL;
	buf_printf(&text, "%s %s %s not in %s (it has ", missing == 1 ? "rank" : "ranks", list.text,
		   missing == 1 ? "is" : "are", r->path ? r->path : "the file");
	put_present(&text, r);
	buf_putc(&text, ')');
	return buf_detach(&text);
}
