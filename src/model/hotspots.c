#include "model/hotspots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/hotspot_names.h"
#include "model/hotspot_sections.h"
#include "model/hotspot_tally.h"
#include "model/hotspot_tree.h"

#define LEADING_ROWS 3 /* of what the busiest thread was in */

/* A place in the call tree while the samples of one thread are added; with the place above it, so that the way to the
 * root takes no other memory: it is what most of the time goes into. */
struct sum {
	uint64_t weight;
	uint32_t deliveries; /* a profile has fewer than INT_MAX samples ... */
	uint32_t up : 31;    /* ... and places */
	uint32_t touched : 1;
};

/* All that is needed while summing up, whatever the group. */
struct summing {
	const struct profile *p;
	const struct sections *sections; /* that samples are put into now */
	const struct hotspot_query *q;
	struct hotspot_tree tree;
	struct row_names threads, processes; /* folded names; names of programs */
	uint32_t *thread_label, *process_label; /* per thread */
	uint8_t *thread_flags;                  /* TREE_INCLUDED, TREE_EXCLUDED */
	uint32_t *order;                        /* of samples: by section, then thread */
	uint8_t *section;                       /* of each sample; SECTION_NONE: not asked for */
	struct sum *sums;                       /* per place */
	uint32_t *touched;                      /* places with a sum, each run of them innermost first */
	struct run_of {
		size_t first;
	} *runs; /* where in touched[] each way begins that was not there before */
	size_t touched_count, run_count;
	uint64_t most; /* weight of the busiest thread of the group so far */
	struct tally self, inclusive, modules, thread_names, callers, callees;
};

static void summing_release(struct summing *s)
{
	hotspot_tree_release(&s->tree);
	row_names_release(&s->threads);
	row_names_release(&s->processes);
	free(s->thread_label);
	free(s->process_label);
	free(s->thread_flags);
	free(s->order);
	free(s->section);
	free(s->sums);
	free(s->touched);
	free(s->runs);
	tally_release(&s->self);
	tally_release(&s->inclusive);
	tally_release(&s->modules);
	tally_release(&s->thread_names);
	tally_release(&s->callers);
	tally_release(&s->callees);
}

void hotspots_init(struct hotspots *h)
{
	*h = (struct hotspots){0};
}

static void group_release(struct hotspot_group *g)
{
	free(g->name);
	free(g->phases);
	hotspot_rows_release(&g->modules);
	hotspot_rows_release(&g->self);
	hotspot_rows_release(&g->inclusive);
	hotspot_rows_release(&g->threads);
	hotspot_rows_release(&g->busiest_threads);
	hotspot_rows_release(&g->of_busiest);
	hotspot_rows_release(&g->callers);
	hotspot_rows_release(&g->callees);
}

void hotspots_release(struct hotspots *h)
{
	for (size_t i = 0; i < h->group_count; i++)
		group_release(&h->groups[i]);
	for (size_t i = 0; i < h->phase_count; i++)
		group_release(&h->phases[i]);
	free(h->groups);
	free(h->phases);
	hotspots_init(h);
}

/* A sample's place, the sampler's own frames left out. */
static uint32_t place_of(const struct summing *s, const struct profile_sample *sample)
{
	const struct tree_node *node = &s->tree.nodes[sample->node];

	return node->flags & TREE_OURS ? node->up : sample->node;
}

static bool let_through(const struct summing *s, const struct profile_sample *sample)
{
	const struct tree_node *node = &s->tree.nodes[place_of(s, sample)];
	unsigned flags = node->flags | s->thread_flags[sample->thread];

	return !(flags & TREE_EXCLUDED) && (!s->q->include || !*s->q->include || flags & TREE_INCLUDED) &&
	       (!s->q->focus || node->above != LABEL_NONE);
}

