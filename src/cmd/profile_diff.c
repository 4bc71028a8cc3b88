#include "cmd/profile_options.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/terminal.h"
#include "judge/profile_diff.h"
#include "report/hotspots.h"

/* One side: the run, and its sums. */
struct side {
	struct loaded_profile loaded;
	struct hotspots hotspots;
};

static void side_init(struct side *s)
{
	loaded_profile_init(&s->loaded);
	hotspots_init(&s->hotspots);
}

static void side_release(struct side *s)
{
	loaded_profile_release(&s->loaded);
	hotspots_release(&s->hotspots);
}

/* All rows: a row that one side shows and the other has cut would look like a change. */
static int side_read(struct side *s, const struct profile_args *a, const char *path, struct error *err)
{
	struct hotspot_query query = profile_query(a, 0);

	query.top = 0;
	if (loaded_profile_read(&s->loaded, path, err) < 0 ||
	    hotspots_sum(&s->hotspots, &s->loaded.profile, &s->loaded.run.phases, &query, err) < 0)
		return -1;
	/* A function that only one side has is what a comparison may be for. */
	if (s->hotspots.found_group)
		return 0;
	profile_query_check(&query, &s->hotspots, &s->loaded.profile, &s->loaded.run.phases, err);
	error_prefix(err, "%s", path);
	return -1;
}

static int print(const struct profile_args *a, const struct profile_changes *changes, const char *first,
		 const char *second, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(json_cleanup) json_t *root = NULL;

	buf_init(&text);
	if (a->json) {
		root = profile_changes_json(changes, first, second);
		return profile_put_json(a, root, err);
	}
	profile_changes_print(changes, first, second, terminal_has_colour(STDOUT_FILENO),
			      (unsigned)terminal_columns_within(STDOUT_FILENO, PROFILE_COLUMNS_MAX), &text);
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, stdout);
	return 0;
}

/* A pattern that neither side has a name for. */
static int check_includes(const struct profile_args *a, const struct side *first, const struct side *second,
			  struct error *err)
{
	const struct hotspot_query query = profile_query(a, 0);

	if (!first->hotspots.lost_include || !second->hotspots.lost_include)
		return 0;
	return profile_query_check(&query, &first->hotspots, &first->loaded.profile, &first->loaded.run.phases, err);
}

int profile_compare(const struct profile_args *a, const char *first, const char *second, struct error *err)
{
	CLEANUP(side_release) struct side side_a;
	CLEANUP(side_release) struct side side_b;
	CLEANUP(profile_changes_release) struct profile_changes changes;
	double confidence = a->confidence < 0 ? 0.95 : a->confidence < 1 ? a->confidence : a->confidence / 100;

	side_init(&side_a);
	side_init(&side_b);
	profile_changes_init(&changes);
	if (side_read(&side_a, a, first, err) < 0 || side_read(&side_b, a, second, err) < 0 ||
	    check_includes(a, &side_a, &side_b, err) < 0 ||
	    profile_diff(&changes, &side_a.hotspots, &side_b.hotspots, a->inclusive, confidence, err) < 0 ||
	    print(a, &changes, first, second, err) < 0)
		return -1;
	if (!a->fail_on_change)
		return EXIT_DONE;
	return changes.changed ? EXIT_DIFFERENT : changes.too_few ? EXIT_UNDECIDED : EXIT_DONE;
}
