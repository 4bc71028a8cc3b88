#include "cmd/spy_outputs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/options.h"
#include "cmd/terminal.h"

/* Seldom enough not to be measured along. */
#define LIVE_NS (250 * NS_PER_MS)

void spy_outputs_init(struct spy_outputs *o)
{
	*o = (struct spy_outputs){.peak = -1};
	replacement_init(&o->csv_file);
	course_init(&o->course);
}

void spy_outputs_release(struct spy_outputs *o)
{
	replacement_release(&o->csv_file);
	course_release(&o->course);
}

int spy_outputs_check(struct spy_outputs *o, struct error *err)
{
	if (o->plot && !plot_memory_format(o->plot, &o->format))
		return error_set(err, "option '--plot': '%s' has no extension that tells the format (.svg, .pdf, .png)",
				 typed_show(o->plot, strlen(o->plot)).text);
	if (o->plot && o->csv && strcmp(o->plot, o->csv) == 0)
		return error_set(err, "options '--plot' and '--csv' name the same file, %s", o->plot);
	return 0;
}

int spy_outputs_open(struct spy_outputs *o, struct error *err)
{
	char version[64];

	if (o->csv && replacement_open(&o->csv_file, o->csv, err) < 0)
		return error_prefix(err, "--csv");
	if (o->plot) {
		o->on = canvas_load(version, sizeof version, err);
		if (!o->on)
			return error_prefix(err, "--plot");
	}
	return 0;
}

/* At the first reading it is known how many GPUs there are. */
static void begin(struct spy_outputs *o, const struct spy_sample *s)
{
	o->begun = true;
	o->begin = s->t;
	if (o->csv)
		spy_csv_heading(s->gpu_count, o->csv_file.out);
	if (o->plot && course_open(&o->course, SPY_RESOURCES + s->gpu_count, o->delay_ns, &o->course_error) < 0)
		course_release(&o->course);
}

static void add_point(struct spy_outputs *o, const struct spy_sample *s)
{
	int64_t values[SPY_RESOURCES + SPY_GPUS_MAX];

	memcpy(values, s->bytes, sizeof s->bytes);
	memcpy(values + SPY_RESOURCES, s->gpus, s->gpu_count * sizeof *s->gpus);
	course_add(&o->course, s->t, values);
}

static void show(struct spy_outputs *o, const struct spy_sample *s)
{
	CLEANUP(buf_release) struct buf line;
	size_t columns = terminal_columns(STDERR_FILENO);

	buf_init(&line);
	buf_puts(&line, "\r\033[K");
	spy_live(s, o->begin, o->peak, columns ? columns - 1 : 0, &line); /* the last column may wrap */
	fwrite(line.text, 1, line.length, stderr);
	fflush(stderr);
	o->live_shown = s->t;
}

void spy_outputs_sample(void *context, const struct spy_sample *s)
{
	struct spy_outputs *o = context;

	if (!o->begun)
		begin(o, s);
	if (s->bytes[SPY_RSS] > o->peak)
		o->peak = s->bytes[SPY_RSS];
	if (o->csv)
		spy_csv_row(s, o->begin, o->csv_file.out);
	if (o->course.cells)
		add_point(o, s);
	if (o->live && (!o->live_shown || s->t - o->live_shown >= LIVE_NS))
		show(o, s);
}

void spy_outputs_clear(const struct spy_outputs *o)
{
	if (!o->live_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}

static int draw(struct spy_outputs *o, const struct spy_result *result, const struct spy_subject *subject,
		struct error *err)
{
	const struct plot_memory figure = {result, subject, &o->course};
	CLEANUP(replacement_release) struct replacement file;

	replacement_init(&file);
	if (*o->course_error.text) {
		*err = o->course_error;
		return -1;
	}
	if (replacement_open(&file, o->plot, err) < 0 || plot_memory_draw(&figure, o->on, o->format, file.out, err) < 0)
		return -1;
	return replacement_commit(&file, err);
}

int spy_outputs_finish(struct spy_outputs *o, const struct spy_result *result, const struct spy_subject *subject)
{
	struct error err;
	int failed = 0;

	if (o->csv && !o->begun)
		spy_csv_heading(0, o->csv_file.out);
	if (o->csv && replacement_commit(&o->csv_file, &err) < 0) {
		fprintf(stderr, "assay spy: --csv: %s\n", err.text);
		failed++;
	}
	if (o->plot && draw(o, result, subject, &err) < 0) {
		fprintf(stderr, "assay spy: --plot: %s\n", err.text);
		failed++;
	}
	return failed;
}
