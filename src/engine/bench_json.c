/* llama-bench's json and jsonl: whole objects on one line, or one that is spread over lines and collected until its
 * closing brace. Lines of other streams may come in between. */
#include "engine/bench_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "engine/text.h"

#define OBJECT_MAX (1u << 20) /* bytes; a row of 1,000 repetitions has some 30,000 */

static int64_t count_member(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *member = json_object_get(object, key);

	return json_is_integer(member) ? json_integer_value(member) : fallback;
}

static double sample_ns(const json_t *sample)
{
	return json_is_number(sample) ? json_number_value(sample) : NAN;
}

/* A row from the object at the start of the text; *used is set to its length. */
static bool json_row(struct bench_rows *r, const char *text, size_t length, int64_t t, size_t *used)
{
	json_error_t position;
	CLEANUP(json_cleanup) json_t *root = json_loadb(text, length, JSON_DISABLE_EOF_CHECK, &position);
	struct bench_row row = bench_row_blank(BENCH_JSON, t);
	const json_t *samples = json_object_get(root, "samples_ns");
	const char *commit = json_get_text(root, "build_commit", NULL);

	if (!json_is_object(root) || !json_is_number(json_object_get(root, "avg_ts")))
		return false;
	*used = (size_t)position.position;
	row.test.n_prompt = count_member(root, "n_prompt", -1);
	row.test.n_gen = count_member(root, "n_gen", -1);
	row.test.n_depth = count_member(root, "n_depth", 0);
	if (row.test.n_prompt < 0 || row.test.n_gen < 0)
		return false;
	row.test.tokens_per_s = json_get_number(root, "avg_ts", NAN);
	row.test.deviation = json_get_number(root, "stddev_ts", NAN);
	row.average_ns = json_get_number(root, "avg_ns", NAN);
	bench_copy_text(row.test.model, sizeof row.test.model, json_get_text(root, "model_type", ""));
	if (json_array_size(samples) > 0) {
		row.test.repetitions = (int64_t)json_array_size(samples);
		row.samples_ns = 0;
		for (size_t i = 0; i < json_array_size(samples); i++)
			row.samples_ns += sample_ns(json_array_get(samples, i));
	}
	if (commit)
		snprintf(r->build, sizeof r->build, "%.20s (%" PRId64 ")", commit,
			 count_member(root, "build_number", 0));
	bench_rows_add(r, row);
	return true;
}

void bench_object_close(struct bench_rows *r)
{
	size_t used;

	if (!r->in_object)
		return;
	buf_puts(&r->object, "}");
	if (r->object.failed)
		r->failed = true;
	else if (json_row(r, r->object.text, r->object.length, r->object_t, &used))
		r->known += r->object_lines;
	r->in_object = false;
	r->in_array = true;
}

/* `"key": ...` from its first quote, whatever prefix the log gave the line; NULL where the line is no member. */
static const char *member_start(const struct log_line *line)
{
	const char *start = strchr(line->text, '"');
	size_t key = start ? strspn(start + 1, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0;

	return key > 0 && strncmp(start + 1 + key, "\":", 2) == 0 ? start : NULL;
}

/* Whether a brace is all there is, but for a log prefix before it and a comma or bracket behind it. */
static bool ends_with(const struct log_line *line, char brace)
{
	const char *at = strrchr(line->text, brace);

	return at && at[1 + strspn(at + 1, " \t,]")] == '\0' && !strchr(line->text, '"');
}

void bench_object_line(struct bench_rows *r, const struct log_line *line)
{
	const char *member = member_start(line);
	const char *at = line->text + strspn(line->text, " \t");

	if (!member && *at && at[strspn(at, "0123456789.,eE+- \t]")] == '\0')
		member = at;
	if (member && !line->cut) {
		buf_puts(&r->object, member);
		buf_putc(&r->object, '\n');
		r->object_t = line->t;
		r->object_lines++;
	} else if (ends_with(line, '}') || ends_with(line, '{')) { /* the next one begins: this one's end is lost */
		bench_object_close(r);
	}
	if (r->object.length > OBJECT_MAX || line->cut)
		r->in_object = false;
}

bool bench_json_line(struct bench_rows *r, const struct log_line *line)
{
	const char *end = line->text + line->length, *brace = memchr(line->text, '{', line->length);
	bool any = false;
	size_t used;

	if (!brace || !line_has(line, "\"avg_ts\""))
		return false;
	bench_object_close(r);
	while (brace && json_row(r, brace, (size_t)(end - brace), line->t, &used)) {
		any = true;
		brace += used;
		brace = memchr(brace, '{', (size_t)(end - brace));
	}
	return any;
}

void bench_object_open(struct bench_rows *r, const struct log_line *line)
{
	static const char *const first[] = {
		"\"build_commit\":", "\"model_filename\":", "\"model_type\":", "\"n_prompt\":",
		"\"n_gen\":",        "\"n_depth\":",        "\"avg_ts\":"};

	for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
		if (line_has(line, first[i]) && !memchr(line->text, '{', line->length)) {
			buf_clear(&r->object);
			buf_puts(&r->object, "{");
			r->in_object = true;
			r->object_lines = 0;
			r->object_t = line->t;
			return;
		}
	}
}

bool bench_array_end(const struct log_line *line)
{
	const char *at = strrchr(line->text, ']');

	return at && at[1 + strspn(at + 1, " \t")] == '\0' && (at == line->text || at[-1] == ' ' || at[-1] == ':');
}