static int name_threads(struct summing *s, struct error *err)
{
	const struct profile *p = s->p;

	s->thread_label = calloc(p->thread_count + 1, sizeof *s->thread_label);
	s->process_label = calloc(p->thread_count + 1, sizeof *s->process_label);
	s->thread_flags = calloc(p->thread_count + 1, sizeof *s->thread_flags);
	if (!s->thread_label || !s->process_label || !s->thread_flags)
		return error_set(err, "out of memory for %zu threads", p->thread_count);
	for (size_t i = 0; i < p->thread_count; i++) {
		const char *name = p->threads[i].name;
		CLEANUP(free_cleanup) char *folded = hotspot_fold_digits(name);

		if (!folded)
			return error_set(err, "out of memory for %zu threads", p->thread_count);
		s->thread_label[i] = row_names_copy(&s->threads, folded, NULL, true, err);
		s->process_label[i] = row_names_add_image(&s->processes, &p->images[p->threads[i].image], err);
		if (s->thread_label[i] == LABEL_NONE || s->process_label[i] == LABEL_NONE)
			return -1;
		s->thread_flags[i] = (uint8_t)((label_matches_any(s->q->include, name) ? TREE_INCLUDED : 0) |
					       (label_matches_any(s->q->exclude, name) ? TREE_EXCLUDED : 0));
	}
	return 0;
}

/* Samples by thread, then, keeping that order, by section. */
static int order_samples(struct summing *s, struct error *err)
{
	const struct profile *p = s->p;
	CLEANUP(free_cleanup) size_t *starts = calloc(p->thread_count + 2, sizeof *starts);
	CLEANUP(free_cleanup) uint32_t *by_thread = calloc(p->sample_count + 1, sizeof *by_thread);
	size_t sections[SECTIONS_MAX + 2] = {0};

	if (!starts || !by_thread)
		return error_set(err, "out of memory for %zu samples", p->sample_count);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		unsigned section = sections_at(s->sections, sample->t);

		s->section[i] = (uint8_t)(let_through(s, sample) ? section : SECTION_NONE);
		sections[s->section[i] + 1]++;
		starts[sample->thread + 1]++;
	}
	for (size_t i = 0; i < p->thread_count; i++)
		starts[i + 1] += starts[i];
	for (size_t i = 0; i <= SECTIONS_MAX; i++)
		sections[i + 1] += sections[i];
	for (size_t i = 0; i < p->sample_count; i++)
		by_thread[starts[p->samples[i].thread]++] = (uint32_t)i;
	for (size_t i = 0; i < p->sample_count; i++)
		s->order[sections[s->section[by_thread[i]]]++] = by_thread[i];
	return 0;
}

static int prepare(struct summing *s, struct error *err)
{
	size_t places, functions, self;

	if (hotspot_tree_init(&s->tree, s->p, s->q, err) < 0 || name_threads(s, err) < 0)
		return -1;
	s->order = calloc(s->p->sample_count + 1, sizeof *s->order);
	s->section = calloc(s->p->sample_count + 1, sizeof *s->section);
	if (!s->order || !s->section)
		return error_set(err, "out of memory for %zu samples", s->p->sample_count);
	places = s->tree.count;
	functions = s->tree.functions.count;
	self = s->q->by == BY_MODULE    ? s->tree.modules.count
	       : s->q->by == BY_THREAD  ? s->threads.count
	       : s->q->by == BY_PROCESS ? s->processes.count
					: functions;
	s->sums = calloc(places, sizeof *s->sums);
	s->touched = calloc(places, sizeof *s->touched);
	s->runs = calloc(places + 1, sizeof *s->runs);
	if (!s->sums || !s->touched || !s->runs)
		return error_set(err, "out of memory for %zu places of a call tree", places);
	for (size_t i = 0; i < places; i++)
		s->sums[i].up = s->tree.nodes[i].up & INT32_MAX;
	if (tally_init(&s->self, self, err) < 0 || tally_init(&s->inclusive, self, err) < 0 ||
	    tally_init(&s->modules, s->tree.modules.count, err) < 0 ||
	    tally_init(&s->thread_names, s->threads.count, err) < 0)
		return -1;
	if (!s->q->focus)
		return 0;
	return tally_init(&s->callers, functions, err) < 0 || tally_init(&s->callees, functions, err) < 0 ? -1 : 0;
}

static const struct row_names *self_labels(const struct summing *s)
{
	return s->q->by == BY_MODULE    ? &s->tree.modules
	       : s->q->by == BY_THREAD  ? &s->threads
	       : s->q->by == BY_PROCESS ? &s->processes
					: &s->tree.functions;
}

/* Adds to the sum of the sample's place, and makes sure that the way from there to the root is among the places that
 * the thread has touched. */
static void touch_way(struct summing *s, uint32_t place, uint32_t weight, uint32_t delivered)
{
	s->sums[place].weight += weight;
	s->sums[place].deliveries += delivered;
	if (!s->sums[place].touched)
		s->runs[s->run_count++].first = s->touched_count;
	for (; !s->sums[place].touched; place = s->sums[place].up) {
		s->sums[place].touched = true;
		s->touched[s->touched_count++] = place;
	}
}

