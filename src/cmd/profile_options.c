#include "cmd/profile_options.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/spell.h"
#include "cmd/command.h"
#include "cmd/notes.h"
#include "record/profiling.h"

#define NAMES_MAX 4096  /* function names that a misspelt one is compared with */

static enum hotspot_by by_of(const char *name)
{
	static const char *const names[] = {
		[BY_FUNCTION] = "function", [BY_LINE] = "line",	      [BY_MODULE] = "module",
		[BY_THREAD] = "thread",	    [BY_PROCESS] = "process",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return (enum hotspot_by)i;
	return BY_FUNCTION;
}

struct hotspot_query profile_query(const struct profile_args *a, size_t top)
{
	return (struct hotspot_query){
		.by = by_of(a->by),
		.group = a->group,
		.include = a->include.items,
		.exclude = a->exclude.items,
		.focus = a->focus,
		.top = a->top < 0 ? top : (size_t)a->top,
	};
}

static int no_group(const char *typed, const struct hotspots *h, const struct phases *phases, struct error *err)
{
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	hotspots_list_groups(phases, h->found_before, &names);
	return error_set(err, "option '--group': there is no group or phase '%s' in this run; its groups are: %s",
			 typed_show(typed, strlen(typed)).text, names.text);
}

static int no_include(const char *typed, struct error *err)
{
	return error_set(err, "option '--include': no function, module or thread that was sampled is called '%s'; "
			      "patterns as '*name*' find more",
			 typed_show(typed, strlen(typed)).text);
}

static int no_focus(const char *typed, const struct profile *p, struct error *err)
{
	const char *names[NAMES_MAX], *nearest;
	size_t count = 0;

	for (; count < p->function_count && count < NAMES_MAX; count++)
		names[count] = p->functions[count].name;
	nearest = spell_nearest(typed, names, count);
	return error_set(err, "option '--focus': no function that was sampled is called '%s'%s%s%s",
			 typed_show(typed, strlen(typed)).text, nearest ? "; did you mean '" : "",
			 nearest ? typed_show(nearest, strlen(nearest)).text : "",
			 nearest ? "'?" : "; patterns as '*name*' find more");
}

int profile_query_check(const struct hotspot_query *q, const struct hotspots *h, const struct profile *p,
			const struct phases *phases, struct error *err)
{
	if (!h->found_group)
		return no_group(q->group, h, phases, err);
	if (h->lost_include)
		return no_include(h->lost_include, err);
	return h->found_focus ? 0 : no_focus(q->focus, p, err);
}

bool profile_was_recorded(const struct rundir *dir)
{
	return fs_exists(dir->samples_seg) || fs_exists(dir->profile_json) || fs_exists(dir->rings);
}

void loaded_profile_init(struct loaded_profile *l)
{
	rundir_init(&l->dir);
	finished_init(&l->run);
	profile_init(&l->profile);
}

void loaded_profile_release(struct loaded_profile *l)
{
	rundir_release(&l->dir);
	finished_release(&l->run);
	profile_release(&l->profile);
}

int loaded_profile_read(struct loaded_profile *l, const char *path, struct error *err)
{
	CLEANUP(warnings_release) struct warnings warnings;

	warnings_init(&warnings);
	if (rundir_open(&l->dir, path, err) < 0 || finished_read(&l->dir, &l->run, err) < 0)
		return -1;
	if (!profile_was_recorded(&l->dir))
		return error_set(err, "%s was recorded without --cpu-profile: it has no CPU samples", path);
	if (profiling_open(&l->dir, &l->profile, &warnings, err) < 0)
		return -1;
	notes_print("assay profile", &warnings);
	return 0;
}

int profile_put_json(const struct profile_args *a, const json_t *root, struct error *err)
{
	CLEANUP(free_cleanup) char *text = root ? json_print(root) : NULL;

	if (!text)
		return error_set(err, "out of memory for the answer");
	if (*a->json)
		return json_write_file(a->json, root, err);
	puts(text);
	return 0;
}
