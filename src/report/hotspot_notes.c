#include "report/hotspot_notes.h"

#include <math.h>
#include <string.h>

#include "judge/shares.h"

#define PLACE "!?"       /* of a name that only tells where the code lies */
#define ENTRY "!?+0x"    /* ... and where its function begins */
#define NO_STACK "[no stack]"
#define OVER_PCT 100.5   /* what rounds to more than all */

bool hotspot_row_is_function(const struct hotspot_row *row)
{
	return row->known || strstr(row->name, ENTRY) != NULL;
}

void hotspot_notes_add(struct hotspot_notes *n, const struct hotspot_group *g, const struct hotspot_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct hotspot_row *row = &rows->items[i];
		const char *module = row->module ? row->module : row->name;

		n->wall |= !isnan(row->pct_of_wall_on_busiest_thread);
		n->margin |= g->effective >= SHARES_LEAST;
		n->over |= row->pct_of_wall_on_busiest_thread > OVER_PCT;
		if (strcmp(row->name, NO_STACK) == 0)
			n->no_stack = true;
		else if (row->known)
			continue;
		else if (strcmp(module, "[jit]") == 0)
			n->jit = true;
		else if (strcmp(module, "[unknown]") == 0)
			n->elsewhere = true;
		else
			n->place |= strstr(row->name, PLACE) != NULL;
	}
}

void hotspot_notes_each(const struct hotspot_notes *n, void (*each)(void *context, const char *text), void *context)
{
	if (n->wall)
		each(context, "of wall: CPU time of the one thread that spent most in it, of the group's wall time.");
	if (n->margin)
		each(context, "\u00b1: what the number of samples leaves open, in points of percent, at 95%.");
	if (n->over)
		each(context, "Over 100% of wall: a sample counts for all CPU time since the one before, which may lie "
			      "outside; of few samples and short groups it says no more than \"all of it\".");
	if (n->place)
		each(context, "Names with !? have no symbol: MODULE!?+0xSTART is one function that begins there, "
			      "MODULE!? any of the module. Debug symbols, or a build that is not stripped, would name "
			      "them.");
	if (n->jit)
		each(context, "[jit] is code that was made at run time. Its functions have names where the runtime "
			      "writes /tmp/perf-PID.map: node --perf-basic-prof, python3 -X perf, Java with an agent "
			      "for it.");
	if (n->elsewhere)
		each(context, "[unknown] is code that is in no file known here; nothing would name it.");
	if (n->no_stack)
		each(context, "[no stack] is CPU time that was counted and not located: of short threads and the ends "
			      "of threads and programs, for which no tick came, and of code with the sampler's signal "
			      "blocked.");
}
