#include "store/region_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "store/region_inside.h"
#include "store/region_row_figures.h"
#include "store/region_row_work.h"

#define SHARED_BELOW (UINT64_C(1) << 17) /* calls of a row whose workers may wait for each other */
#define WORKERS_MAX 64u
#define THREAD_ROWS_MAX 200000u
#define NO_ROW SIZE_MAX

struct work {
	const struct regions *r;
	const struct region_query *q;
	enum region_rows_by by;
	unsigned workers;
	struct region_budget budget;
	struct row_work **rows; /* of regions or of regions and ranks; each one's threads are its own */
	size_t row_count;
	size_t *row_of_part; /* NO_ROW: not asked for */
	size_t *row_parts;   /* parts by row, by rank in each: row i has those from row_first[i] to row_first[i + 1] */
	size_t *row_first;
	bool *wanted; /* parts of the next pass */
	_Atomic int64_t *part_totals;
	size_t thread_rows, pass_bytes;
	struct {
		int64_t first, last;
	} bounds[WORKERS_MAX];
};

static void work_release(struct work *w)
{
	for (size_t i = 0; w->rows && i < w->row_count; i++) {
		for (size_t k = 0; w->rows[i] && k < w->rows[i]->thread_count; k++)
			row_work_free(w->rows[i]->threads[k]);
		row_work_free(w->rows[i]);
	}
	free(w->rows);
	free(w->row_of_part);
	free(w->row_parts);
	free(w->row_first);
	free(w->wanted);
	free(w->part_totals);
}

static bool is_summarised(const struct region_part *part)
{
	return part->summarised && part->timed > 0;
}

struct keyed_part {
	uint32_t region, rank;
	size_t part;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed_part *x = a, *y = b;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->part > y->part) - (x->part < y->part);
}

/* The parts that are asked for, in the order of rows. */
static size_t choose_parts(const struct work *w, struct keyed_part *parts, const bool *names)
{
	size_t count = 0;

	for (size_t i = 0; i < w->r->part_count; i++) {
		const struct region_part *p = &w->r->parts[i];

		w->row_of_part[i] = NO_ROW;
		w->wanted[i] = region_query_takes_rank(w->q, p->rank);
		if (w->wanted[i] && p->region < w->r->name_count && names[p->region])
			parts[count++] = (struct keyed_part){p->region, p->rank, i};
	}
	qsort(parts, count, sizeof *parts, by_key);
	return count;
}

/* Begins row w->row_count with the parts [from, to). */
static int begin_row(struct work *w, const struct keyed_part *parts, size_t from, size_t to, struct error *err)
{
	uint64_t expected = 0;
	struct row_work *row;

	for (size_t i = from; i < to; i++) {
		w->row_of_part[parts[i].part] = w->row_count;
		w->row_parts[i] = parts[i].part;
		expected += w->r->parts[parts[i].part].count;
	}
	row = row_work_new(expected < SHARED_BELOW ? 1 : w->workers, &w->budget, err);
	if (!row)
		return -1;
	row->region = parts[from].region;
	row->rank = w->by == REGION_ROWS_BY_REGION ? -1 : (int64_t)parts[from].rank;
	row->thread = -1;
	row->expected = expected;
	w->row_first[w->row_count] = from;
	w->row_first[w->row_count + 1] = to;
	w->rows[w->row_count++] = row;
	return 0;
}

static int plan_rows(struct work *w, struct error *err)
{
	size_t part_count = w->r->part_count, count;
	CLEANUP(free_cleanup) struct keyed_part *parts = calloc(part_count + 1, sizeof *parts);
	CLEANUP(free_cleanup) bool *names = calloc(w->r->name_count + 1, sizeof *names);

	w->row_of_part = calloc(part_count + 1, sizeof *w->row_of_part);
	w->row_parts = calloc(part_count + 1, sizeof *w->row_parts);
	w->row_first = calloc(part_count + 2, sizeof *w->row_first);
	w->wanted = calloc(part_count + 1, sizeof *w->wanted);
	w->part_totals = calloc(part_count + 1, sizeof *w->part_totals);
	w->rows = calloc(part_count + 1, sizeof(struct row_work *));
	if (!parts || !names || !w->row_of_part || !w->row_parts || !w->row_first || !w->wanted || !w->part_totals ||
	    !w->rows)
		return error_set(err, "out of memory for %zu regions of ranks", part_count);
	if (region_query_names(w->q, (const char *const *)w->r->names, w->r->name_count, names, err) < 0)
		return -1;
	count = choose_parts(w, parts, names);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && parts[to].region == parts[from].region &&
				    (w->by == REGION_ROWS_BY_REGION || parts[to].rank == parts[from].rank);)
			to++;
		if (begin_row(w, parts, from, to, err) < 0)
			return -1;
	}
	return 0;
}