/* The sums of a thread go from each place to the one above it. A way that was begun later ends at one that was begun
 * earlier, so from the last to the first every place is complete when its turn comes. */
static void add_ways(struct summing *s)
{
	bool by_place = s->q->by != BY_THREAD && s->q->by != BY_PROCESS;

	for (size_t end = s->touched_count, run = s->run_count; run-- > 0; end = s->runs[run].first) {
		for (size_t i = s->runs[run].first; i < end; i++) {
			uint32_t place = s->touched[i];
			const struct tree_node *node = &s->tree.nodes[place];
			struct sum sum = s->sums[place];

			for (uint32_t k = node->first; by_place && k < node->end; k++)
				tally_add(&s->inclusive, s->tree.firsts[k], sum.weight, sum.deliveries);
			s->sums[place] = (struct sum){.up = sum.up};
			if (place == TREE_ROOT)
				continue;
			s->sums[sum.up].weight += sum.weight;
			s->sums[sum.up].deliveries += sum.deliveries;
		}
	}
	s->touched_count = s->run_count = 0;
}

static void add_sample(struct summing *s, struct hotspot_group *g, const struct profile_sample *sample)
{
	uint32_t place = place_of(s, sample), weight = sample->weight;
	const struct tree_node *node = &s->tree.nodes[place];
	uint32_t of_thread = s->thread_label[sample->thread], of_process = s->process_label[sample->thread];
	uint32_t delivered = sample->node != 0; /* weight without a stack came with no signal of its own */
	enum hotspot_by by = s->q->by;

	g->weight += weight;
	g->deliveries += delivered;
	g->stacked += delivered ? weight : 0;
	g->effective += (double)weight * weight * delivered; /* the sum of squares, until the group is whole */
	if (delivered) {
		g->complete += sample->flags & PROFILE_COMPLETE ? weight : 0;
		g->cut += sample->flags & PROFILE_CUT ? weight : 0;
		g->guessed += sample->flags & PROFILE_GUESSED ? weight : 0;
	}
	tally_add(&s->modules, node->module, weight, delivered);
	tally_add(&s->thread_names, of_thread, weight, delivered);
	tally_add(&s->self,
		  by == BY_MODULE    ? node->module
		  : by == BY_THREAD  ? of_thread
		  : by == BY_PROCESS ? of_process
				     : node->self,
		  weight, delivered);
	if (by == BY_THREAD || by == BY_PROCESS)
		tally_add(&s->inclusive, by == BY_THREAD ? of_thread : of_process, weight, delivered);
	else if (place == TREE_ROOT) /* it has no way on which it could be counted */
		tally_add(&s->inclusive, by == BY_MODULE ? node->module : node->self, weight, delivered);
	if (s->q->focus) {
		tally_add(&s->callers, node->above, weight, delivered);
		tally_add(&s->callees, node->below, weight, delivered);
	}
	touch_way(s, place, weight, delivered);
}

static int add_thread_row(struct hotspot_group *g, const struct profile_thread *thread, uint64_t weight,
			  uint64_t deliveries, double period_s, struct error *err)
{
	struct hotspot_rows *rows = &g->busiest_threads;
	struct hotspot_row *items = rows->items;

	/* Room for a power of two. */
	if ((rows->count & (rows->count - 1)) == 0)
		items = reallocarray(items, rows->count ? 2 * rows->count : 1, sizeof *items);
	if (!items)
		return error_set(err, "out of memory for the threads of a profile");
	rows->items = items;
	items[rows->count] = (struct hotspot_row){
		.name = strdup(thread->name),
		.known = true,
		.weight = weight,
		.deliveries = deliveries,
		.cpu_s = (double)weight * period_s,
		.threads = 1,
		.busiest_tid = thread->tid,
		.busiest_thread_s = (double)weight * period_s,
		.pct_of_wall_on_busiest_thread = g->wall_s > 0 ? 100 * (double)weight * period_s / g->wall_s : NAN,
	};
	return items[rows->count++].name ? 0 : error_set(err, "out of memory for the threads of a profile");
}

