#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "model/timeline.h"

#define SECOND INT64_C(1000000000)

struct seen {
	size_t defined, ticks, points;
	int64_t t;
	struct timeline_point last[8];
};

static void on_define(void *context, uint32_t id, const struct series_desc *desc)
{
	struct seen *s = context;

	assert_int_equal(id, s->defined);
	assert_non_null(desc->name);
	s->defined++;
}

static void on_points(void *context, int64_t t, const struct timeline_point *points, size_t count)
{
	struct seen *s = context;

	s->ticks++;
	s->points += count;
	s->t = t;
	assert_true(count <= 8);
	memcpy(s->last, points, count * sizeof *points);
}

static const struct series_desc anon = {"memory.anon", "bytes", "memory", "tree", SERIES_GAUGE};
static const struct series_desc user = {"cpu.user", "s", "cpu", "tree", SERIES_COUNTER};

static void a_point_is_kept_when_it_changes_and_once_a_second(void **state)
{
	struct seen seen = {0};
	struct timeline tl;
	int id;

	(void)state;
	timeline_init(&tl, (struct timeline_sink){&seen, on_define, on_points});
	id = timeline_define(&tl, &anon);
	for (int64_t t = 0; t < 3 * SECOND; t += SECOND / 100) {
		timeline_put(&tl, id, t, t < SECOND / 2 ? 1 : 2);
		timeline_flush(&tl, t);
	}
	/* the first, the change at 0.5 s, and one a second after it */
	assert_int_equal(seen.points, 4);
	timeline_release(&tl);
}

static void a_tick_hands_over_all_its_points_at_once_and_the_last_offer_counts(void **state)
{
	struct seen seen = {0};
	struct timeline tl;
	int a, b;

	(void)state;
	timeline_init(&tl, (struct timeline_sink){&seen, on_define, on_points});
	a = timeline_define(&tl, &anon);
	b = timeline_define(&tl, &user);
	timeline_put(&tl, b, 5, 1);
	timeline_put(&tl, a, 5, 2);
	timeline_put(&tl, b, 5, 3);
	timeline_flush(&tl, 5);
	assert_int_equal(seen.ticks, 1);
	assert_int_equal(seen.points, 2);
	assert_int_equal(seen.last[0].id, b);
	assert_true(seen.last[0].value == 3);
	timeline_flush(&tl, 6);
	assert_int_equal(seen.ticks, 1);
	timeline_release(&tl);
}

static void values_that_are_missing_and_series_that_are_not_there_are_ignored(void **state)
{
	struct seen seen = {0};
	struct timeline tl;

	(void)state;
	timeline_init(&tl, (struct timeline_sink){&seen, on_define, on_points});
	timeline_put(&tl, timeline_define(&tl, &anon), 0, NAN);
	timeline_put(&tl, -1, 0, 1);
	timeline_put(&tl, 7, 0, 1);
	timeline_flush(&tl, 0);
	assert_int_equal(seen.points, 0);
	timeline_release(&tl);
}

static void at_an_end_every_value_is_kept(void **state)
{
	struct seen seen = {0};
	struct timeline tl;
	int id;

	(void)state;
	timeline_init(&tl, (struct timeline_sink){&seen, on_define, on_points});
	id = timeline_define(&tl, &anon);
	timeline_put(&tl, id, 0, 1);
	timeline_flush(&tl, 0);
	timeline_keep_all(&tl);
	timeline_put(&tl, id, 10, 1);
	timeline_flush(&tl, 10);
	timeline_put(&tl, id, 20, 1);
	timeline_flush(&tl, 20);
	assert_int_equal(seen.points, 2);
	assert_int_equal(seen.t, 10);
	timeline_release(&tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_is_kept_when_it_changes_and_once_a_second),
		cmocka_unit_test(a_tick_hands_over_all_its_points_at_once_and_the_last_offer_counts),
		cmocka_unit_test(values_that_are_missing_and_series_that_are_not_there_are_ignored),
		cmocka_unit_test(at_an_end_every_value_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