/* The row of a thread of a rank, or NULL and where it would stand. What is of no known thread is the rank's. */
static struct row_work *find_thread(struct row_work *of, int64_t thread, size_t *ret_at)
{
	size_t low = 0, high = of->thread_count;

	if (thread < 0)
		return of;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (of->threads[middle]->thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_at = low;
	return low < of->thread_count && of->threads[low]->thread == thread ? of->threads[low] : NULL;
}

/* The same, made where there is none; NULL with *err. */
static struct row_work *thread_row(struct work *w, struct row_work *of, int64_t thread, struct error *err)
{
	size_t low = 0;
	struct row_work **more, *row = find_thread(of, thread, &low);

	if (row)
		return row;
	if (w->thread_rows == THREAD_ROWS_MAX) {
		error_set(err, "%s has more than %u regions of threads", w->r->path, THREAD_ROWS_MAX);
		return NULL;
	}
	more = reallocarray(of->threads, of->thread_count + 1, sizeof(struct row_work *));
	if (!more) {
		error_set(err, "out of memory for %zu threads", of->thread_count + 1);
		return NULL;
	}
	of->threads = more;
	row = row_work_new(1, &w->budget, err);
	if (!row)
		return NULL;
	row->region = of->region;
	row->rank = of->rank;
	row->thread = thread;
	row->expected = UINT64_MAX;
	memmove(more + low + 1, more + low, (of->thread_count - low) * sizeof *more);
	more[low] = row;
	of->thread_count++;
	w->thread_rows++;
	return row;
}

/* Hands each run of calls of one thread to its row: `look` in a later pass. */
static int take_by_thread(struct work *w, struct row_work *row, const struct region_block *b, bool look,
			  struct error *err)
{
	const int64_t *threads = b->columns[REGION_THREAD], *gpu = b->columns[REGION_GPU];
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	for (size_t from = 0, to; from < b->n; from = to) {
		struct row_work *of = thread_row(w, row, threads ? threads[from] : -1, err);
		int64_t sum;

		for (to = from + 1; to < b->n && (!threads || threads[to] == threads[from]);)
			to++;
		if (!of)
			return -1;
		if (look && of->looking)
			row_work_look(of, starts + from, ends + from, to - from);
		else if (!look && row_work_add(of, 0, starts + from, ends + from, gpu ? gpu + from : NULL, to - from,
					       &sum, err) < 0)
			return -1;
	}
	return 0;
}

static bool any_summarised(const struct work *w, size_t row)
{
	for (size_t i = w->row_first[row]; i < w->row_first[row + 1]; i++)
		if (is_summarised(&w->r->parts[w->row_parts[i]]))
			return true;
	return false;
}

static int take_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct work *w = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];
	int64_t first = w->bounds[worker].first, last = w->bounds[worker].last, sum;
	size_t at = w->row_of_part[b->part];
	struct row_work *row;

	for (size_t i = 0; i < b->n; i++) {
		first = starts[i] < first ? starts[i] : first;
		last = ends[i] > last ? ends[i] : last;
	}
	w->bounds[worker].first = first;
	w->bounds[worker].last = last;
	if (at == NO_ROW)
		return 0;
	row = w->rows[at];
	if (w->by == REGION_ROWS_BY_THREAD)
		return take_by_thread(w, row, b, false, err);
	if (row_work_add(row, worker, starts, ends, b->columns[REGION_GPU], b->n, &sum, err) < 0)
		return -1;
	atomic_fetch_add(&w->part_totals[b->part], sum);
	/* The last calls of a row: what it kept makes room for the next ones. */
	if (atomic_fetch_add(&row->seen, b->n) + b->n == row->expected)
		return row_work_settle(row, any_summarised(w, at), err);
	return 0;
}

