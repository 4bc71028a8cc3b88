/* region_rows over a file that is none: the reader is made up here, so that blocks come in any size, from several
 * threads at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/region_tally.h"
#include "store/region_rows.h"

#define WORKERS 4u

struct region_file {
	struct regions r;
	int64_t *columns[REGION_COLUMNS]; /* NULL: not there */
	size_t block;
	const struct region_scan *scan;
	_Atomic size_t next;
	size_t scans;
	bool fails;
};

int region_file_open(const char *path, struct region_file **ret, struct error *err)
{
	(void)ret;
	return error_set(err, "%s: there is no such file", path);
}

void region_file_free(struct region_file *f)
{
	(void)f;
}

void region_file_cleanup(struct region_file **f)
{
	region_file_free(*f);
}

const struct regions *region_file_regions(const struct region_file *f)
{
	return &f->r;
}

unsigned region_file_workers(void)
{
	return WORKERS;
}

static int hand_out(struct region_file *f, size_t part, unsigned worker, struct error *err)
{
	const struct region_part *p = &f->r.parts[part];

	for (uint64_t at = 0; at < p->count; at += f->block) {
		struct region_block b = {.part = part, .first = p->first + at, .n = f->block};

		if (at + b.n > p->count)
			b.n = (size_t)(p->count - at);
		for (size_t k = 0; k < REGION_COLUMNS; k++)
			if (f->columns[k] && (k < 2 || f->scan->columns & 1u << k))
				b.columns[k] = f->columns[k] + b.first;
		if (f->scan->block(f->scan->context, worker, &b, err) < 0)
			return -1;
	}
	return 0;
}

struct helper {
	struct region_file *f;
	unsigned worker;
	int got;
	struct error err;
};

static void *work(void *context)
{
	struct helper *h = context;

	for (;;) {
		size_t part = atomic_fetch_add(&h->f->next, 1);

		if (part >= h->f->r.part_count)
			return NULL;
		if (!h->f->scan->wanted || h->f->scan->wanted[part])
			h->got |= hand_out(h->f, part, h->worker, &h->err);
	}
}

int region_file_scan(struct region_file *f, const struct region_scan *scan, struct error *err)
{
	struct helper helpers[WORKERS];
	pthread_t threads[WORKERS];
	int got = 0;

	if (f->fails)
		return error_set(err, "a damaged file");
	f->scan = scan;
	f->scans++;
	atomic_store(&f->next, 0);
	for (unsigned i = 0; i < scan->workers; i++) {
		helpers[i] = (struct helper){.f = f, .worker = i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &helpers[i]), 0);
	}
	for (unsigned i = 0; i < scan->workers; i++) {
		pthread_join(threads[i], NULL);
		got |= helpers[i].got;
	}
	return got;
}

static struct region_file *file_new(size_t calls, size_t block)
{
	struct region_file *f = calloc(1, sizeof *f);

	assert_non_null(f);
	regions_init(&f->r);
	f->r.path = strdup("made.h5");
	f->block = block;
	for (size_t k = 0; k < 2; k++)
		f->columns[k] = calloc(calls + 1, sizeof **f->columns);
	f->r.columns = 3;
	return f;
}

static void file_free(struct region_file *f)
{
	regions_release(&f->r);
	for (size_t k = 0; k < REGION_COLUMNS; k++)
		free(f->columns[k]);
	free(f);
}

static struct region_part *part(struct region_file *f, uint32_t rank, const char *name, uint64_t count)
{
	uint32_t region = (uint32_t)regions_name(&f->r, name, NULL);
	struct region_part *p = regions_add_part(&f->r, rank, region, NULL);

	assert_non_null(p);
	p->first = f->r.call_count;
	p->count = p->calls = count;
	f->r.call_count += count;
	regions_add_rank(&f->r, rank, NULL);
	return p;
}

static void call(struct region_file *f, uint64_t at, int64_t start, int64_t duration)
{
	f->columns[REGION_START][at] = start;
	f->columns[REGION_END][at] = start + duration;
}

static void rows_of(struct region_file *f, const char *ranks, enum region_rows_by by, struct region_table *t)
{
	struct region_query q;
	struct error err;

	region_query_init(&q);
	region_table_init(t);
	if (ranks)
		assert_int_equal(region_query_set_ranks(&q, ranks, NULL), 0);
	if (region_rows(f, &q, by, t, &err) < 0)
		fail_msg("%s", err.text);
	region_query_release(&q);
}

/* solve on ranks 0, 1 and 3, io on rank 2 alone. */
static struct region_file *four_ranks(void)
{
	struct region_file *f = file_new(10, 2);

	part(f, 0, "solve", 3)->exclusive = 25;
	part(f, 1, "solve", 2)->exclusive = 10;
	part(f, 2, "io", 1);
	part(f, 3, "solve", 1)->exclusive = 60;
	for (int i = 0; i < 3; i++)
		call(f, (uint64_t)i, 1000 + i * 20, 10);
	call(f, 3, 1000, 20);
	call(f, 4, 1100, 10);
	call(f, 5, 900, 50);
	call(f, 6, 1840, 60);
	return f;
}