/* The thread whose samples begin at order[*at]; moves *at behind them. */
static int add_thread(struct summing *s, struct hotspot_group *g, unsigned section, size_t *at, struct error *err)
{
	uint32_t thread = s->p->samples[s->order[*at]].thread;
	uint64_t weight = g->weight, deliveries = g->deliveries;
	int tid = s->p->threads[thread].tid;

	for (; *at < s->p->sample_count; ++*at) {
		const struct profile_sample *sample = &s->p->samples[s->order[*at]];

		if (sample->thread != thread || s->section[s->order[*at]] != section)
			break;
		add_sample(s, g, sample);
	}
	weight = g->weight - weight;
	deliveries = g->deliveries - deliveries;
	add_ways(s);
	if (weight > s->most) {
		const struct tally_scale scale = {s->p->period_s, g->wall_s, weight, LEADING_ROWS};

		g->second_s = (double)s->most * s->p->period_s;
		s->most = weight;
		hotspot_rows_release(&g->of_busiest);
		if (tally_thread_rows(&s->self, self_labels(s), &scale, &g->of_busiest, err) < 0)
			return -1;
	} else {
		g->second_s = fmax(g->second_s, (double)weight * s->p->period_s);
	}
	tally_end_thread(&s->self, tid);
	tally_end_thread(&s->inclusive, tid);
	tally_end_thread(&s->modules, tid);
	tally_end_thread(&s->thread_names, tid);
	if (s->q->focus) {
		tally_end_thread(&s->callers, tid);
		tally_end_thread(&s->callees, tid);
	}
	g->thread_count++;
	return add_thread_row(g, &s->p->threads[thread], weight, deliveries, s->p->period_s, err);
}

/* Empties the tallies into the group's rows. */
static int make_rows(struct summing *s, struct hotspot_group *g, struct error *err)
{
	const struct tally_scale scale = {s->p->period_s, g->wall_s, g->weight, s->q->top};
	const struct {
		struct tally *tally;
		const struct row_names *labels;
		struct hotspot_rows *rows;
	} tables[] = {
		{&s->self, self_labels(s), &g->self},
		{&s->inclusive, self_labels(s), &g->inclusive},
		{&s->modules, &s->tree.modules, &g->modules},
		{&s->thread_names, &s->threads, &g->threads},
		{&s->callers, &s->tree.functions, &g->callers},
		{&s->callees, &s->tree.functions, &g->callees},
	};

	for (size_t i = 0; i < g->busiest_threads.count; i++)
		g->busiest_threads.items[i].share =
			g->weight ? (double)g->busiest_threads.items[i].weight / (double)g->weight : 0;
	hotspot_rows_finish(&g->busiest_threads, s->q->top);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		if (!tables[i].tally->cells)
			continue;
		if (tally_rows(tables[i].tally, tables[i].labels, &scale, tables[i].rows, err) < 0)
			return -1;
		tally_clear(tables[i].tally);
	}
	return 0;
}

/* Adds a group of the samples in a section, from order[*at] on. */
static int add_group(struct summing *s, struct hotspot_group *g, unsigned section, size_t *at, struct error *err)
{
	const struct section *of = &s->sections->items[section];

	*g = (struct hotspot_group){.phase_names = of->phase_names, .first = of->first, .wall_s = of->wall_s};
	g->name = strdup(of->name);
	g->phases = of->phases ? strdup(of->phases) : NULL;
	if (!g->name || (of->phases && !g->phases))
		return error_set(err, "out of memory for the groups of a profile");
	s->most = 0;
	while (*at < s->p->sample_count && s->section[s->order[*at]] == section)
		if (add_thread(s, g, section, at, err) < 0)
			return -1;
	g->cpu_s = (double)g->weight * s->p->period_s;
	g->effective = g->effective > 0 ? (double)g->stacked * (double)g->stacked / g->effective : 0;
	return make_rows(s, g, err);
}

/* The sections that have samples, in their order. */
static int add_groups(struct summing *s, const struct sections *sections, struct hotspot_group **ret,
		      size_t *ret_count, struct error *err)
{
	size_t at = 0;

	s->sections = sections;
	*ret = calloc(SECTIONS_MAX, sizeof **ret);
	if (!*ret)
		return error_set(err, "out of memory for the groups of a profile");
	if (order_samples(s, err) < 0)
		return -1;
	for (unsigned i = 0; i < sections->count; i++)
		if (at < s->p->sample_count && s->section[s->order[at]] == i &&
		    add_group(s, &(*ret)[(*ret_count)++], i, &at, err) < 0)
			return -1;
	return 0;
}

