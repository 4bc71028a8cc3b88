#include "report/bench_report.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* RFC 4180: quoted where it has to be. */
static void put_text(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, strlen(text));
	if (!strpbrk(clean.text, ",\"\r\n")) {
		buf_puts(out, clean.text);
		return;
	}
	buf_putc(out, '"');
	for (const char *c = clean.text; *c; c++) {
		if (*c == '"')
			buf_putc(out, '"');
		buf_putc(out, *c);
	}
	buf_putc(out, '"');
}

static void put_number(struct buf *out, double value)
{
	buf_putc(out, ',');
	if (isfinite(value))
		buf_printf(out, "%.15g", value);
}

static void put_row(const struct bench *b, const struct bench_answer *a, size_t i, struct buf *out)
{
	const struct bench_command *c = &b->commands[i];
	const struct bench_figures *f = &a->items[i];
	const struct paired *p = &f->paired;
	const double theirs[] = {f->mean, f->deviation, f->median, f->user, f->system, f->min, f->max};
	const double ours[] = {f->low, f->high, f->spread, (double)f->counted, f->peak_bytes};

	put_text(out, bench_label(c));
	for (size_t k = 0; k < sizeof theirs / sizeof *theirs; k++)
		put_number(out, theirs[k]);
	/* A reference that was added has no parameters, and empty cells. */
	for (size_t k = 0; k < b->commands[b->count - 1].parameter_count; k++) {
		buf_putc(out, ',');
		put_text(out, k < c->parameter_count ? c->parameters[k].value : "");
	}
	for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
		put_number(out, ours[k]);
	buf_putc(out, ',');
	buf_puts(out, f->compared ? bench_verdict(p->verdict) : "");
	put_number(out, f->compared && p->pairs ? p->ratio : NAN);
	put_number(out, f->compared && p->pairs ? p->low : NAN);
	put_number(out, f->compared && p->pairs ? p->high : NAN);
	put_number(out, f->compared ? (double)p->pairs : NAN);
	buf_putc(out, '\n');
}

void bench_csv(const struct bench *b, const struct bench_answer *a, struct buf *out)
{
	const struct bench_command *last = &b->commands[b->count - 1];

	buf_puts(out, "command,mean,stddev,median,user,system,min,max");
	for (size_t k = 0; k < last->parameter_count; k++) {
		CLEANUP(buf_release) struct buf name;

		buf_init(&name);
		buf_printf(&name, "parameter_%s", last->parameters[k].name);
		buf_putc(out, ',');
		put_text(out, name.text);
	}
	buf_puts(out,
		 ",median_low,median_high,spread,runs,peak_memory_bytes,verdict,ratio,ratio_low,ratio_high,pairs\n");
	for (size_t i = 0; i < b->count; i++)
		put_row(b, a, i, out);
}
