#include "engine/bench_rows.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/text.h"

void bench_rows_init(struct bench_rows *r)
{
	*r = (struct bench_rows){0};
	buf_init(&r->object);
}

void bench_rows_release(struct bench_rows *r)
{
	free(r->items);
	buf_release(&r->object);
}

bool bench_rows_attentive(const struct bench_rows *r)
{
	return r->table.count > 0 || r->csv.count > 0 || r->in_object || r->in_array;
}

static double positive_or_nan(double value)
{
	return isfinite(value) && value > 0 ? value : NAN;
}

void bench_copy_text(char *ret, size_t size, const char *text)
{
	size_t length = utf8_cut(text, strlen(text), size - 1);

	memcpy(ret, text, length);
	ret[length] = '\0';
}

/* The name that llama-bench's table gives a test: "pp64", "tg16 @ d32", "pp64+tg16". */
static void name_test(struct engine_test *test)
{
	struct buf name;

	buf_init(&name);
	if (test->n_prompt > 0)
		buf_printf(&name, "pp%" PRId64, test->n_prompt);
	if (test->n_gen > 0)
		buf_printf(&name, "%stg%" PRId64, name.length ? "+" : "", test->n_gen);
	if (test->n_depth > 0)
		buf_printf(&name, " @ d%" PRId64, test->n_depth);
	snprintf(test->name, sizeof test->name, "%s", name.text);
	buf_release(&name);
}

/* The same test printed in a second form (-o md -oe jsonl): rates differ by their rounding only. */
static struct bench_row *twin(struct bench_rows *r, const struct bench_row *row)
{
	struct bench_row *last = r->count ? &r->items[r->count - 1] : NULL;

	if (!last || last->form == row->form || strcmp(last->test.name, row->test.name) != 0)
		return NULL;
	if (!(fabs(last->test.tokens_per_s - row->test.tokens_per_s) <= 0.00501))
		return NULL;
	return last;
}

void bench_rows_add(struct bench_rows *r, struct bench_row row)
{
	struct bench_row *same;

	if (row.test.n_prompt <= 0 && row.test.n_gen <= 0)
		return;
	name_test(&row.test);
	row.test.tokens_per_s = positive_or_nan(row.test.tokens_per_s);
	row.average_ns = positive_or_nan(row.average_ns);
	row.samples_ns = positive_or_nan(row.samples_ns);
	same = twin(r, &row);
	if (same) {
		row.t = same->t;
		row.run = same->run;
		if (row.form > same->form)
			*same = row;
		return;
	}
	r->ended = false;
	if (r->count > 0 && r->items[r->count - 1].form != row.form)
		r->runs++;
	row.run = r->runs;
	if (r->count >= BENCH_ROWS_MAX) {
		r->lost++;
		return;
	}
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 8;
		struct bench_row *items = reallocarray(r->items, room, sizeof *items);

		if (!items) {
			r->failed = true;
			return;
		}
		r->items = items;
		r->room = room;
	}
	r->items[r->count++] = row;
}

struct bench_row bench_row_blank(enum bench_form form, int64_t t)
{
	return (struct bench_row){
		.test = {.n_prompt = -1, .n_gen = -1, .tokens_per_s = NAN, .deviation = NAN, .repetitions = -1},
		.form = form,
		.t = t,
		.average_ns = NAN,
		.samples_ns = NAN,
		.inferred = -1,
	};
}

void bench_row_settings(struct bench_row *row, const char *cell)
{
	do /* FNV-1a, each cell with its zero */
		row->settings = (row->settings ^ (unsigned char)*cell) * UINT64_C(0x100000001b3);
	while (*cell++);
}

/* Copies the next cell of a row without blanks around it and moves *at behind its closing '|'. False at the end. */
static bool next_cell(const char **at, char cell[BENCH_CELL_MAX])
{
	static const char *const ends[] = {"|", NULL};
	const char *end = strchr(*at, '|');

	if (!end)
		return false;
	text_copy(cell, BENCH_CELL_MAX, *at, ends);
	*at = end + 1;
	return true;
}

static const char *skip_pipes(const char *at, int count)
{
	while (at && count-- >= 0) {
		at = strchr(at, '|');
		at = at ? at + 1 : NULL;
	}
	return at;
}

static bool table_header(struct bench_rows *r, const struct log_line *line)
{
	struct bench_columns c = {.model = -1, .test = -1, .rate = -1};
	const char *start = memmem(line->text, line->length, "| model  ", 9), *at = start;
	char cell[BENCH_CELL_MAX];
	bool backend = false;
	int pipes = 0;

	if (!start)
		return false;
	for (at++; c.count < BENCH_COLUMNS_MAX && next_cell(&at, cell); c.count++) {
		if (strcmp(cell, "model") == 0)
			c.model = c.count;
		else if (strcmp(cell, "test") == 0)
			c.test = c.count;
		else if (strcmp(cell, "t/s") == 0)
			c.rate = c.count;
		else if (strcmp(cell, "backend") == 0)
			backend = true;
	}
	if (c.test < 0 || c.rate < 0 || !backend)
		return false;
	for (const char *p = line->text; p < start; p++)
		pipes += *p == '|';
	r->table = c;
	r->table_pipes = pipes;
	r->runs++;
	return true;
}