static void calls_of_all_ranks_are_pooled(void **state)
{
	struct region_file *f = four_ranks();
	struct region_table t;
	const struct region_row *row;

	(void)state;
	rows_of(f, NULL, REGION_ROWS_BY_REGION, &t);
	assert_int_equal(t.count, 2);
	assert_string_equal(t.rows[0].name, "io");
	assert_int_equal(t.wall, 1000);
	row = region_table_find(&t, "solve");
	assert_non_null(row);
	assert_int_equal(row->calls, 6);
	assert_int_equal(row->total, 120);
	assert_int_equal(row->min, 10);
	assert_int_equal(row->max, 60);
	assert_true(row->avg == 20 && row->p50 == 10 && row->exclusive == 95);
	assert_true(fabs(row->p95 - 50) < 1e-9 && fabs(row->p99 - 58) < 1e-9);
	assert_true(fabs(row->std - sqrt((4 * 100 + 1600) / 6.0)) < 1e-12);
	assert_int_equal(row->ranks_with, 3);
	assert_int_equal(row->ranks_selected, 4);
	assert_true(row->ranks[0] == 0 && row->ranks[1] == 1 && row->ranks[2] == 3);
	/* 30, 30 and 60: the mean is 40. */
	assert_true(fabs(row->imbalance - 50) < 1e-9);
	assert_true(fabs(row->share - 120 / 3000.0) < 1e-12);
	row = region_table_find(&t, "io");
	assert_true(row->imbalance == 0 && isnan(row->exclusive) && row->ranks_with == 1);
	assert_int_equal(f->scans, 1);
	region_table_release(&t);
	file_free(f);
}

static void ranks_that_are_not_asked_for_count_nowhere(void **state)
{
	struct region_file *f = four_ranks();
	struct region_table t;

	(void)state;
	rows_of(f, "0-1,7", REGION_ROWS_BY_REGION, &t);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.rows[0].total, 60);
	assert_int_equal(t.ranks_selected, 2);
	assert_int_equal(t.wall, 110);
	assert_true(t.rows[0].imbalance == 0);
	region_table_release(&t);
	rows_of(f, "9", REGION_ROWS_BY_REGION, &t);
	assert_true(t.count == 0 && t.wall == 0 && t.ranks_selected == 0);
	region_table_release(&t);
	file_free(f);
}

static void rows_of_ranks_have_no_imbalance(void **state)
{
	struct region_file *f = four_ranks();
	struct region_table t;

	(void)state;
	rows_of(f, NULL, REGION_ROWS_BY_RANK, &t);
	assert_int_equal(t.count, 4);
	assert_true(t.rows[1].rank == 0 && t.rows[1].total == 30 && isnan(t.rows[1].imbalance));
	assert_true(t.rows[1].exclusive == 25 && t.rows[1].ranks_selected == 1);
	assert_null(region_table_find(&t, "solve"));
	region_table_release(&t);
	file_free(f);
}

