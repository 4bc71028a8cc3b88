#include "base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define EXPRESSION_MAX 10000u /* bytes */
#define EXPRESSION_SHOWN 60   /* characters of it in an error */
/* Some ten milliseconds of trying at most, and memory for the points to come back to. */
#define MATCH_STEPS 1000000u
#define MATCH_HEAP_KIB 20000u

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	char *expression;
};

/* Like Python's re on text: characters, not bytes, and \w and \d of all scripts. Names that are not UTF-8 are searched
 * where they are. */
#define OPTIONS (PCRE2_ANCHORED | PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C)

static int refuse(const char *expression, int code, size_t offset, struct error *err)
{
	CLEANUP(buf_release) struct buf shown;
	PCRE2_UCHAR reason[256] = "";

	buf_init(&shown);
	utf8_append_line(&shown, expression, EXPRESSION_SHOWN);
	pcre2_get_error_message(code, reason, sizeof reason);
	return error_set(err, "'%s' is no regular expression: %s, at position %zu", shown.text, (const char *)reason,
			 offset);
}

int pattern_new(const char *expression, struct pattern **ret, struct error *err)
{
	size_t length = strlen(expression), offset = 0;
	struct pattern *p;
	int code = 0;

	if (length > EXPRESSION_MAX)
		return error_set(err, "a regular expression of %zu bytes is too long: %u are allowed", length,
				 EXPRESSION_MAX);
	p = calloc(1, sizeof *p);
	if (!p)
		return error_set(err, "out of memory for a regular expression");
	p->code = pcre2_compile((PCRE2_SPTR)expression, length, OPTIONS, &code, &offset, NULL);
	if (!p->code) {
		pattern_free(p);
		return refuse(expression, code, offset, err);
	}
	p->limits = pcre2_match_context_create(NULL);
	p->expression = strdup(expression);
	if (!p->limits || !p->expression) {
		pattern_free(p);
		return error_set(err, "out of memory for a regular expression");
	}
	pcre2_set_match_limit(p->limits, MATCH_STEPS);
	pcre2_set_depth_limit(p->limits, MATCH_STEPS);
	pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
	*ret = p;
	return 0;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_code_free(p->code);
	free(p->expression);
	free(p);
}

int pattern_match(const struct pattern *p, const char *text, bool *ret, struct error *err)
{
	pcre2_match_data *found = pcre2_match_data_create(1, NULL);
	CLEANUP(buf_release) struct buf shown, where;
	int got = found ? pcre2_match(p->code, (PCRE2_SPTR)text, strlen(text), 0, 0, found, p->limits)
			: PCRE2_ERROR_NOMEMORY;

	buf_init(&shown);
	buf_init(&where);
	pcre2_match_data_free(found);
	*ret = got >= 0;
	if (got >= 0 || got == PCRE2_ERROR_NOMATCH)
		return 0;
	utf8_append_line(&shown, p->expression, EXPRESSION_SHOWN);
	utf8_append_line(&where, text, EXPRESSION_SHOWN);
	return error_set(err, "'%s' takes too long to be matched with '%s': a simpler expression is needed", shown.text,
			 where.text);
}
