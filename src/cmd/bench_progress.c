#include "cmd/bench_progress.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"

/* Seldom enough not to be measured along. */
#define INTERVAL_NS (250 * NS_PER_MS)
#define LABEL_COLUMNS 30

void bench_progress_show(void *context, size_t at, size_t of, size_t command)
{
	struct bench_progress *p = context;
	CLEANUP(buf_release) struct buf line;
	int64_t now = clock_mono_ns();

	buf_init(&line);
	if (!p->started) {
		p->started = now;
		p->from = at;
	}
	if (p->shown && now - p->shown < INTERVAL_NS)
		return;
	p->shown = now;
	buf_printf(&line, "\r\033[Krun %zu of %zu", at + 1, of);
	if (at > p->from) {
		double per_run = (double)(now - p->started) / NS_PER_S / (double)(at - p->from);

		buf_printf(&line, ", %s left", units_seconds(per_run * (double)(of - at)).text);
	}
	buf_puts(&line, ": ");
	utf8_append_line(&line,
			 command < p->bench->count ? bench_label(&p->bench->commands[command]) : "the shell alone",
			 LABEL_COLUMNS);
	fwrite(line.text, 1, line.length, stderr);
	fflush(stderr);
	p->there = true;
}

void bench_progress_clear(struct bench_progress *p)
{
	if (p->there)
		fputs("\r\033[K", stderr);
	p->there = false;
}
