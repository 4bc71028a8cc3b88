/* What changed per region, for scripts: docs/regions.md has the keys. Unknown figures are null. */
#include "report/json_stream.h"
#include "report/region_reports.h"

#include <math.h>

static void put_key(FILE *out, const char *before, const char *key)
{
	json_stream_raw(out, before);
	json_stream_text(out, key);
	json_stream_raw(out, ": ");
}

static void put_real(FILE *out, const char *before, const char *key, double value)
{
	put_key(out, before, key);
	json_stream_real(out, value);
}

static void put_count(FILE *out, const char *before, const char *key, uint64_t value)
{
	put_key(out, before, key);
	json_stream_number(out, value);
}

static void put_row(FILE *out, const struct region_diff *d, const struct region_diff_row *row)
{
	put_key(out, "\n  {", "name");
	json_stream_text(out, row->name);
	put_real(out, ", ", "a", row->in_a ? row->a : NAN);
	put_real(out, ", ", "b", row->in_b ? row->b : NAN);
	put_real(out, ", ", "delta", row->delta);
	put_real(out, ", ", "pct", row->pct);
	put_count(out, ", ", "dropped_a", row->dropped_a);
	put_count(out, ", ", "dropped_b", row->dropped_b);
	put_key(out, ", ", "approximate");
	json_stream_raw(out, row->approximate ? "true" : "false");
	if (d->judged) {
		put_count(out, ", ", "runs_a", row->runs_a);
		put_count(out, ", ", "runs_b", row->runs_b);
		put_key(out, ", ", "verdict");
		json_stream_text(out, region_verdict_name(row->verdict));
		put_real(out, ", ", "low_pct", row->low);
		put_real(out, ", ", "high_pct", row->high);
		put_real(out, ", ", "p_beyond_margin_adjusted", row->p_adjusted);
	}
	json_stream_raw(out, "}");
}

int region_diff_json(const struct region_diff *d, FILE *out, struct error *err)
{
	(void)err; /* what the stream could not take is told when it is closed */
	put_key(out, "{\n ", "metric");
	json_stream_text(out, region_metric_name(d->options.metric));
	put_key(out, ",\n ", "unit");
	json_stream_text(out, region_metric_unit(d->options.metric));
	put_count(out, ",\n ", "runs_a", d->runs_a);
	put_count(out, ",\n ", "runs_b", d->runs_b);
	put_real(out, ",\n ", "threshold", d->options.threshold);
	put_count(out, ",\n ", "hidden", d->hidden);
	if (d->judged) {
		put_key(out, ",\n ", "judged_by");
		json_stream_text(out, d->paired ? "pairs" : "ranks");
		put_count(out, ",\n ", "pairs", d->pairs);
		put_real(out, ",\n ", "confidence", d->options.confidence);
		put_real(out, ",\n ", "margin_pct", d->options.margin * 100);
		put_count(out, ",\n ", "claims", d->claims);
	}
	put_key(out, ",\n ", "rows");
	json_stream_raw(out, "[");
	for (size_t i = 0; i < d->count; i++) {
		json_stream_raw(out, i ? "," : "");
		put_row(out, d, &d->rows[i]);
	}
	json_stream_raw(out, "]\n}\n");
	return 0;
}
