#include "cmd/region_options.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cmd/notes.h"

#define WARNING_COLUMNS 1000

int region_options_query(const struct region_options *o, struct region_query *q, struct error *err)
{
	if (o->ranks && region_query_set_ranks(q, o->ranks, err) < 0)
		return error_prefix(err, "option '--ranks'");
	for (size_t i = 0; i < o->include.count; i++)
		if (region_query_include(q, o->include.items[i], err) < 0)
			return error_prefix(err, "option '--include'");
	for (size_t i = 0; i < o->exclude.count; i++)
		if (region_query_exclude(q, o->exclude.items[i], err) < 0)
			return error_prefix(err, "option '--exclude'");
	return 0;
}

int region_options_keep(const char *option, const char *path, const struct regions *r, struct error *err)
{
	struct stat out, in;

	if (!path || stat(path, &out) < 0 || stat(r->path, &in) < 0)
		return 0;
	if (S_ISREG(out.st_mode) && out.st_dev == in.st_dev && out.st_ino == in.st_ino)
		return error_set(err, "option '%s': %s is the file of regions that is read, and is not replaced",
				 option, path);
	return 0;
}

void region_options_warn(const char *who, const struct region_query *q, const struct regions *r)
{
	CLEANUP(free_cleanup) char *missing = region_query_missing_ranks(q, r);

	if (missing)
		notes_print_text(who, missing);
}

void region_options_warn_of_nothing(const char *who, const struct region_query *q, const struct regions *r)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	if (!r->part_count || !(q->include_count || q->exclude_count || q->range_count))
		return;
	utf8_append_line(&line, r->path, WARNING_COLUMNS);
	fprintf(stderr, "%s: the filters leave nothing of the %s region%s in %s\n", who,
		units_count((double)r->name_count).text, r->name_count == 1 ? "" : "s", line.text);
}