static void rows_of_threads_share_out_the_calls(void **state)
{
	struct region_file *f = four_ranks();
	static const int64_t threads[] = {0, 1, 0, -1, 2, 5, 0};
	struct region_table t;

	(void)state;
	f->columns[REGION_THREAD] = malloc(sizeof threads);
	memcpy(f->columns[REGION_THREAD], threads, sizeof threads);
	f->r.columns |= 1u << REGION_THREAD;
	f->r.parts[3].calls = 5;
	rows_of(f, NULL, REGION_ROWS_BY_THREAD, &t);
	assert_int_equal(t.count, 7);
	for (size_t i = 0; i < t.count; i++) {
		const struct region_row *row = &t.rows[i];

		if (row->rank == 0 && row->thread == 0)
			assert_true(row->calls == 2 && row->total == 20 && row->p50 == 10);
		else if (row->rank == 3 && row->thread == -1)
			assert_true(row->calls == 4 && row->timed == 0 && isnan(row->avg));
		else
			assert_true(row->calls == 1 && row->timed == 1);
		assert_true(isnan(row->exclusive));
	}
	region_table_release(&t);
	file_free(f);
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;

	x = *(const int64_t *)a;
	y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Many calls of three regions on eight ranks; those of "long" last too long to be counted by value. */
static void percentiles_are_exact_when_nothing_fits_the_budget(void **state)
{
	enum { RANKS = 8, EACH = 30000 };
	static const char *const names[] = {"short", "long", "mixed"};
	struct region_file *f = file_new((size_t)3 * RANKS * EACH, 4096);
	uint64_t seed = 42, at = 0;
	struct region_query q;
	struct region_table t;

	(void)state;
	for (uint32_t rank = 0; rank < RANKS; rank++)
		for (int k = 0; k < 3; k++)
			part(f, rank, names[k], EACH);
	for (size_t p = 0; p < f->r.part_count; p++) {
		for (uint64_t i = 0; i < EACH; i++, at++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			call(f, at, (int64_t)at,
			     (int64_t)((seed >> 33) % (p % 3 == 0 ? 3000 : 1u << 30) + (p % 3 == 1 ? 1u << 21 : 0)) >>
				     (p % 3 == 2 ? seed % 31 : 0));
		}
	}
	region_query_init(&q);
	region_table_init(&t);
	assert_int_equal(region_rows_within(f, &q, REGION_ROWS_BY_REGION, 300000, &t, NULL), 0);
	assert_true(f->scans >= 2);
	for (size_t k = 0; k < 3; k++) {
		size_t count = (size_t)RANKS * EACH, n = 0;
		int64_t *all = calloc(count, sizeof *all);
		const struct region_row *row = region_table_find(&t, names[k]);
		const double quantiles[] = {0.5, 0.95, 0.99}, got[] = {row->p50, row->p95, row->p99};

		assert_true(all && row);
		for (size_t p = k; p < f->r.part_count; p += 3)
			for (uint64_t i = f->r.parts[p].first; i < f->r.parts[p].first + EACH; i++)
				all[n++] = f->columns[REGION_END][i] - f->columns[REGION_START][i];
		qsort(all, count, sizeof *all, by_value);
		for (int i = 0; i < 3; i++) {
			struct region_quantile at_q = region_quantile_of(quantiles[i], count);

			assert_true(got[i] == region_quantile_value(at_q, all[at_q.low], all[at_q.high]));
		}
		assert_true(row->min == all[0] && row->max == all[count - 1] && row->calls == count);
		free(all);
	}
	region_table_release(&t);
	file_free(f);
}

static void calls_that_were_only_added_up_are_pooled_and_marked(void **state)
{
	struct region_file *f = four_ranks();
	struct region_part *p = &f->r.parts[0];
	const struct region_row *row;
	struct region_table t;

	(void)state;
	p->summarised = true;
	p->timed = 4;
	p->calls = 3 + 4 + 2; /* and two that were counted alone */
	p->dropped = 7;
	p->summary = (struct region_summary){.total = 80, .minimum = 5, .maximum = 35, .start_minimum = 800,
					     .end_maximum = 2000, .mean = 20, .m2 = 500};
	p->buckets = calloc(REGION_BUCKET_COUNT, sizeof *p->buckets);
	p->buckets[5] = 1;
	p->buckets[20] = 2;
	p->buckets[33] = 1;
	p->ns_per_unit = 1;
	rows_of(f, NULL, REGION_ROWS_BY_REGION, &t);
	row = region_table_find(&t, "solve");
	assert_true(row->calls == 12 && row->timed == 10 && row->dropped == 7);
	assert_true(row->total == 200 && row->min == 5 && row->max == 60 && row->avg == 20);
	assert_true(fabs(row->std - sqrt((2000 + 500) / 10.0)) < 1e-12);
	assert_true(row->approximate && row->p50 >= 10 && row->p50 <= 21 && row->p99 <= 60);
	assert_true(row->first_start == 800 && row->last_end == 2000 && t.wall == 1200);
	assert_false(region_table_find(&t, "io")->approximate);
	region_table_release(&t);
	/* Without a histogram percentiles are not known; the rest is. */
	free(p->buckets);
	p->buckets = NULL;
	rows_of(f, NULL, REGION_ROWS_BY_REGION, &t);
	row = region_table_find(&t, "solve");
	assert_true(isnan(row->p50) && !row->approximate && row->total == 200);
	region_table_release(&t);
	file_free(f);
}

static void a_damaged_file_leaves_the_table_alone(void **state)
{
	struct region_file *f = four_ranks();
	struct region_query q;
	struct region_table t;
	struct error err;

	(void)state;
	region_query_init(&q);
	region_table_init(&t);
	f->fails = true;
	assert_int_equal(region_rows(f, &q, REGION_ROWS_BY_REGION, &t, &err), -1);
	assert_string_equal(err.text, "a damaged file");
	assert_true(t.rows == NULL && t.path == NULL);
	file_free(f);
}

static void calls_that_end_before_they_begin_are_told(void **state)
{
	struct region_file *f = four_ranks();
	struct region_table t;

	(void)state;
	call(f, 0, 1000, -4);
	rows_of(f, NULL, REGION_ROWS_BY_REGION, &t);
	assert_int_equal(t.note_count, 1);
	assert_string_equal(t.notes[0], "1 call ends before it begins, as in region 'solve': durations below 0 count "
					"as they are");
	assert_int_equal(region_table_find(&t, "solve")->min, -4);
	region_table_release(&t);
	file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_all_ranks_are_pooled),
		cmocka_unit_test(ranks_that_are_not_asked_for_count_nowhere),
		cmocka_unit_test(rows_of_ranks_have_no_imbalance),
		cmocka_unit_test(rows_of_threads_share_out_the_calls),
		cmocka_unit_test(percentiles_are_exact_when_nothing_fits_the_budget),
		cmocka_unit_test(calls_that_were_only_added_up_are_pooled_and_marked),
		cmocka_unit_test(a_damaged_file_leaves_the_table_alone),
		cmocka_unit_test(calls_that_end_before_they_begin_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
