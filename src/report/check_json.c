/* The answer of `assay check` for scripts: docs/check.md has the keys. Unknown figures are null. */
#include "report/check_format.h"

#include "report/json_stream.h"

static void put_text(FILE *out, const char *before, const char *key, const char *value)
{
	json_stream_key(out, before, key);
	if (value)
		json_stream_text(out, value);
	else
		json_stream_raw(out, "null");
}

static void put_bool(FILE *out, const char *before, const char *key, bool value)
{
	json_stream_key(out, before, key);
	json_stream_raw(out, value ? "true" : "false");
}

static void put_budget(FILE *out, const struct check_budget *b)
{
	json_stream_key(out, ",\n ", "budget");
	json_stream_key_real(out, "{", "max_regression", b->max_regression);
	put_bool(out, ", ", "fail_on_new", b->fail_on_new);
	put_bool(out, ", ", "fail_on_missing", b->fail_on_missing);
	json_stream_key_real(out, ", ", "min_total", b->min_total);
	json_stream_raw(out, "}");
}

static void put_counts(FILE *out, const struct check_result *result)
{
	json_stream_key(out, ",\n ", "findings");
	for (enum check_finding f = 0; f < CHECK_FINDINGS; f++)
		json_stream_key_number(out, f ? ", " : "{", check_finding_name(f), result->per_finding[f]);
	json_stream_raw(out, "}");
}

static void put_row(FILE *out, const struct check_row *row)
{
	const struct check_item *i = &row->item;

	put_text(out, "\n  {", "name", i->name);
	put_text(out, ", ", "finding", check_finding_name(row->finding));
	put_bool(out, ", ", "fails", row->fails);
	put_text(out, ", ", "unit", i->unit);
	put_bool(out, ", ", "larger_is_better", i->higher_is_better);
	put_bool(out, ", ", "in_a", i->in_a);
	put_bool(out, ", ", "in_b", i->in_b);
	if (i->in_a)
		json_stream_key_real(out, ", ", "a", i->a);
	else
		put_text(out, ", ", "a", NULL);
	if (i->in_b)
		json_stream_key_real(out, ", ", "b", i->b);
	else
		put_text(out, ", ", "b", NULL);
	json_stream_key_real(out, ", ", "delta", row->delta);
	json_stream_key_real(out, ", ", "pct", row->pct);
	json_stream_key_real(out, ", ", "worse_pct", row->worse_pct);
	json_stream_raw(out, "}");
}

int check_format_json(const struct check_report *r, FILE *out, struct error *err)
{
	(void)err; /* what the stream could not take is told when it is closed */
	put_text(out, "{\n ", "verdict", r->result->failed ? "failed" : "passed");
	put_text(out, ",\n ", "a", r->a);
	put_text(out, ",\n ", "b", r->b);
	put_text(out, ",\n ", "metric", r->metric);
	put_budget(out, &r->result->budget);
	json_stream_key_number(out, ",\n ", "failed", r->result->failed);
	json_stream_key_number(out, ",\n ", "compared", r->result->compared);
	put_counts(out, r->result);
	json_stream_key(out, ",\n ", "rows");
	json_stream_raw(out, "[");
	for (size_t i = 0; i < r->result->count; i++) {
		json_stream_raw(out, i ? "," : "");
		put_row(out, &r->result->rows[i]);
	}
	json_stream_key(out, "],\n ", "notes");
	json_stream_raw(out, "[");
	for (size_t i = 0; i < r->note_count; i++) {
		json_stream_raw(out, i ? ",\n  " : "\n  ");
		json_stream_text(out, r->notes[i]);
	}
	json_stream_raw(out, "]\n}\n");
	return 0;
}
