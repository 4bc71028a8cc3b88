/* assay plot: figures of region files, as SVG, PDF or PNG, and the data behind them. */
#include "cmd/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/replace.h"
#include "base/utf8.h"
#include "cmd/notes.h"
#include "cmd/region_options.h"
#include "report/plot.h"

#define LABEL_COLUMNS 60
#define POINTS_PER_INCH 72
#define INCHES_LEAST 1.0
#define INCHES_MOST 40.0
#define FILES_MAX 256
#define DATA_FILES "FILE.csv or FILE.json"

struct plot_args {
	const char *kind, *out, *format, *data, *title;
	double width, height, from, to;
	struct option_list labels;
	struct region_options regions;
};

#define PLOT(name) "|" #name
static const char kinds[] =
#include "report/plots.def"
	;
#undef PLOT

#define AT(member) offsetof(struct plot_args, member)

static const struct option options[] = {
	{"kind", 'k', OPTION_CHOICE, AT(kind), "KIND", "which figure; always needed", NULL, kinds + 1},
	{"out", 'o', OPTION_TEXT, AT(out), "FILE", "write it to FILE.svg, FILE.pdf or FILE.png",
	 "standard output, unless a terminal"},
	{"format", 'f', OPTION_CHOICE, AT(format), "FORMAT", "what to write", "by FILE's extension, else svg",
	 "svg|pdf|png"},
	{"data", 'd', OPTION_TEXT, AT(data), "FILE", "write the data behind the figure to " DATA_FILES},
	REGION_OPTIONS(plot_args, regions),
	{"label", 'l', OPTION_LIST, AT(labels), "NAME", "what to call a file; once for each, in their order",
	 "its name"},
	{"title", 't', OPTION_TEXT, AT(title), "TEXT", "a line above the figure", "none"},
	{"width", 'W', OPTION_NUMBER, AT(width), "INCHES", "of the figure", "7; speedup 5.25", NULL, INCHES_LEAST,
	 INCHES_MOST},
	{"height", 'H', OPTION_NUMBER, AT(height), "INCHES", "of the figure", "by what is in it", NULL, INCHES_LEAST,
	 INCHES_MOST},
	{"from", 0, OPTION_NUMBER, AT(from), "SECONDS", "gantt: begin so long after a file's first region", "0", NULL,
	 0, 1e9},
	{"to", 0, OPTION_NUMBER, AT(to), "SECONDS", "gantt: end so long after a file's first region", "its end", NULL,
	 0, 1e9},
	OPTIONS_END,
};

/* What all steps share. */
struct plotting {
	const struct plot_args *args;
	const struct plot_kind *kind;
	enum canvas_format format;
	enum plot_data_format data_format;
	struct region_query query;
	struct region_file **files;
	char **labels;
	size_t file_count;
	struct warnings notes;
	void *data;
};

static void plotting_release(struct plotting *p)
{
	if (p->kind)
		p->kind->release(p->data);
	for (size_t i = 0; i < p->file_count; i++) {
		region_file_free(p->files[i]);
		free(p->labels[i]);
	}
	free(p->files);
	free(p->labels);
	region_query_release(&p->query);
	warnings_release(&p->notes);
}

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay plot: %s\n", err->text);
	return status;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), ending = strlen(end);

	return length > ending && strcmp(text + length - ending, end) == 0;
}

static int find_format(const struct plot_args *a, enum canvas_format *ret, struct error *err)
{
	static const char *const names[] = {[CANVAS_SVG] = ".svg", [CANVAS_PDF] = ".pdf", [CANVAS_PNG] = ".png"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (a->format ? strcmp(a->format, names[i] + 1) == 0 : a->out && ends_with(a->out, names[i])) {
			*ret = (enum canvas_format)i;
			return 0;
		}
	}
	if (a->out) {
		struct typed typed = typed_show(a->out, strlen(a->out));

		return error_set(err, "option '--out': '%s' has no extension that tells the format (.svg, .pdf, .png);"
				 " --format does too", typed.text);
	}
	*ret = CANVAS_SVG;
	return 0;
}