static int look_at_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct work *w = context;
	struct row_work *row = w->rows[w->row_of_part[b->part]];

	(void)worker;
	if (w->by == REGION_ROWS_BY_THREAD)
		return take_by_thread(w, row, b, true, err);
	if (row->looking)
		row_work_look(row, b->columns[REGION_START], b->columns[REGION_END], b->n);
	return 0;
}

static int scan(struct region_file *f, struct work *w, bool look, struct error *err)
{
	bool gpu = w->r->columns & 1u << REGION_GPU && !look, thread = w->by == REGION_ROWS_BY_THREAD;
	const struct region_scan scan = {
		.wanted = w->wanted,
		.columns = (gpu ? 1u << REGION_GPU : 0) | (thread ? 1u << REGION_THREAD : 0),
		.workers = w->workers,
		.block = look ? look_at_block : take_block,
		.context = w,
	};

	return region_file_scan(f, &scan, err);
}

/* Each row of the work, those of threads included: all(w, i, row) until one fails. */
static int each_row(struct work *w, int (*all)(struct work *w, size_t i, struct row_work *row, struct error *err),
		    struct error *err)
{
	for (size_t i = 0; i < w->row_count; i++) {
		for (size_t k = 0; k < w->rows[i]->thread_count; k++)
			if (all(w, i, w->rows[i]->threads[k], err) < 0)
				return -1;
		if (all(w, i, w->rows[i], err) < 0)
			return -1;
	}
	return 0;
}

static int settle_row(struct work *w, size_t i, struct row_work *row, struct error *err)
{
	if (row_work_settle(row, row->thread < 0 && any_summarised(w, i), err) < 0)
		return -1;
	return row->settled ? 0 : row_work_seek(row, err);
}

/* Chooses rows for a pass, as many as there is memory for and at least one; none where all are settled. */
static int begin_pass(struct work *w, bool *ret_any, struct error *err)
{
	size_t bytes = 0;

	*ret_any = false;
	memset(w->wanted, 0, w->r->part_count * sizeof *w->wanted);
	for (size_t i = 0; i < w->row_count; i++) {
		struct row_work *row = w->rows[i];

		for (size_t k = 0; k <= row->thread_count; k++) {
			struct row_work *of = k < row->thread_count ? row->threads[k] : row;
			size_t need = of->settled ? 0 : row_work_bytes(of);

			of->looking = !of->settled && (!*ret_any || bytes + need <= w->pass_bytes);
			if (!of->looking)
				continue;
			if (row_work_begin(of, err) < 0)
				return -1;
			bytes += need;
			*ret_any = true;
			for (size_t p = w->row_first[i]; p < w->row_first[i + 1]; p++)
				w->wanted[w->row_parts[p]] = true;
		}
	}
	return 0;
}

static int end_pass(struct work *w, size_t i, struct row_work *row, struct error *err)
{
	(void)w, (void)i, (void)err;
	if (row->looking)
		row_work_end(row);
	row->looking = false;
	return 0;
}

static int find_percentiles(struct region_file *f, struct work *w, struct error *err)
{
	bool any;

	for (;;) {
		if (begin_pass(w, &any, err) < 0)
			return -1;
		if (!any)
			return 0;
		if (scan(f, w, true, err) < 0 || each_row(w, end_pass, err) < 0)
			return -1;
	}
}

static int64_t find_wall(const struct work *w)
{
	int64_t first = INT64_MAX, last = INT64_MIN, wall;

	for (unsigned i = 0; i < w->workers; i++) {
		first = w->bounds[i].first < first ? w->bounds[i].first : first;
		last = w->bounds[i].last > last ? w->bounds[i].last : last;
	}
	for (size_t i = 0; i < w->r->part_count; i++) {
		const struct region_part *p = &w->r->parts[i];
		const struct region_summary *s = &p->summary;

		if (!is_summarised(p) || !region_query_takes_rank(w->q, p->rank) || s->start_minimum <= 0 ||
		    s->end_maximum < s->start_minimum)
			continue;
		first = s->start_minimum < first ? s->start_minimum : first;
		last = s->end_maximum > last ? s->end_maximum : last;
	}
	if (first > last)
		return 0;
	return __builtin_sub_overflow(last, first, &wall) ? INT64_MAX : wall;
}

