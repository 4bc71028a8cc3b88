/* assay export: the CPU samples or the regions of a finished run in the formats of other viewers. */
#include "cmd/command.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/replace.h"
#include "base/utf8.h"
#include "cmd/export.h"
#include "cmd/notes.h"
#include "cmd/profile_options.h"
#include "record/job.h"
#include "record/profiling.h"
#include "report/exporter.h"
#include "store/finished.h"
#include "store/region_file.h"


#define EXPORTER(name, extension, binary, summary) "|" #name
static const char formats[] =
#include "report/exporters.def"
	"|csv|layout1";
#undef EXPORTER

#define AT(member) offsetof(struct export_args, member)

static const struct option options[] = {
	{"format", 'f', OPTION_CHOICE, AT(format), "FORMAT", "what to write", "by FILE's extension", formats + 1},
	{"out", 'o', OPTION_TEXT, AT(out), "FILE", "write it to a file", "standard output"},
	{"group", 'g', OPTION_TEXT, AT(group), "NAME", "only the samples in this phase group or phase", "all"},
	{"by", 0, OPTION_CHOICE, AT(by), "WHAT", "what a frame is", "function", "function|line"},
	{"regions", 0, OPTION_FLAG, AT(regions), NULL, "of a run that has both: its regions, not its samples", NULL},
	REGION_OPTIONS(export_args, select),
	OPTIONS_END,
};

int export_trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay export: %s\n", err->text);
	return status;
}

static const struct exporter *find_exporter(const struct export_args *a)
{
	return a->format ? exporter_find(a->format) : a->out ? exporter_for_path(a->out) : NULL;
}

/* That one of the two options tells a format, of samples or of regions. */
static int check_format(const struct export_args *a, struct error *err)
{
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	if (find_exporter(a) || export_regions_format(a))
		return 0;
	for (size_t i = 0; i < exporter_count; i++)
		buf_printf(&names, "%s, ", a->out ? exporters[i].extension : exporters[i].name);
	buf_puts(&names, a->out ? ".csv, .h5" : "csv, layout1");
	if (!a->out)
		return error_set(err, "option '--format' is needed where no file's extension tells it: %s", names.text);
	return error_set(err, "option '--out': '%s' has no extension that tells the format (%s); --format does too",
			 typed_show(a->out, strlen(a->out)).text, names.text);
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

static bool is_job(const char *path)
{
	CLEANUP(job_release) struct job job;

	job_init(&job);
	return job_open(&job, path, NULL) > 0;
}

static int export_samples(const struct export_args *a, const char *path, const struct rundir *dir)
{
	CLEANUP(finished_release) struct finished_run run;
	CLEANUP(profile_release) struct profile profile;
	CLEANUP(warnings_release) struct warnings warnings;
	struct export_input in = {.profile = &profile,
				  .phases = &run.phases,
				  .group = a->group,
				  .by_line = a->by && strcmp(a->by, "line") == 0};
	const struct exporter *e = find_exporter(a);
	struct error err;
	int got;

	finished_init(&run);
	profile_init(&profile);
	warnings_init(&warnings);
	if (e->binary && !a->out && isatty(STDOUT_FILENO)) {
		error_set(&err, "format '%s' is not for a terminal: use -o FILE, or pipe it", e->name);
		return export_trouble(&err, EXIT_USAGE);
	}
	if (finished_read(dir, &run, &err) < 0)
		return export_trouble(&err, EXIT_USAGE);
	if (!profile_was_recorded(dir) && is_job(path)) {
		error_set(&err, "%s is a job of several ranks: CPU samples are exported rank by rank, as those of "
			  "%s/rank-0", path, path);
		return export_trouble(&err, EXIT_USAGE);
	}
	if (!profile_was_recorded(dir)) {
		error_set(&err, "%s was recorded without --cpu-profile: it has no CPU samples", path);
		return export_trouble(&err, EXIT_USAGE);
	}
	if (profiling_open(dir, &profile, &warnings, &err) < 0)
		return export_trouble(&err, EXIT_USAGE);
	notes_print("assay export", &warnings);
	in.start = run.start;
	in.end = run.end;
	in.label = run.label;
	in.command = run.command;
	got = write_export(e, &in, a->out, &err);
	if (got == EXPORT_NOTHING) {
		error_prefix(&err, "%s", path);
		return export_trouble(&err, EXIT_USAGE);
	}
	return got == EXPORT_OK ? EXIT_DONE : export_trouble(&err, EXIT_TROUBLE);
}

/* A file of regions, or a run directory: what it holds decides, and where it holds both, what was asked for. */
static int export(const struct export_args *a, const char *path)
{
	CLEANUP(rundir_release) struct rundir dir;
	struct error err;

	rundir_init(&dir);
	if (!fs_is_dir(path) && region_file_is_one(path))
		return export_regions(a, path, NULL);
	if (rundir_open(&dir, path, &err) < 0)
		return export_trouble(&err, EXIT_USAGE);
	if (export_wants_regions(a) || (fs_exists(dir.regions_h5) && !profile_was_recorded(&dir)))
		return export_regions(a, path, &dir);
	return export_samples(a, path, &dir);
}

static int run_export(int argc, char **argv)
{
	struct export_args args = {0};
	struct error err;
	int rest, status = options_parse(&cmd_export, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && argc - rest != 1)
		status = error_set(&err, "expected one run directory or file of regions; usage: assay export [options] "
				   "DIR|FILE.h5");
	if (status == 0)
		status = check_format(&args, &err);
	status = status < 0 ? export_trouble(&err, EXIT_USAGE) : export(&args, argv[rest]);
	options_release(&cmd_export, &args);
	return status;
}

#define EXPORTER(name, extension, binary, summary) "  " #name " (FILE" extension ")\n      " summary "\n"
#define REGION_EXPORTER(name, extension, binary, summary) EXPORTER(name, extension, binary, summary)

const struct command cmd_export = {
	.name = "export",
	.summary = "CPU samples or regions of a run for other viewers",
	.usage = "[options] DIR|FILE.h5",
	.description =
		"Writes the CPU samples that `assay profile` or `assay run --cpu-profile` took,\n"
		"with the names that were found then, in the format of another viewer:\n"
		"\n"
#include "report/exporters.def"
		"\n"
		"All numbers are CPU time: sampling periods, and where the format has units the\n"
		"same in nanoseconds. Or the calls of the regions that a program marked, of a\n"
		"file of regions or of a run that has no samples (or with --regions):\n"
		"\n"
#include "report/region_exporters.def"
		"  layout1 (FILE.h5)\n      a file of regions of the first layout: older readers of such files",
	.options = options,
	.examples =
		"# a flame graph\n"
		"assay export DIR --format folded | flamegraph.pl > flame.svg\n"
		"# in the browser, by thread: open the file at speedscope.app\n"
		"assay export DIR -o run.speedscope.json\n"
		"# the decode phases alone, by line of source\n"
		"assay export DIR -o run.pb.gz --group decode && go tool pprof -lines -top run.pb.gz\n"
		"# what each rank did when: open the file at ui.perfetto.dev\n"
		"assay export regions.h5 --ranks 0-3 -o run.trace.json\n",
	.run = run_export,
	.mixed = true,
};
