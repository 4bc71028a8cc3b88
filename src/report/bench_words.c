#include "report/bench_report.h"

#include <math.h>

#include "base/units.h"


struct bench_unit bench_unit_for(double seconds)
{
	double scale = seconds >= 1 ? 1 : seconds >= 1e-3 ? 1e3 : seconds >= 1e-6 ? 1e6 : 1e9, value = seconds * scale;

	return (struct bench_unit){
		.name = scale > 1e6 ? "ns" : scale > 1e3 ? "us" : scale > 1 ? "ms" : "s",
		.scale = scale,
		.decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3,
	};
}

#define PAIRS_MAX 10000 /* nobody waits for more, and the forecast is not worth as much */

static void say_undecided(const struct paired *p, struct buf *out)
{
	buf_puts(out, "undecided");
	if (!isnan(p->detectable))
		buf_printf(out, ": a difference below %s would not be seen", units_percent(p->detectable).text);
	if (p->pairs_needed > PAIRS_MAX)
		buf_puts(out, "; more runs alone will hardly decide");
	else if (p->pairs_needed > 0)
		buf_printf(out, "; some %.0f more pair%s would probably decide", p->pairs_needed,
			   p->pairs_needed < 1.5 ? "" : "s");
}

void bench_say_verdict(const struct bench *b, const struct bench_answer *a, size_t index, struct buf *out)
{
	const struct paired *p = &a->items[index].paired;
	double alpha = (1 - b->confidence) / (double)b->looks;

	switch (p->verdict) {
	case PAIRED_TOO_FEW:
		buf_printf(out, "too few pairs: %zu, and %zu are the least that can tell", p->pairs,
			   stats_least_pairs(alpha));
		return;
	case PAIRED_UNDECIDED:
		if (a->items[index].held_back)
			buf_printf(out, "undecided: among %zu comparisons it takes more pairs to be sure",
				   a->count - 1);
		else
			say_undecided(p, out);
		return;
	case PAIRED_SMALL:
		buf_printf(out, "small: there is a difference, perhaps below the margin of %s",
			   units_percent(b->margin).text);
		return;
	case PAIRED_EQUIVALENT:
		buf_printf(out, "equivalent: within %s", units_percent(b->margin).text);
		return;
	case PAIRED_BETTER:
	case PAIRED_WORSE:
	case PAIRED_BELOW_RESOLUTION:
		buf_puts(out, bench_verdict(p->verdict));
	}
}