static int add_note(struct region_table *t, char *text, struct error *err)
{
	char **more = text ? reallocarray(t->notes, t->note_count + 1, sizeof *more) : NULL;

	if (!more) {
		free(text);
		return error_set(err, "out of memory for a note");
	}
	t->notes = more;
	more[t->note_count++] = text;
	return 0;
}

/* The rows by number. */
struct numbered {
	struct work *w;
	struct row_work **rows;
	uint32_t count;
};

static uint32_t number_of(void *context, size_t part, int64_t thread)
{
	struct numbered *n = context;
	size_t at = n->w->row_of_part[part], unused;
	struct row_work *row = at == NO_ROW ? NULL : find_thread(n->w->rows[at], thread, &unused);

	return row ? row->number : UINT32_MAX;
}

static void add_inside(void *context, uint32_t number, int64_t duration)
{
	struct numbered *n = context;

	n->rows[number]->inside += duration;
}

static void number_rows(struct numbered *n)
{
	for (size_t i = 0; i < n->w->row_count; i++) {
		for (size_t k = 0; k <= n->w->rows[i]->thread_count; k++) {
			struct row_work *row = row_work_one(n->w->rows[i], k);

			row->number = n->count;
			n->rows[n->count++] = row;
		}
	}
}

static void mark_known(struct work *w, size_t at)
{
	for (size_t k = 0; at != NO_ROW && k <= w->rows[at]->thread_count; k++)
		row_work_one(w->rows[at], k)->inside_known = true;
}

/* What other regions took inside the calls of rows by thread; why it is not known becomes a note. */
static int find_inside(struct region_file *f, struct work *w, struct region_table *t, struct error *err)
{
	const unsigned needed = 1u << REGION_CALL | 1u << REGION_PARENT;
	CLEANUP(free_cleanup) struct row_work **rows = calloc(w->row_count + w->thread_rows + 1, sizeof *rows);
	CLEANUP(region_by_rank_release) struct region_by_rank by_rank = {0};
	struct numbered n = {.w = w, .rows = rows};
	const struct region_inside in = {.row_of = number_of, .add = add_inside, .context = &n};

	if (!rows)
		return error_set(err, "out of memory for %zu rows", w->row_count + w->thread_rows);
	if ((w->r->columns & needed) != needed)
		return w->thread_rows == 0 ? 0 : add_note(t, strdup("exclusive times of threads are not known: the "
								    "file does not say which call was made in which"),
							  err);
	number_rows(&n);
	if (region_by_rank_init(&by_rank, w->r, err) < 0)
		return -1;
	for (size_t i = 0; i < w->r->rank_count; i++) {
		uint32_t rank = w->r->ranks[i];
		char *why = NULL;

		if (!region_query_takes_rank(w->q, rank))
			continue;
		if (region_inside_rank(f, &by_rank, rank, &in, &why, err) < 0)
			return -1;
		for (size_t k = by_rank.from; !why && k < by_rank.to; k++)
			mark_known(w, w->row_of_part[by_rank.parts[k]]);
		if (why && add_note(t, why, err) < 0)
			return -1;
	}
	return 0;
}

/* Of one by thread. That of no known thread also has what the file only added up, which no parent is known of. */
static double exclusive_of(struct row_work *row, const struct region_row *shown)
{
	const struct region_tally *tally = row_work_tally(row);

	if (row->thread < 0 && row->thread_count == 0)
		return shown->exclusive;
	return row->inside_known && tally->count && tally->count == shown->timed
		       ? (double)(tally->sum - row->inside) : NAN;
}

static int put_row(struct work *w, size_t i, struct row_work *row, struct region_table *t, struct error *err)
{
	bool whole = w->by != REGION_ROWS_BY_THREAD;
	const struct row_parts parts = {w->r, w->row_parts + w->row_first[i], w->row_first[i + 1] - w->row_first[i],
					w->part_totals};
	struct region_row *ret = &t->rows[t->count];
	double wall;

	*ret = (struct region_row){.name = strdup(w->r->names[row->region])};
	if (!ret->name)
		return error_set(err, "out of memory for the name of a region");
	t->count++;
	if (row_figures(row, &parts, whole || row->thread < 0, ret, err) < 0)
		return -1;
	if (!whole && row->thread < 0) {
		/* What no thread's row has. */
		for (size_t k = 0; k < row->thread_count; k++)
			ret->calls -= row_work_tally(row->threads[k])->count;
	}
	if (!whole)
		ret->exclusive = exclusive_of(row, ret);
	ret->ranks_selected = row->rank < 0 ? t->ranks_selected : 1;
	wall = (double)t->wall * (double)ret->ranks_with;
	if (ret->timed && wall > 0)
		ret->share = (double)ret->total / wall;
	t->has_gpu |= ret->gpu_calls > 0;
	if (ret->calls == 0 && ret->dropped == 0) {
		free(ret->name);
		free(ret->ranks);
		t->count--;
	}
	return 0;
}

