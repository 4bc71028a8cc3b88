/* The result rows of llama-bench, in each form it prints them: Markdown table, json, jsonl, csv, sql.
 *
 * Rows are read as they arrive; columns and fields are found by name, so that builds with more or fewer of them are the
 * same to it. It knows nothing of phases. */
#ifndef ASSAY_ENGINE_BENCH_ROWS_H
#define ASSAY_ENGINE_BENCH_ROWS_H

#include "base/buf.h"
#include "engine/engine.h"

enum bench_form { BENCH_MARKDOWN, BENCH_CSV, BENCH_SQL, BENCH_JSON }; /* later ones say more */

struct bench_row {
	struct engine_test test; /* deviation and repetitions as the row has them: 0 is not yet taken for unknown */
	enum bench_form form;
	int64_t t;
	double average_ns; /* of one repetition; NaN where not printed */
	double samples_ns; /* sum of all repetitions; NaN where not printed */
	uint64_t run;      /* rows of one run of the tool, printed in one form, have the same */
	uint64_t settings; /* of table, csv and sql: the same where all but the test and its figures is */
	int64_t inferred;  /* repetitions, by bench_rows_infer; -1: not known */
};

#define BENCH_ROWS_MAX 10000
#define BENCH_TOGETHER_NS 1000000 /* rows that arrive within this were printed earlier and held up */
#define BENCH_COLUMNS_MAX 128
#define BENCH_CELL_MAX 160

/* Where the columns that matter are; -1: there is no such column. */
struct bench_columns {
	int count, model, test, rate;                                               /* of a Markdown table */
	int n_prompt, n_gen, n_depth, average, rate_csv, deviation, commit, number; /* of csv; model as above */
	int test_time, deviation_ns;
};

struct bench_rows {
	struct bench_row *items;
	size_t count, room;
	uint64_t lost; /* past BENCH_ROWS_MAX */
	uint64_t known, runs;
	char build[64];
	bool ended;  /* the tool's own last line was seen after the last row */
	bool failed; /* out of memory */

	struct bench_columns table, csv; /* count 0: not inside one */
	int table_pipes;                 /* how many '|' a log prefix puts before each row */
	struct buf object;               /* the members so far of a json object that is spread over lines */
	bool in_object, in_array;        /* in_array: between such objects */
	uint64_t object_lines;
	int64_t object_t; /* when its last member arrived */
};

void bench_rows_init(struct bench_rows *r);
void bench_rows_release(struct bench_rows *r);

/* A line that may begin something: a table, a list of columns, an object. */
void bench_rows_line(struct bench_rows *r, const struct log_line *line);

/* True while any other line may be part of what has begun; it then goes to bench_rows_rest. */
bool bench_rows_attentive(const struct bench_rows *r);
void bench_rows_rest(struct bench_rows *r, const struct log_line *line);

/* No more lines: an object whose closing brace never came counts if it is whole otherwise. */
void bench_rows_end(struct bench_rows *r);

/* How long one repetition took, by what the row says; NaN where it does not. */
double bench_row_repetition_ns(const struct bench_row *row);

/* Whether the row's measured part can be told from its arrival: it fits between `from` and that, give or take what the
 * tool rounds. With a depth, unmeasured runs lie between the measured ones. False for NaN. */
bool bench_row_fits(const struct bench_row *row, double measured_ns, int64_t from);

/* Sets `inferred` of every row, where the times between the rows of a run tell. The first began at `start` or later. */
void bench_rows_infer(struct bench_rows *r, int64_t start);

/* For the readers of the forms. Each says whether the line is one of its own. */

struct bench_row bench_row_blank(enum bench_form form, int64_t t);

/* Takes over a row whose test's numbers, rate and deviation are set. */
void bench_rows_add(struct bench_rows *r, struct bench_row row);

/* Goes on with a row's `settings` (0 at first) by one more cell. */
void bench_row_settings(struct bench_row *row, const char *cell);

/* Cuts at a character where it is too long. */
void bench_copy_text(char *ret, size_t size, const char *text);

bool bench_csv_header(struct bench_rows *r, const struct log_line *line);
bool bench_csv_row(struct bench_rows *r, const struct log_line *line);
bool bench_sql_row(struct bench_rows *r, const struct log_line *line);

/* One object, or the whole array, on one line. */
bool bench_json_line(struct bench_rows *r, const struct log_line *line);

/* An object that is spread over lines: opened where the line holds one of its first members; then each line is a
 * member, a line of an array that was printed one value a line, or the closing brace, or comes from elsewhere. */
void bench_object_open(struct bench_rows *r, const struct log_line *line);
void bench_object_line(struct bench_rows *r, const struct log_line *line);
void bench_object_close(struct bench_rows *r); /* harmless where none is open */

/* The end of the array of objects, on a line of its own. */
bool bench_array_end(const struct log_line *line);

#endif
