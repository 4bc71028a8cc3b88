/* The table of regions as CSV: times in ns, shares of 1, percents; what is not known is an empty cell. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/utf8.h"
#include "report/json_stream.h"
#include "report/region_columns.h"
#include "report/region_reports.h"

/* RFC 4180: quoted where it has to be. */
static void put_text(FILE *out, const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, strlen(text));
	if (!strpbrk(clean.text, ",\"\r\n")) {
		fputs(clean.text, out);
		return;
	}
	putc('"', out);
	for (const char *c = clean.text; *c; c++) {
		if (*c == '"')
			putc('"', out);
		putc(*c, out);
	}
	putc('"', out);
}

int region_table_csv(const struct region_table *t, const struct region_report_options *o, FILE *out, struct error *err)
{
	const struct region_column_desc *columns[TABLE_COLUMNS_MAX];
	size_t count = region_columns_choose(o->columns, t->has_gpu, columns, TABLE_COLUMNS_MAX);
	bool ranks = t->count > 0 && t->rows[0].rank >= 0, threads = false;

	for (size_t i = 0; i < t->count; i++)
		threads |= t->rows[i].thread >= 0;
	fprintf(out, "name%s%s", ranks ? ",rank" : "", threads ? ",thread" : "");
	for (size_t k = 0; k < count; k++)
		fprintf(out, ",%s", columns[k]->name);
	putc('\n', out);
	for (size_t i = 0; i < t->count; i++) {
		const struct region_row *row = &t->rows[i];

		put_text(out, row->name);
		if (ranks)
			fprintf(out, ",%" PRId64, row->rank);
		if (threads && row->thread >= 0)
			fprintf(out, ",%" PRId64, row->thread);
		else if (threads)
			putc(',', out);
		for (size_t k = 0; k < count; k++) {
			double value = columns[k]->value(row);

			putc(',', out);
			if (isfinite(value))
				json_stream_real(out, value);
		}
		putc('\n', out);
	}
	return ferror(out) ? error_set(err, "the table cannot be written") : 0;
}