/* "pp64", "pp 512", "tg16 @ d32", "pp64+tg16", "tg64@pp1024" (a fork's way to write a depth). */
static bool read_test_cell(const char *cell, struct engine_test *test)
{
	const char *at = cell;

	test->n_prompt = test->n_gen = test->n_depth = 0;
	if (text_skip(&at, "pp") && !text_integer(&at, &test->n_prompt))
		return false;
	if (test->n_prompt)
		text_skip(&at, "+");
	if (text_skip(&at, "tg") && !text_integer(&at, &test->n_gen))
		return false;
	if (text_skip(&at, "@") &&
	    ((!text_skip(&at, "d") && !text_skip(&at, "pp")) || !text_integer(&at, &test->n_depth)))
		return false;
	return *at == '\0' && at != cell;
}

/* The sign between a rate and its deviation, as UTF-8 (once or twice encoded), Latin-1, or what is left of it in a
 * locale that has none. */
static void skip_plus_minus(const char **at)
{
	static const char *const signs[] = {"\xc2\xb1", "\xc3\x82\xc2\xb1", "\xb1", "\xef\xbf\xbd\xef\xbf\xbd",
					    "\xef\xbf\xbd", "??", "?", "+/-", "+-"};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (text_skip(at, signs[i]))
			return;
}

static bool has_comma(const char *from, const char *to)
{
	return memchr(from, ',', (size_t)(to - from)) != NULL;
}

/* "430.82 ± 1.16", "430.82". A cell that holds anything else, such as thousands set apart or an exponent, has no value:
 * half a number is a wrong one. */
static bool read_rate_cell(const char *cell, struct engine_test *test)
{
	const char *at = cell, *second;
	double rate, deviation = NAN;
	bool comma, whole;

	if (!text_number(&at, &rate))
		return false;
	comma = has_comma(cell, at);
	skip_plus_minus(&at);
	second = at += strspn(at, " \t");
	if (*at && *at != '-' && *at != '+')
		text_number(&at, &deviation);
	whole = at[strspn(at, " \t")] == '\0';
	/* Both are printed alike, so that one with a comma beside one with a point is none of a locale. */
	whole &= second == at || isnan(deviation) || comma == has_comma(second, at);
	test->tokens_per_s = whole && isfinite(rate) ? rate : NAN;
	test->deviation = whole && isfinite(rate) && isfinite(deviation) ? deviation : NAN;
	return true;
}

static bool table_rule(const char *at)
{
	return at && at[strspn(at, "-:| ")] == '\0' && strstr(at, "---");
}

static bool table_row(struct bench_rows *r, const struct log_line *line)
{
	struct bench_row row = bench_row_blank(BENCH_MARKDOWN, line->t);
	const char *at = skip_pipes(line->text, r->table_pipes);
	bool test = false, rate = false;
	char cell[BENCH_CELL_MAX];

	if (table_rule(at))
		return true;
	for (int i = 0; at && i < r->table.count && next_cell(&at, cell); i++) {
		if (i == r->table.model)
			bench_copy_text(row.test.model, sizeof row.test.model, cell);
		if (i == r->table.test)
			test = read_test_cell(cell, &row.test);
		else if (i == r->table.rate)
			rate = read_rate_cell(cell, &row.test);
		else
			bench_row_settings(&row, cell);
	}
	if (test && rate)
		bench_rows_add(r, row);
	return test && rate;
}

static bool trailer(struct bench_rows *r, const struct log_line *line)
{
	static const char *const ends[] = {NULL};
	const char *at = line_after(line, "build: ");

	if (!at || !strchr(at, '('))
		return false;
	text_copy(r->build, sizeof r->build, at, ends);
	r->ended = r->count > 0;
	return true;
}

void bench_rows_rest(struct bench_rows *r, const struct log_line *line)
{
	if (r->in_object) {
		bench_object_line(r, line);
	} else if (r->in_array && bench_array_end(line)) {
		r->in_array = false;
		r->ended = true;
		r->known++;
	} else if (r->table.count > 0 && trailer(r, line)) {
		r->table.count = 0;
		r->known++;
	} else {
		r->known += (r->table.count > 0 && table_row(r, line)) || (r->csv.count > 0 && bench_csv_row(r, line));
	}
}

void bench_rows_line(struct bench_rows *r, const struct log_line *line)
{
	if (table_header(r, line) || bench_csv_header(r, line) || bench_sql_row(r, line) || bench_json_line(r, line) ||
	    line_has(line, "llama_bench: error: ")) {
		bench_object_close(r); /* its own end is lost where another run begins */
		r->known++;
		return;
	}
	if (!r->in_object)
		bench_object_open(r, line);
	bench_rows_rest(r, line);
}

void bench_rows_end(struct bench_rows *r)
{
	bench_object_close(r);
}
