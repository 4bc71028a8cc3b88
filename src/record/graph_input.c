#include "record/graph_input.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "record/graph_of_run.h"
#include "record/job.h"
#include "store/region_file.h"

#define STANDARD_INPUT "/dev/stdin"
#define CALLS_GRAPH "calls.graph"  /* in the folder of a run whose calls were recorded one by one */
#define TEXT_MAX ((size_t)2 << 30) /* of a profile; larger than any that fits the limits of a call graph */

static bool is_job(const char *path)
{
	CLEANUP(job_release) struct job job;

	job_init(&job);
	return job_open(&job, path, NULL) > 0;
}

static int no_event(const struct graph_input *in, const char *what, struct error *err)
{
	return in->event ? error_set(err, "%s: %s have no events to choose from", in->path, what) : 0;
}

static int unknown_format(const char *path, size_t length, struct error *err)
{
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	for (size_t i = 0; i < graph_reader_count; i++)
		buf_printf(&names, "%s, ", graph_readers[i]->name);
	return error_set(err, "%s: %s, and so no profile of a known format (%sa file of regions, a run directory)",
			 path, length ? "its content is of none of these" : "it is empty", names.text);
}

static int read_text(const struct graph_input *in, const char *path, struct graph *ret, struct error *err)
{
	bool standard = strcmp(path, "-") == 0;
	const struct graph_reader *reader;
	CLEANUP(buf_release) struct buf text;
	const struct graph_reading how = {.source = standard ? "standard input" : path,
					  .event = in->event,
					  .fold_recursion = in->fold_recursion,
					  .text = &text};

	buf_init(&text);
	if (fs_read_file(standard ? STANDARD_INPUT : path, TEXT_MAX, &text, err) < 0)
		return -1;
	reader = graph_reader_of(text.text, text.length);
	if (!reader)
		return unknown_format(how.source, text.length, err);
	return reader->read(text.text, text.length, &how, ret, err);
}

static int read_run(const struct graph_input *in, struct graph *ret, struct warnings *warnings, struct error *err)
{
	CLEANUP(rundir_release) struct rundir dir;
	CLEANUP(free_cleanup) char *calls = fs_join(in->path, CALLS_GRAPH);
	bool samples, regions;

	rundir_init(&dir);
	if (!calls)
		return error_set(err, "%s: out of memory", in->path);
	if (rundir_open(&dir, in->path, err) < 0 || no_event(in, "runs", err) < 0)
		return -1;
	samples = fs_exists(dir.samples_seg);
	regions = fs_exists(dir.regions_h5);
	if (in->regions && !regions)
		return error_set(err, "%s: its program marked no regions, or they were not recorded", in->path);
	if (fs_exists(calls) && !in->regions)
		return read_text(in, calls, ret, err);
	if (samples && !in->regions)
		return graph_of_samples(&dir, ret, warnings, err);
	if (regions)
		return graph_of_regions(dir.regions_h5, ret, warnings, err);
	if (is_job(in->path))
		return error_set(err,
				 "%s is a job of several ranks: CPU samples are read rank by rank, as those of "
				 "%s/rank-0",
				 in->path, in->path);
	if (!fs_exists(dir.run_json))
		return error_set(err,
				 "%s is no run directory: it has no run.json (of a run that was killed `assay recover` "
				 "makes one)",
				 in->path);
	return error_set(err,
			 "%s has neither CPU samples nor regions: it was recorded without --cpu-profile, and its "
			 "program marked none",
			 in->path);
}

int graph_input_read(const struct graph_input *in, struct graph *ret, struct warnings *warnings, struct error *err)
{
	if (fs_is_dir(in->path))
		return read_run(in, ret, warnings, err);
	if (in->regions && !region_file_is_one(in->path))
		return error_set(err, "%s is no file of regions, and no run directory", in->path);
	if (region_file_is_one(in->path))
		return no_event(in, "regions", err) < 0 ? -1 : graph_of_regions(in->path, ret, warnings, err);
	return read_text(in, in->path, ret, err);
}