static int find_data_format(const char *path, enum plot_data_format *ret, struct error *err)
{
	struct typed typed = typed_show(path, strlen(path));

	*ret = ends_with(path, ".json") ? PLOT_DATA_JSON : PLOT_DATA_CSV;
	if (*ret == PLOT_DATA_JSON || ends_with(path, ".csv"))
		return 0;
	return error_set(err, "option '--data': expected " DATA_FILES ", got '%s'", typed.text);
}

static int check_options(struct plotting *p, size_t file_count, struct error *err)
{
	const struct plot_args *a = p->args;

	if (!a->kind)
		return error_set(err, "option '--kind' is needed: %s", kinds + 1);
	p->kind = plot_find(a->kind);
	if (file_count < p->kind->least_files)
		return error_set(err, "--kind %s needs at least %zu files; usage: assay plot [options] FILE...",
				 p->kind->name, p->kind->least_files);
	if (file_count > FILES_MAX)
		return error_set(err, "%zu files are too many for one figure (at most %d)", file_count, FILES_MAX);
	if (a->labels.count && a->labels.count != file_count)
		return error_set(err,
				 "option '--label' is needed once for each of the %zu files, and is there %zu times",
				 file_count, a->labels.count);
	if (!p->kind->windowed && (!isnan(a->from) || !isnan(a->to)))
		return error_set(err, "option '%s' is only for a figure along time: --kind gantt",
				 isnan(a->from) ? "--to" : "--from");
	if (find_format(a, &p->format, err) < 0)
		return -1;
	if (a->data && find_data_format(a->data, &p->data_format, err) < 0)
		return -1;
	if (a->out && a->data && strcmp(a->out, a->data) == 0)
		return error_set(err, "options '--out' and '--data' name the same file, %s", a->out);
	/* With --data alone there is no figure to be written. */
	if (!a->out && !a->data && isatty(STDOUT_FILENO))
		return error_set(err, "a figure is not for a terminal: use -o FILE.svg, .pdf or .png, or pipe it");
	return region_options_query(&a->regions, &p->query, err);
}

/* The last part of a path, without an extension that says nothing. */
static char *label_of(const char *path)
{
	CLEANUP(free_cleanup) char *copy = strdup(path);
	CLEANUP(buf_release) struct buf label;
	size_t length = copy ? strlen(copy) : 0;
	char *name;

	buf_init(&label);
	if (!copy)
		return NULL;
	while (length > 1 && copy[length - 1] == '/')
		copy[--length] = '\0';
	name = strrchr(copy, '/');
	name = name && name[1] ? name + 1 : copy;
	if (ends_with(name, ".h5"))
		name[strlen(name) - 3] = '\0';
	utf8_append_line(&label, name, LABEL_COLUMNS);
	return buf_detach(&label);
}

static int open_files(struct plotting *p, char **paths, size_t count, struct error *err)
{
	p->files = calloc(count, sizeof *p->files);
	p->labels = calloc(count, sizeof *p->labels);
	if (!p->files || !p->labels)
		return error_set(err, "out of memory for %zu files", count);
	for (size_t i = 0; i < count; i++) {
		p->file_count = i + 1;
		p->labels[i] = p->args->labels.count ? strdup(p->args->labels.items[i]) : label_of(paths[i]);
		if (!p->labels[i])
			return error_set(err, "out of memory for %zu files", count);
		if (region_file_open(paths[i], &p->files[i], err) < 0)
			return -1;
		if (region_options_keep("--out", p->args->out, region_file_regions(p->files[i]), err) < 0 ||
		    region_options_keep("--data", p->args->data, region_file_regions(p->files[i]), err) < 0)
			return -1;
		region_options_warn("assay plot", &p->query, region_file_regions(p->files[i]));
	}
	return 0;
}

static int write_data(const struct plotting *p, struct error *err)
{
	CLEANUP(replacement_release) struct replacement file;

	replacement_init(&file);
	if (replacement_open(&file, p->args->data, err) < 0 ||
	    p->kind->write_data(p->data, p->data_format, file.out, err) < 0)
		return -1;
	return replacement_commit(&file, err);
}