static int by_first_start(const void *a, const void *b)
{
	const struct region_row *x = a, *y = b;

	if ((x->timed > 0) != (y->timed > 0))
		return x->timed > 0 ? -1 : 1;
	if (x->first_start != y->first_start)
		return x->first_start < y->first_start ? -1 : 1;
	if (strcmp(x->name, y->name) != 0)
		return strcmp(x->name, y->name);
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static int note_backwards(const struct work *w, struct region_table *t, struct error *err)
{
	const char *example = NULL;
	uint64_t count = 0;
	char *text;

	for (size_t i = 0; i < w->row_count; i++) {
		for (size_t k = 0; k <= w->rows[i]->thread_count; k++) {
			struct row_work *row = row_work_one(w->rows[i], k);

			count += row_work_tally(row)->backwards;
			if (!example && row_work_tally(row)->backwards)
				example = w->r->names[row->region];
		}
	}
	if (count == 0)
		return 0;
	if (asprintf(&text,
		     "%s %s before %s begin%s, as in region '%s': durations below 0 count as they are",
		     units_count((double)count).text, count == 1 ? "call ends" : "calls end",
		     count == 1 ? "it" : "they", count == 1 ? "s" : "", example) < 0)
		text = NULL;
	return add_note(t, text, err);
}

static int fill_table(struct work *w, struct region_table *t, struct error *err)
{
	t->wall = find_wall(w);
	for (size_t i = 0; i < w->r->rank_count; i++)
		t->ranks_selected += region_query_takes_rank(w->q, w->r->ranks[i]);
	t->path = strdup(w->r->path ? w->r->path : "");
	t->rows = calloc(w->row_count + w->thread_rows + 1, sizeof *t->rows);
	if (!t->path || !t->rows)
		return error_set(err, "out of memory for %zu rows", w->row_count + w->thread_rows);
	for (size_t i = 0; i < w->row_count; i++) {
		for (size_t k = 0; k < w->rows[i]->thread_count; k++)
			if (put_row(w, i, w->rows[i]->threads[k], t, err) < 0)
				return -1;
		if (put_row(w, i, w->rows[i], t, err) < 0)
			return -1;
	}
	qsort(t->rows, t->count, sizeof *t->rows, by_first_start);
	return note_backwards(w, t, err);
}

int region_rows_within(struct region_file *f, const struct region_query *q, enum region_rows_by by, int64_t bytes,
		       struct region_table *ret, struct error *err)
{
	CLEANUP(work_release) struct work w = {.r = region_file_regions(f), .q = q, .by = by, .workers = 1};
	CLEANUP(region_table_release) struct region_table table;

	region_table_init(&table);
	if (by != REGION_ROWS_BY_THREAD)
		w.workers = region_file_workers() < WORKERS_MAX ? region_file_workers() : WORKERS_MAX;
	atomic_init(&w.budget.left, bytes);
	w.pass_bytes = (size_t)bytes;
	for (unsigned i = 0; i < w.workers; i++) {
		w.bounds[i].first = INT64_MAX;
		w.bounds[i].last = INT64_MIN;
	}
	if (plan_rows(&w, err) < 0 || scan(f, &w, false, err) < 0 || each_row(&w, settle_row, err) < 0 ||
	    find_percentiles(f, &w, err) < 0 ||
	    (by == REGION_ROWS_BY_THREAD && find_inside(f, &w, &table, err) < 0) || fill_table(&w, &table, err) < 0)
		return -1;
	region_table_release(ret);
	*ret = table;
	region_table_init(&table);
	return 0;
}

int region_rows(struct region_file *f, const struct region_query *q, enum region_rows_by by, struct region_table *ret,
		struct error *err)
{
	return region_rows_within(f, q, by, REGION_ROWS_BYTES, ret, err);
}
