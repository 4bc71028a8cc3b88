/* llama-bench's csv and sql: columns by name, values by position. */
#include "engine/bench_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "engine/text.h"

/* The field at *at, in double or single quotes (a quote inside is doubled) or bare; *at then is at what ended it: a
 * comma, ')' or the line's end. */
static void next_field(const char **at, char cell[BENCH_CELL_MAX])
{
	const char *p = *at + strspn(*at, " ");
	char quote = *p == '"' || *p == '\'' ? *p++ : '\0';
	size_t length = 0;

	for (; *p; p++) {
		if (quote ? *p == quote : *p == ',' || *p == ')') {
			if (!quote || p[1] != quote)
				break;
			p++;
		}
		if (length < BENCH_CELL_MAX - 1)
			cell[length++] = *p;
	}
	if (quote && *p)
		p++;
	cell[length] = '\0';
	*at = p + strspn(p, " ");
}

static void note_column(struct bench_columns *c, const char *name)
{
	struct {
		const char *name;
		int *column;
	} wanted[] = {
		{"model_type", &c->model},    {"n_prompt", &c->n_prompt},   {"n_gen", &c->n_gen},
		{"n_depth", &c->n_depth},     {"avg_ns", &c->average},      {"avg_ts", &c->rate_csv},
		{"stddev_ts", &c->deviation}, {"build_commit", &c->commit}, {"build_number", &c->number},
		{"test_time", &c->test_time}, {"stddev_ns", &c->deviation_ns},
	};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (strcmp(name, wanted[i].name) == 0)
			*wanted[i].column = c->count;
	c->count++;
}

/* Column names up to the line's end or a ')'; returns where they ended, or NULL where these are not llama-bench's. */
static const char *read_columns(const char *at, struct bench_columns *ret)
{
	char cell[BENCH_CELL_MAX];

	*ret = (struct bench_columns){
		.model = -1,
		.n_prompt = -1,
		.n_gen = -1,
		.n_depth = -1,
		.average = -1,
		.rate_csv = -1,
		.deviation = -1,
		.commit = -1,
		.number = -1,
		.test_time = -1,
		.deviation_ns = -1,
	};
	while (ret->count < BENCH_COLUMNS_MAX) {
		next_field(&at, cell);
		note_column(ret, cell);
		if (*at != ',')
			break;
		at++;
	}
	return ret->n_prompt >= 0 && ret->n_gen >= 0 && ret->rate_csv >= 0 ? at : NULL;
}

/* Whether a column is of the test or its figures: all others are settings. */
static bool figure(const struct bench_columns *c, int column)
{
	const int figures[] = {c->n_prompt,  c->n_gen,        c->n_depth,  c->test_time,
			       c->average,   c->deviation_ns, c->rate_csv, c->deviation};

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		if (column == figures[i])
			return true;
	return false;
}

static bool read_values(struct bench_rows *r, const struct bench_columns *c, const char *at, struct bench_row row)
{
	char cell[BENCH_CELL_MAX], commit[24] = "", number[24] = "";
	int i = 0, got = 0;

	row.test.n_depth = 0;
	for (;; at++, i++) {
		next_field(&at, cell);
		if (!figure(c, i))
			bench_row_settings(&row, cell);
		if (i == c->model)
			bench_copy_text(row.test.model, sizeof row.test.model, cell);
		else if (i == c->n_prompt)
			got += parse_i64(cell, &row.test.n_prompt);
		else if (i == c->n_gen)
			got += parse_i64(cell, &row.test.n_gen);
		else if (i == c->n_depth)
			parse_i64(cell, &row.test.n_depth);
		else if (i == c->average)
			parse_double(cell, &row.average_ns);
		else if (i == c->rate_csv)
			got += parse_double(cell, &row.test.tokens_per_s);
		else if (i == c->deviation)
			parse_double(cell, &row.test.deviation);
		else if (i == c->commit)
			bench_copy_text(commit, sizeof commit, cell);
		else if (i == c->number)
			bench_copy_text(number, sizeof number, cell);
		if (*at != ',')
			break;
	}
	if (i + 1 != c->count || got != 3)
		return false;
	if (commit[0])
		snprintf(r->build, sizeof r->build, "%s (%s)", commit, number);
	bench_rows_add(r, row);
	return true;
}

/* The names begin after a log prefix, if there is one. */
bool bench_csv_header(struct bench_rows *r, const struct log_line *line)
{
	struct bench_columns c;
	const char *at = line_after(line, "avg_ts,stddev_ts");

	if (!at)
		return false;
	at -= strlen("avg_ts,stddev_ts");
	while (at > line->text && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == ','))
		at--;
	if (!read_columns(at, &c))
		return false;
	r->csv = c;
	r->runs++;
	return true;
}

bool bench_csv_row(struct bench_rows *r, const struct log_line *line)
{
	const char *quoted = strchr(line->text, '"');

	return memchr(line->text, ',', line->length) &&
	       read_values(r, &r->csv, quoted ? quoted : line->text, bench_row_blank(BENCH_CSV, line->t));
}

bool bench_sql_row(struct bench_rows *r, const struct log_line *line)
{
	struct bench_columns c;
	const char *at = line_after(line, "INSERT INTO llama_bench (");

	if (!at)
		at = line_after(line, "INSERT INTO test ("); /* the table's name in early builds */
	if (!at && line_has(line, "CREATE TABLE IF NOT EXISTS ")) {
		r->runs++;
		return line_has(line, "CREATE TABLE IF NOT EXISTS llama_bench");
	}
	if (!at)
		return false;
	at = read_columns(at, &c);
	return at && text_skip(&at, ")") && text_skip(&at, "VALUES") && text_skip(&at, "(") &&
	       read_values(r, &c, at, bench_row_blank(BENCH_SQL, line->t));
}
