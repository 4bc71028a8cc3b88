#include "record/results.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "model/hotspots.h"
#include "report/hotspots.h"
#include "report/markdown.h"
#include "store/runjson.h"

static void write_summary(const struct rundir *dir, struct run *run)
{
	CLEANUP(buf_release) struct buf text;
	struct error err;

	buf_init(&text);
	markdown_print(run, &text);
	rundir_clear_way(dir->summary_md);
	if (text.failed)
		warnings_add(&run->warnings, "summary.md was not written: out of memory.");
	else if (fs_write_file(dir->summary_md, text.text, text.length, &err) < 0)
		warnings_add(&run->warnings, "summary.md was not written: %s.", err.text);
}

#define HOTSPOTS_TOP 20 /* rows of each table in run.json */

/* What was hot, per group of phases, and what of the CPU time was sampled at all. */
static json_t *profile_json(const struct run *run, struct error *err)
{
	struct hotspot_query query = {.by = BY_FUNCTION, .top = HOTSPOTS_TOP};
	CLEANUP(hotspots_release) struct hotspots sums;
	struct hotspots_shown shown = {.profile = run->profile, .hotspots = &sums, .query = &query};
	/* Where the recording ended before the run did, what is known of it is less than what was used. */
	double cpu_s = run->status == RUN_PARTIAL ? NAN : run->cpu_user_s + run->cpu_system_s;
	json_t *object;

	hotspots_init(&sums);
	if (hotspots_sum(&sums, run->profile, &run->phases, &query, err) < 0)
		return NULL;
	/* Of processes that live on only the counters tell what they used. */
	if (run->survivors && run->whole.cpu_s > cpu_s)
		cpu_s = run->whole.cpu_s;
	shown.account = profile_account_of(run->profile, cpu_s);
	object = hotspots_json(&shown);
	if (!object)
		error_set(err, "out of memory for the CPU profile");
	return object;
}

int results_write(const struct rundir *dir, const json_t *begin, struct run *run, json_t **ret_json, struct error *err)
{
	CLEANUP(json_cleanup) json_t *profile = NULL;
	struct error why;

	if (run->profile)
		profile = profile_json(run, &why);
	if (run->profile && !profile)
		warnings_add(&run->warnings, "What was hot is not told: %s.", why.text);
	write_summary(dir, run);
	*ret_json = runjson_build(run, begin);
	if (!*ret_json)
		return error_set(err, "out of memory");
	if (profile)
		json_object_set(*ret_json, "profile", profile);
	rundir_clear_way(dir->run_json);
	return json_write_file(dir->run_json, *ret_json, err);
}
