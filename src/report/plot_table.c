#include "report/plot_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "report/json_stream.h"

void plot_table_begin(struct plot_table *t, FILE *out, enum plot_data_format format, const char *plot,
		      const char *const *columns)
{
	*t = (struct plot_table){.out = out, .format = format, .columns = columns};
	if (format == PLOT_DATA_JSON) {
		json_stream_raw(out, "{\"plot\": ");
		json_stream_text(out, plot);
		json_stream_raw(out, ", \"rows\": [");
		return;
	}
	for (size_t i = 0; columns[i]; i++)
		fprintf(out, "%s%s", i ? "," : "", columns[i]);
	fputs("\r\n", out);
}

static void begin_cell(struct plot_table *t)
{
	if (t->format == PLOT_DATA_JSON) {
		fputs(t->column ? ", " : t->rows ? ",\n{" : "\n{", t->out);
		json_stream_text(t->out, t->columns[t->column]);
		fputs(": ", t->out);
	} else if (t->column) {
		putc(',', t->out);
	}
}

static void end_cell(struct plot_table *t)
{
	if (t->columns[++t->column])
		return;
	fputs(t->format == PLOT_DATA_JSON ? "}" : "\r\n", t->out);
	t->column = 0;
	t->rows++;
}

void plot_table_text(struct plot_table *t, const char *text)
{
	begin_cell(t);
	if (t->format == PLOT_DATA_JSON) {
		json_stream_text(t->out, text);
	} else if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, t->out);
	} else {
		putc('"', t->out);
		for (; *text; text++) {
			if (*text == '"')
				putc('"', t->out);
			putc(*text, t->out);
		}
		putc('"', t->out);
	}
	end_cell(t);
}

void plot_table_integer(struct plot_table *t, int64_t value)
{
	begin_cell(t);
	fprintf(t->out, "%" PRId64, value);
	end_cell(t);
}

void plot_table_number(struct plot_table *t, double value)
{
	if (!isfinite(value)) {
		plot_table_unknown(t);
		return;
	}
	begin_cell(t);
	fputs(decimal_shortest(value).text, t->out);
	end_cell(t);
}

void plot_table_unknown(struct plot_table *t)
{
	begin_cell(t);
	fputs(t->format == PLOT_DATA_JSON ? "null" : "", t->out);
	end_cell(t);
}

int plot_table_end(struct plot_table *t, struct error *err)
{
	if (t->format == PLOT_DATA_JSON)
		fputs("\n]}\n", t->out);
	return ferror(t->out) ? error_set(err, "the data behind the figure could not be written") : 0;
}
