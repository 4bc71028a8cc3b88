/* assay export, of files of regions. */
#include "cmd/export.h"
#include "cmd/notes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/replace.h"
#include "base/units.h"
#include "cmd/command.h"
#include "report/region_exporter.h"
#include "report/region_order.h"
#include "store/finished.h"
#include "store/region_writer.h"

#define LAYOUT1 "layout1" /* a file of regions again: no stream that an exporter could write */
#define LAYOUT1_EXTENSION ".h5"

static bool is_layout1(const struct export_args *a)
{
	size_t length = a->out ? strlen(a->out) : 0, end = strlen(LAYOUT1_EXTENSION);

	if (a->format)
		return strcmp(a->format, LAYOUT1) == 0;
	return length > end && strcmp(a->out + length - end, LAYOUT1_EXTENSION) == 0;
}

static const struct region_exporter *find_exporter(const struct export_args *a)
{
	return a->format ? region_exporter_find(a->format) : a->out ? region_exporter_for_path(a->out) : NULL;
}

bool export_regions_format(const struct export_args *a)
{
	return is_layout1(a) || find_exporter(a);
}

bool export_wants_regions(const struct export_args *a)
{
	const struct region_exporter *e = find_exporter(a);

	return a->regions || a->select.ranks || a->select.include.count || a->select.exclude.count || is_layout1(a) ||
	       (e && e->write == region_export_csv);
}

/* That the options are for regions, and fit together. */
static int check(const struct export_args *a, struct error *err)
{
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	for (size_t i = 0; i < region_exporter_count; i++)
		buf_printf(&names, "%s, ", a->format ? region_exporters[i].name : region_exporters[i].extension);
	if (a->group || a->by)
		return error_set(err, "option '--%s' is for CPU samples, not for regions", a->group ? "group" : "by");
	if (!export_regions_format(a) && a->format)
		return error_set(err, "option '--format': %s is not for regions; these are: %s" LAYOUT1, a->format,
				 names.text);
	if (!export_regions_format(a))
		return error_set(err,
				 "option '--out': '%s' has the extension of no format for regions (%s" LAYOUT1_EXTENSION
				 ")",
				 typed_show(a->out, strlen(a->out)).text, names.text);
	if (is_layout1(a) && !a->out)
		return error_set(err,
				 "format '" LAYOUT1 "' is a file of its own: name it with -o FILE" LAYOUT1_EXTENSION);
	if (is_layout1(a) && (a->select.ranks || a->select.include.count || a->select.exclude.count))
		return error_set(err,
				 "format '" LAYOUT1 "' holds the whole file: without --ranks, --include and --exclude");
	return 0;
}

static int put_layout1(struct region_file *file, const char *out, struct error *err)
{
	CLEANUP(free_cleanup) char *lost = NULL;

	if (region_layout1_write(file, out, &lost, err) < 0)
		return -1;
	if (lost)
		fprintf(stderr, "assay export: %s\n", lost);
	return 0;
}

static int put(const struct region_exporter *x, const struct region_export *e, const char *out, struct error *err)
{
	CLEANUP(replacement_release) struct replacement file;

	replacement_init(&file);
	if (!out)
		return x->write(e, stdout, err); /* main() looks whether it was really written */
	if (replacement_open(&file, out, err) < 0 || x->write(e, file.out, err) < 0)
		return -1;
	return replacement_commit(&file, err);
}

/* That there is something to write, and what of it no format, or not this one, can hold. */
static int measure(struct region_export *e, const struct region_exporter *x, struct error *err)
{
	const struct regions *r = region_file_regions(e->file);
	struct region_span span;

	if (region_span_read(e->file, e->wanted, &span, err) < 0)
		return -1;
	if (!span.calls && !span.senseless)
		return error_set(err, "%s: no calls with times%s", r->path,
				 span.untimed ? " (they were only added up)" : " of regions that were asked for");
	if (span.untimed)
		warnings_add(e->warnings, "Calls that were only added up, and are not in it: %s.",
			     units_count((double)span.untimed).text);
	if (span.dropped)
		warnings_add(e->warnings,
			     "Calls that found no room when they were recorded, and are not in it: %s.",
			     units_count((double)span.dropped).text);
	if (span.senseless && (x->write == region_export_chrome || x->write == region_export_speedscope))
		warnings_add(e->warnings,
			     "Calls that end before they begin, or at no possible time, and are not in it: %s.",
			     units_count((double)span.senseless).text);
	if (!e->zero)
		e->zero = span.first;
	return 0;
}

int export_regions(const struct export_args *a, const char *path, const struct rundir *dir)
{
	CLEANUP(region_file_cleanup) struct region_file *file = NULL;
	CLEANUP(region_query_release) struct region_query query;
	CLEANUP(warnings_release) struct warnings warnings;
	CLEANUP(finished_release) struct finished_run run;
	CLEANUP(free_cleanup) bool *wanted = NULL;
	struct region_export e = {.query = &query, .warnings = &warnings};
	const struct region_exporter *x = find_exporter(a);
	struct error err;

	region_query_init(&query);
	warnings_init(&warnings);
	finished_init(&run);
	if (dir && !fs_exists(dir->regions_h5)) {
		error_set(&err, "%s: its program marked no regions, or they were not recorded", path);
		return export_trouble(&err, EXIT_USAGE);
	}
	if (check(a, &err) < 0 || region_options_query(&a->select, &query, &err) < 0 ||
	    region_file_open(dir ? dir->regions_h5 : path, &file, &err) < 0 ||
	    region_options_keep("--out", a->out, region_file_regions(file), &err) < 0)
		return export_trouble(&err, EXIT_USAGE);
	if (!x)
		return put_layout1(file, a->out, &err) < 0 ? export_trouble(&err, EXIT_TROUBLE) : EXIT_DONE;
	region_options_warn("assay export", &query, region_file_regions(file));
	e.file = file;
	/* In a run the times are since its start, as those of its samples. */
	if (dir && finished_read(dir, &run, NULL) == 0)
		e.zero = run.start;
	wanted = region_wanted_parts(region_file_regions(file), &query, &err);
	e.wanted = wanted;
	if (!wanted)
		return export_trouble(&err, EXIT_USAGE);
	if (measure(&e, x, &err) < 0)
		return export_trouble(&err, EXIT_USAGE);
	if (put(x, &e, a->out, &err) < 0)
		return export_trouble(&err, EXIT_TROUBLE);
	notes_print("assay export", &warnings);
	return EXIT_DONE;
}
