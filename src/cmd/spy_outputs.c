#include "cmd/spy_outputs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cmd/options.h"
#include "cmd/terminal.h"

/* Seldom enough not to be measured along. */
#define LIVE_NS (250 * NS_PER_MS)

void spy_outputs_init(struct spy_outputs *o)
{
	*o = (struct spy_outputs){.peak = -1};
	replacement_init(&o->csv_file);
	replacement_init(&o->plot_file);
	replacement_init(&o->json_file);
	course_init(&o->course);
}

void spy_outputs_release(struct spy_outputs *o)
{
	replacement_release(&o->csv_file);
	replacement_release(&o->plot_file);
	replacement_release(&o->json_file);
	course_release(&o->course);
}

static int check_names(const struct spy_outputs *o, struct error *err)
{
	const struct {
		const char *option, *path;
	} files[] = {{"--plot", o->plot}, {"--csv", o->csv}, {"--json", o->json}};
	const size_t count = sizeof files / sizeof *files;

	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (files[i].path && files[k].path && strcmp(files[i].path, files[k].path) == 0)
				return error_set(err, "options '%s' and '%s' name the same file, %s", files[i].option,
						 files[k].option, files[i].path);
	return 0;
}

int spy_outputs_check(struct spy_outputs *o, struct error *err)
{
	if (o->plot && !plot_memory_format(o->plot, &o->format))
		return error_set(err, "option '--plot': '%s' has no extension that tells the format (.svg, .pdf, .png)",
				 typed_show(o->plot, strlen(o->plot)).text);
	return check_names(o, err);
}

static int open_file(struct replacement *file, const char *option, const char *path, struct error *err)
{
	return path && replacement_open(file, path, err) < 0 ? error_prefix(err, "%s", option) : 0;
}

int spy_outputs_open(struct spy_outputs *o, struct error *err)
{
	char version[64];

	if (open_file(&o->csv_file, "--csv", o->csv, err) < 0 || open_file(&o->plot_file, "--plot", o->plot, err) < 0 ||
	    open_file(&o->json_file, "--json", o->json, err) < 0)
		return -1;
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
	size_t columns = terminal_width(STDERR_FILENO);

	buf_init(&line);
	buf_puts(&line, "\r\033[K");
	/* The last column may wrap. */
	spy_live(s, o->begin, o->peak, columns > 1 ? columns - 1 : columns, &line);
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

	if (*o->course_error.text) {
		*err = o->course_error;
		return -1;
	}
	if (plot_memory_draw(&figure, o->on, o->format, o->plot_file.out, err) < 0)
		return -1;
	return replacement_commit(&o->plot_file, err);
}

static int put_json(struct spy_outputs *o, const struct spy_result *result, const struct spy_subject *subject,
		    struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = spy_json(result, subject);
	CLEANUP(free_cleanup) char *text = root ? json_print(root) : NULL;

	if (!text)
		return error_set(err, "out of memory");
	fprintf(o->json_file.out, "%s\n", text);
	return replacement_commit(&o->json_file, err);
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
	if (o->json && put_json(o, result, subject, &err) < 0) {
		fprintf(stderr, "assay spy: --json: %s\n", err.text);
		failed++;
	}
	return failed;
}
