/* Hot spots: a profile summed up per phase group. Pure: a profile, the phases and a query in, rows out.
 *
 * The rules are those of docs/profile.md: time before the first phase is group "before"; inclusive rows count a
 * function once per sample, however often it recurs; a row's busiest thread is what tells serial from parallel code. */
#ifndef ASSAY_MODEL_HOTSPOTS_H
#define ASSAY_MODEL_HOTSPOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/phase.h"
#include "model/profile.h"

#define HOTSPOT_PHASES_MAX 8 /* more named phases than that are only shown as one group */

enum hotspot_by { BY_FUNCTION, BY_LINE, BY_MODULE, BY_THREAD, BY_PROCESS };

struct hotspot_query {
	enum hotspot_by by;
	const char *group;          /* only this group or phase name; NULL: all */
	/* Shell patterns, NULL-ended lists; NULL: none. Only samples with such a function, module or thread on their
	 * stack; not those. */
	const char *const *include, *const *exclude;
	const char *focus;          /* only samples with this function; fills callers and callees. NULL: none */
	size_t top;                 /* rows per table; 0: all */
};

struct hotspot_row {
	char *name;              /* owned: function, "file:line function", module, thread (digits as #), program */
	char *module;            /* owned; NULL for threads and processes */
	bool known;              /* false: only where it lies is known */
	uint64_t weight;         /* periods */
	uint64_t deliveries;     /* signals: the n of any interval */
	double share;            /* of the group's weight */
	double cpu_s;
	size_t threads;          /* how many ran it */
	int busiest_tid;
	double busiest_thread_s; /* CPU time of that one in it */
	double pct_of_wall_on_busiest_thread; /* NaN where the group's wall time is not known */
};

struct hotspot_rows {
	struct hotspot_row *items; /* by weight, then by name */
	size_t count, all;         /* all: before `top` cut it */
};

struct hotspot_group {
	char *name;            /* owned: "before", or the group's */
	char *phases;          /* owned: names of its phases, each once, the first few; NULL: it has none */
	size_t phase_names;    /* how many there are */
	size_t first;          /* the first of them, by its number; 0 also for "before" */
	uint64_t weight, deliveries;
	double effective;      /* samples of equal weight that would tell as much: (sum of w)^2 / sum of w^2 */
	double cpu_s, wall_s;  /* wall_s NaN: not known */
	size_t thread_count;   /* that were sampled in it */
	uint64_t complete, cut, guessed; /* weights of stacks so marked */
	struct hotspot_rows modules, self, inclusive, threads, busiest_threads;
	uint64_t stacked;  /* weight of the samples that have a stack */
	double second_s;   /* CPU time of the thread that is second to the busiest one; 0: there is none */
	struct hotspot_rows of_busiest;       /* the hottest rows of the busiest thread; shares of its own time */
	struct hotspot_rows callers, callees; /* of the focus */
};

struct hotspots {
	struct hotspot_group *groups; /* in the order in which they first occur in the phases */
	size_t group_count;
	/* The phases of group "other" one by one: where they have names of their own, at least two and at most
	 * HOTSPOT_PHASES_MAX, and the query names no other group. Their samples are in groups[], too. */
	struct hotspot_group *phases;
	size_t phase_count;
	uint64_t weight, deliveries;  /* of all samples that the query let through */
	bool found_group, found_focus; /* what the query names does occur */
	bool found_before;             /* there are samples before the first phase */
	const char *lost_include;      /* of the query's patterns the first that no name matches; NULL: none */
};

void hotspots_init(struct hotspots *h);
void hotspots_release(struct hotspots *h);

/* `phases` may be empty: everything is group "run" then, of no known wall time. Rows are named by the profile; `by`
 * chooses what self and inclusive rows are. */
int hotspots_sum(struct hotspots *ret, const struct profile *p, const struct phases *phases,
		 const struct hotspot_query *query, struct error *err);

/* What people are shown, in the order of time: the groups, and instead of group "other" its phases where they stand one
 * by one. */
size_t hotspots_section_count(const struct hotspots *h);
const struct hotspot_group *hotspots_section(const struct hotspots *h, size_t i);

/* Appends what --group may name: "before, load, other; phases: parse, sort". `before`: that there is such a group. */
void hotspots_list_groups(const struct phases *phases, bool before, struct buf *out);

/* What was sampled of what was used, over all images. */
struct profile_account {
	double cpu_s;      /* used by the tree; NaN: not known */
	/* weight times period, dropped ones and those of images that are not believed left out */
	double sampled_s;
	double dropped_s;
	double sampler_s;  /* the sampler's own time in the target */
	uint64_t weight, deliveries, dropped;
};

/* `cpu_s` is the run's own figure (run.json), NaN where there is none. */
struct profile_account profile_account_of(const struct profile *p, double cpu_s);

/* Digits folded to '#', as threads of one kind are shown; owned, NULL when out of memory. */
char *hotspot_fold_digits(const char *name);

#endif
