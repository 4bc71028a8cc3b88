#include "record/results.h"

#include "base/cleanup.h"
#include "base/fs.h"
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

int results_write(const struct rundir *dir, const json_t *begin, struct run *run, json_t **ret_json, struct error *err)
{
	write_summary(dir, run);
	*ret_json = runjson_build(run, begin);
	if (!*ret_json)
		return error_set(err, "out of memory");
	rundir_clear_way(dir->run_json);
	return json_write_file(dir->run_json, *ret_json, err);
}