/* A pattern that is no name's is a mistake, which an empty answer would not tell. */
static const char *find_lost_include(const struct summing *s)
{
	for (const char *const *pattern = s->q->include; pattern && *pattern; pattern++) {
		bool found = false;

		for (size_t i = 0; i < s->p->function_count && !found; i++)
			found = label_matches(*pattern, s->p->functions[i].name);
		for (size_t i = 0; i < s->p->module_count && !found; i++)
			found = label_matches(*pattern, s->p->modules[i].name);
		for (size_t i = 0; i < s->p->thread_count && !found; i++)
			found = label_matches(*pattern, s->p->threads[i].name);
		if (!found)
			return *pattern;
	}
	return NULL;
}

static bool has_before(const struct profile *p, const struct phases *phases)
{
	for (size_t i = 0; i < p->sample_count; i++)
		if (phases_at(phases, p->samples[i].t) == SIZE_MAX)
			return true;
	return false;
}

int hotspots_sum(struct hotspots *ret, const struct profile *p, const struct phases *phases,
		 const struct hotspot_query *query, struct error *err)
{
	CLEANUP(summing_release) struct summing s = {.p = p, .q = query};
	CLEANUP(sections_release) struct sections groups = {0};
	CLEANUP(sections_release) struct sections apart = {0};
	const char *other = phase_group_name(GROUP_OTHER);

	if (prepare(&s, err) < 0 || sections_of_groups(&groups, phases, query->group, err) < 0 ||
	    add_groups(&s, &groups, &ret->groups, &ret->group_count, err) < 0)
		return -1;
	for (size_t i = 0; i < ret->group_count; i++) {
		ret->weight += ret->groups[i].weight;
		ret->deliveries += ret->groups[i].deliveries;
	}
	ret->found_before = phases->count && has_before(p, phases);
	/* A section for the time before the phases says nothing of samples there. */
	ret->found_group = !query->group || groups.count > (groups.outside != SECTION_NONE) ||
			   (groups.outside != SECTION_NONE && (ret->found_before || !phases->count));
	ret->found_focus = !query->focus || s.tree.found_focus;
	ret->lost_include = find_lost_include(&s);
	if (query->group && strcmp(query->group, other) != 0)
		return 0;
	if (sections_of_phases(&apart, phases, err) < 0)
		return -1;
	return apart.count ? add_groups(&s, &apart, &ret->phases, &ret->phase_count, err) : 0;
}

/* Which group the phases stand for; group_count: none. */
static size_t group_apart(const struct hotspots *h)
{
	size_t i = 0;

	while (i < h->group_count &&
	       (!h->phase_count || strcmp(h->groups[i].name, phase_group_name(GROUP_OTHER)) != 0))
		i++;
	return i;
}

size_t hotspots_section_count(const struct hotspots *h)
{
	return group_apart(h) < h->group_count ? h->group_count - 1 + h->phase_count : h->group_count;
}

const struct hotspot_group *hotspots_section(const struct hotspots *h, size_t i)
{
	size_t apart = group_apart(h), group = 0, phase = 0;

	if (apart == h->group_count)
		return &h->groups[i];
	for (;; i--) {
		const struct hotspot_group *next;

		group += group == apart;
		if (phase == h->phase_count ||
		    (group < h->group_count && h->groups[group].first < h->phases[phase].first))
			next = &h->groups[group++];
		else
			next = &h->phases[phase++];
		if (i == 0)
			return next;
	}
}

struct profile_account profile_account_of(const struct profile *p, double cpu_s)
{
	struct profile_account a = {.cpu_s = cpu_s};
	uint64_t dropped_weight = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		if (p->images[p->threads[p->samples[i].thread].image].disbelieved)
			continue;
		a.weight += p->samples[i].weight;
		a.deliveries += p->samples[i].node != 0;
	}
	for (size_t i = 0; i < p->image_count; i++) {
		if (p->images[i].disbelieved)
			continue;
		a.dropped += p->images[i].dropped;
		dropped_weight += p->images[i].dropped_weight;
		a.sampler_s += (double)p->images[i].handler_ns / 1e9;
	}
	a.sampled_s = (double)a.weight * p->period_s;
	a.dropped_s = (double)dropped_weight * p->period_s;
	return a;
}