static int draw_to(const struct plotting *p, const struct plot_input *in, const struct canvas_plugin *on, FILE *out,
		   struct error *err)
{
	double width = in->width, height = in->height;
	struct canvas *c;

	p->kind->size(p->data, in, &width, &height);
	if (on->open(out, p->format, width, height, &c, err) < 0)
		return -1;
	if (p->kind->draw(p->data, in, on, c, width, height, err) < 0) {
		on->abandon(c);
		return -1;
	}
	return on->finish(c, err);
}

static int write_figure(const struct plotting *p, const struct plot_input *in, const struct canvas_plugin *on,
			struct error *err)
{
	CLEANUP(replacement_release) struct replacement file;

	replacement_init(&file);
	if (!p->args->out)
		return draw_to(p, in, on, stdout, err); /* main() looks whether it was really written */
	if (replacement_open(&file, p->args->out, err) < 0 || draw_to(p, in, on, file.out, err) < 0)
		return -1;
	return replacement_commit(&file, err);
}

static int plot(struct plotting *p, char **paths, size_t count)
{
	const struct plot_args *a = p->args;
	bool figure = a->out || !a->data;
	const struct canvas_plugin *on = NULL;
	struct plot_input in = {
		.query = &p->query, .title = a->title, .from = a->from, .to = a->to, .notes = &p->notes};
	struct error err;
	char version[64];

	if (figure && !(on = canvas_load(version, sizeof version, &err)))
		return trouble(&err, EXIT_TROUBLE);
	if (open_files(p, paths, count, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	in.files = p->files;
	in.labels = (const char *const *)p->labels;
	in.file_count = count;
	in.width = a->width * POINTS_PER_INCH;
	in.height = a->height * POINTS_PER_INCH;
	if (p->kind->prepare(&in, &p->data, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	notes_print("assay plot", &p->notes);
	if (a->data && write_data(p, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	if (figure && write_figure(p, &in, on, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	return EXIT_DONE;
}

static int run_with(const struct plot_args *args, int status, char **paths, int count, struct error *err)
{
	CLEANUP(plotting_release) struct plotting p = {.args = args};

	region_query_init(&p.query);
	warnings_init(&p.notes);
	if (status == 0 && count < 1)
		status = error_set(err, "expected files of regions; usage: assay plot [options] FILE...");
	if (status == 0)
		status = check_options(&p, (size_t)count, err);
	return status < 0 ? trouble(err, EXIT_USAGE) : plot(&p, paths, (size_t)count);
}

static int run_plot(int argc, char **argv)
{
	struct plot_args args = {.from = NAN, .to = NAN};
	struct error err;
	int rest = argc, status = options_parse(&cmd_plot, argc, argv, &args, &rest, &err), result = EXIT_DONE;

	if (status <= 0)
		result = run_with(&args, status, argv + rest, argc - rest, &err);
	options_release(&cmd_plot, &args);
	return result;
}

const struct command cmd_plot = {
	.name = "plot",
	.summary = "figures of regions: gantt, flame, durations, speedup",
	.usage = "[options] --kind KIND FILE...",
	.description =
		"Draws the regions of files (of `assay merge` or the Python package\n"
		"scope-profiler, or run directories that hold one) as SVG, PDF or PNG:\n"
		"\n"
		"  gantt      what each thread of each rank did when; nested calls are stacked\n"
		"  flame      time by path of regions, all ranks and threads added up\n"
		"  durations  how long the calls of each region take: quartiles and extremes\n"
		"  speedup    how much faster regions became with more ranks, and the ideal\n"
		"\n"
		"Several files are stacked or compared at one scale. A region has the same\n"
		"colour in every figure. With --data and without -o only the data is written.",
	.options = options,
	.examples =
		"# what every rank did, the first tenth of a second\n"
		"assay plot --kind gantt --to 0.1 regions.h5 -o gantt.svg\n"
		"# before and after, for a paper, with the figures behind it\n"
		"assay plot --kind durations before.h5 after.h5 -o durations.pdf --data durations.csv\n"
		"# scaling from 1 to 16 ranks\n"
		"assay plot --kind speedup n1.h5 n4.h5 n16.h5 -o speedup.png\n",
	.run = run_plot,
	.mixed = true,
};
