#include "report/spy_report.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"

#define COLUMNS_UNKNOWN 79
#define LEAST_COLUMNS 3 /* what a cut takes */

void spy_live(const struct spy_sample *s, int64_t begin, int64_t peak, size_t columns, struct buf *out)
{
	static const enum spy_resource shown[] = {SPY_ANON, SPY_FILE, SPY_SWAP};
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	buf_printf(&line, "%s  rss %s", units_seconds((double)(s->t - begin) / (double)NS_PER_S).text,
		   s->bytes[SPY_RSS] < 0 ? "n/a" : units_bytes((double)s->bytes[SPY_RSS]).text);
	if (peak >= 0)
		buf_printf(&line, " (peak %s)", units_bytes((double)peak).text);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		int64_t bytes = s->bytes[shown[i]];

		/* Most programs swap nothing, and a line has little room. */
		if (bytes > 0 || (bytes == 0 && shown[i] != SPY_SWAP))
			buf_printf(&line, "  %s %s", spy_resource_names[shown[i]], units_bytes((double)bytes).text);
	}
	if (s->processes > 1)
		buf_printf(&line, "  %zu processes", s->processes);
	for (size_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i] >= 0)
			buf_printf(&line, "  gpu%zu %s", i, units_bytes((double)s->gpus[i]).text);
	columns = columns ? columns : COLUMNS_UNKNOWN;
	utf8_append_line(out, line.text, columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS);
}
