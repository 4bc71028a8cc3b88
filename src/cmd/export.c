/* assay export: the CPU samples of a finished run in the formats of other viewers. */
#include "cmd/command.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/replace.h"
#include "base/utf8.h"
#include "cmd/profile_options.h"
#include "record/profiling.h"
#include "report/exporter.h"
#include "store/finished.h"

#define WARNING_COLUMNS 1000

struct export_args {
	const char *format, *out, *group, *by;
};

#define EXPORTER(name, extension, binary, summary) "|" #name
static const char formats[] =
#include "report/exporters.def"
	;
#undef EXPORTER

#define AT(member) offsetof(struct export_args, member)

static const struct option options[] = {
	{"format", 'f', OPTION_CHOICE, AT(format), "FORMAT", "what to write", "by FILE's extension", formats + 1},
	{"out", 'o', OPTION_TEXT, AT(out), "FILE", "write it to a file", "standard output"},
	{"group", 'g', OPTION_TEXT, AT(group), "NAME", "only the samples in this phase group or phase", "all"},
	{"by", 0, OPTION_CHOICE, AT(by), "WHAT", "what a frame is", "function", "function|line"},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay export: %s\n", err->text);
	return status;
}

/* NULL and *err where neither option tells. */
static const struct exporter *find_exporter(const struct export_args *a, struct error *err)
{
	const struct exporter *found = a->format ? exporter_find(a->format) : a->out ? exporter_for_path(a->out) : NULL;
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	if (found)
		return found;
	for (size_t i = 0; i < exporter_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", a->out ? exporters[i].extension : exporters[i].name);
	if (a->out) {
		struct typed typed = typed_show(a->out, strlen(a->out));

		error_set(err, "option '--out': '%s' has no extension that tells the format (%s); --format does too",
			  typed.text, names.text);
	} else {
		error_set(err, "option '--format' is needed where no file's extension tells it: %s", names.text);
	}
	return NULL;
}

static int write_export(const struct exporter *e, const struct export_input *in, const char *path, struct error *err)
{
	CLEANUP(replacement_release) struct replacement file;
	int got;

	replacement_init(&file);
	if (!path)
		return e->write(in, stdout, err); /* main() looks whether it was really written */
	if (replacement_open(&file, path, err) < 0)
		return EXPORT_TROUBLE;
	got = e->write(in, file.out, err);
	return got == EXPORT_OK ? replacement_commit(&file, err) : got;
}

static void print_warnings(const struct warnings *w)
{
	for (size_t i = 0; i < w->count; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, w->texts[i], WARNING_COLUMNS);
		fprintf(stderr, "assay export: %s\n", line.text);
	}
}

static int export(const struct exporter *e, const struct export_args *a, const char *path)
{
	CLEANUP(rundir_release) struct rundir dir;
	CLEANUP(finished_release) struct finished_run run;
	CLEANUP(profile_release) struct profile profile;
	CLEANUP(warnings_release) struct warnings warnings;
	struct export_input in = {.profile = &profile,
				  .phases = &run.phases,
				  .group = a->group,
				  .by_line = strcmp(a->by, "line") == 0};
	struct error err;
	int got;

	rundir_init(&dir);
	finished_init(&run);
	profile_init(&profile);
	warnings_init(&warnings);
	if (rundir_open(&dir, path, &err) < 0 || finished_read(&dir, &run, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (!profile_was_recorded(&dir)) {
		error_set(&err, "%s was recorded without --cpu-profile: it has no CPU samples", path);
		return trouble(&err, EXIT_USAGE);
	}
	if (profiling_open(&dir, &profile, &warnings, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	print_warnings(&warnings);
	in.start = run.start;
	in.end = run.end;
	in.label = run.label;
	in.command = run.command;
	got = write_export(e, &in, a->out, &err);
	if (got == EXPORT_NOTHING) {
		error_prefix(&err, "%s", path);
		return trouble(&err, EXIT_USAGE);
	}
	return got == EXPORT_OK ? EXIT_DONE : trouble(&err, EXIT_TROUBLE);
}

static int run_export(int argc, char **argv)
{
	struct export_args args = {.by = "function"};
	const struct exporter *e = NULL;
	struct error err;
	int rest, status = options_parse(&cmd_export, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && argc - rest != 1)
		status = error_set(&err, "expected one run directory; usage: assay export [options] DIR");
	if (status == 0 && !(e = find_exporter(&args, &err)))
		status = -1;
	if (status == 0 && e->binary && !args.out && isatty(STDOUT_FILENO))
		status = error_set(&err, "format '%s' is not for a terminal: use -o FILE, or pipe it", e->name);
	return status < 0 ? trouble(&err, EXIT_USAGE) : export(e, &args, argv[rest]);
}

#define EXPORTER(name, extension, binary, summary) "  " #name " (FILE" extension ")\n      " summary "\n"

const struct command cmd_export = {
	.name = "export",
	.summary = "CPU samples of a run for other viewers",
	.usage = "[options] DIR",
	.description =
		"Writes the CPU samples that `assay profile` or `assay run --cpu-profile` took,\n"
		"with the names that were found then, in the format of another viewer:\n"
		"\n"
#include "report/exporters.def"
		"\n"
		"All numbers are CPU time: sampling periods, and where the format has units the\n"
		"same in nanoseconds.",
	.options = options,
	.examples =
		"# a flame graph\n"
		"assay export DIR --format folded | flamegraph.pl > flame.svg\n"
		"# in the browser, by thread: open the file at speedscope.app\n"
		"assay export DIR -o run.speedscope.json\n"
		"# the decode phases alone, by line of source\n"
		"assay export DIR -o run.pb.gz --group decode && go tool pprof -lines -top run.pb.gz\n",
	.run = run_export,
	.mixed = true,
};
