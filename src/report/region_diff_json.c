/* What changed per region, for scripts: docs/regions.md has the keys. Unknown figures are null. */
#include "report/json_stream.h"
#include "report/region_reports.h"

#include <math.h>

static void put_row(FILE *out, const struct region_diff *d, const struct region_diff_row *row)
{
	json_stream_key(out, "\n  {", "name");
	json_stream_text(out, row->name);
	json_stream_key_real(out, ", ", "a", row->in_a ? row->a : NAN);
	json_stream_key_real(out, ", ", "b", row->in_b ? row->b : NAN);
	json_stream_key_real(out, ", ", "delta", row->delta);
	json_stream_key_real(out, ", ", "pct", row->pct);
	json_stream_key(out, ", ", "ran_a");
	json_stream_raw(out, row->in_a || row->ran_a ? "true" : "false");
	json_stream_key(out, ", ", "ran_b");
	json_stream_raw(out, row->in_b || row->ran_b ? "true" : "false");
	json_stream_key_number(out, ", ", "dropped_a", row->dropped_a);
	json_stream_key_number(out, ", ", "dropped_b", row->dropped_b);
	json_stream_key(out, ", ", "approximate");
	json_stream_raw(out, row->approximate ? "true" : "false");
	if (d->judged) {
		json_stream_key_number(out, ", ", "runs_a", row->runs_a);
		json_stream_key_number(out, ", ", "runs_b", row->runs_b);
		json_stream_key(out, ", ", "verdict");
		json_stream_text(out, region_verdict_name(row->verdict));
		json_stream_key_real(out, ", ", "low_pct", row->low);
		json_stream_key_real(out, ", ", "high_pct", row->high);
		json_stream_key_real(out, ", ", "p_beyond_margin_adjusted", row->p_adjusted);
	}
	json_stream_raw(out, "}");
}

int region_diff_json(const struct region_diff *d, FILE *out, struct error *err)
{
	(void)err; /* what the stream could not take is told when it is closed */
	json_stream_key(out, "{\n ", "metric");
	json_stream_text(out, region_metric_name(d->options.metric));
	json_stream_key(out, ",\n ", "unit");
	json_stream_text(out, region_metric_unit(d->options.metric));
	json_stream_key_number(out, ",\n ", "runs_a", d->runs_a);
	json_stream_key_number(out, ",\n ", "runs_b", d->runs_b);
	json_stream_key_real(out, ",\n ", "threshold", d->options.threshold);
	json_stream_key_number(out, ",\n ", "hidden", d->hidden);
	if (d->judged) {
		json_stream_key(out, ",\n ", "judged_by");
		json_stream_text(out, d->paired ? "pairs" : "ranks");
		json_stream_key_number(out, ",\n ", "pairs", d->pairs);
		json_stream_key_real(out, ",\n ", "confidence", d->options.confidence);
		json_stream_key_real(out, ",\n ", "margin_pct", d->options.margin * 100);
		json_stream_key_number(out, ",\n ", "claims", d->claims);
	}
	json_stream_key(out, ",\n ", "rows");
	json_stream_raw(out, "[");
	for (size_t i = 0; i < d->count; i++) {
		json_stream_raw(out, i ? "," : "");
		put_row(out, d, &d->rows[i]);
	}
	json_stream_raw(out, "]\n}\n");
	return 0;
}
