#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "model/process.h"

static void a_living_process_is_found_by_its_pid(void **state)
{
	struct process_table t;
	struct process *p;

	(void)state;
	process_table_init(&t);
	assert_null(process_find(&t, 7));
	p = process_add(&t, 7, 1, 100, 5);
	assert_non_null(p);
	assert_ptr_equal(process_find(&t, 7), p);
	assert_int_equal(p->start_ticks, 100);
	assert_int_equal(p->rss, -1);
	process_died(&t, p, 9);
	assert_null(process_find(&t, 7));
	assert_int_equal(t.count, 1);
	assert_int_equal(t.alive, 0);
	assert_int_equal(t.items[0].last_seen, 9);
	process_table_release(&t);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	struct process_table t;

	(void)state;
	process_table_init(&t);
	assert_non_null(process_add(&t, 7, 1, 100, 5));
	assert_non_null(process_add(&t, 7, 1, 900, 6));
	assert_int_equal(t.seen, 2);
	assert_int_equal(t.alive, 1);
	assert_false(t.items[0].alive);
	assert_int_equal(process_find(&t, 7)->start_ticks, 900);
	process_table_release(&t);
}

/* Against a plain array of what should be there. */
static void any_mix_of_births_deaths_and_reaping_keeps_the_table_right(void **state)
{
	enum { PIDS = 3000 };
	static bool lives[PIDS];
	struct process_table t;
	size_t living = 0, peak = 0;

	(void)state;
	srandom(1);
	process_table_init(&t);
	for (int step = 0; step < 60000; step++) {
		int pid = (int)(random() % PIDS);
		struct process *p = process_find(&t, pid);

		assert_int_equal(p != NULL, lives[pid]);
		if (p) {
			assert_int_equal(p->pid, pid);
			process_died(&t, p, step);
			living--;
		} else {
			assert_non_null(process_add(&t, pid, 0, step, step));
			living++;
		}
		lives[pid] = !p;
		peak = living > peak ? living : peak;
		assert_int_equal(t.alive, living);
		if (step % 997 == 0) {
			process_table_reap(&t, NULL, NULL);
			assert_int_equal(t.count, living);
		}
	}
	assert_int_equal(t.peak_alive, peak);
	for (int pid = 0; pid < PIDS; pid++)
		assert_int_equal(process_find(&t, pid) != NULL, lives[pid]);
	process_table_release(&t);
}

static void count_dead(void *context, const struct process *p)
{
	assert_false(p->alive);
	*(int *)context += p->pid;
}

static void reaping_shows_each_of_the_dead_once(void **state)
{
	struct process_table t;
	int sum = 0;

	(void)state;
	process_table_init(&t);
	for (int pid = 1; pid <= 10; pid++)
		assert_non_null(process_add(&t, pid, 0, 0, 0));
	for (int pid = 2; pid <= 10; pid += 2)
		process_died(&t, process_find(&t, pid), 1);
	process_table_reap(&t, count_dead, &sum);
	assert_int_equal(sum, 2 + 4 + 6 + 8 + 10);
	assert_int_equal(t.count, 5);
	process_table_reap(&t, count_dead, &sum);
	assert_int_equal(sum, 30);
	assert_int_equal(process_find(&t, 9)->pid, 9);
	process_table_release(&t);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void a_death_closes_what_was_kept_open(void **state)
{
	struct process_table t;
	struct process *p;
	int fd = open("/dev/null", O_RDONLY), other = open("/dev/null", O_RDONLY);

	(void)state;
	process_table_init(&t);
	p = process_add(&t, 7, 0, 0, 0);
	assert_true(process_keep(&t, &p->stat_fd, fd));
	assert_true(process_keep(&t, &p->statm_fd, other));
	assert_int_equal(t.kept, 2);
	process_died(&t, p, 1);
	assert_int_equal(t.kept, 0);
	assert_false(is_open(fd));
	assert_false(is_open(other));
	process_table_release(&t);
}

static void no_more_descriptors_are_kept_than_the_limit_allows(void **state)
{
	struct process_table t;
	struct process *p;
	int fd;

	(void)state;
	process_table_init(&t);
	assert_true(t.kept_max > 0);
	t.kept_max = 1;
	p = process_add(&t, 7, 0, 0, 0);
	assert_true(process_keep(&t, &p->stat_fd, open("/dev/null", O_RDONLY)));
	fd = open("/dev/null", O_RDONLY);
	assert_false(process_keep(&t, &p->statm_fd, fd));
	assert_int_equal(p->statm_fd, -1);
	assert_false(is_open(fd));
	process_table_release(&t);
}

/* A tree of a parent (1) and a child (2), and rounds of readings of the parent's inherited CPU time. */
static struct process *parent(struct process_table *t)
{
	return process_find(t, 1);
}

static void make_family(struct process_table *t)
{
	process_table_init(t);
	assert_non_null(process_add(t, 1, 0, 0, 0));
	assert_non_null(process_add(t, 2, 1, 0, 0));
}

static void what_an_unseen_child_used_is_counted_when_its_parent_inherits_it(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	usage_read_inherited(&t, parent(&t), USAGE_USER, 50);
	usage_end_round(&t);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 50);
	process_table_release(&t);
}

static void what_was_counted_of_a_child_is_not_counted_again_when_inherited(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	usage_read(&t, process_find(&t, 2), USAGE_USER, 30);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 30);
	process_died(&t, process_find(&t, 2), 1);
	usage_read_inherited(&t, parent(&t), USAGE_USER, 45);
	usage_end_round(&t);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 45);
	process_table_release(&t);
}

static void a_death_that_is_noticed_after_the_inheritance_is_not_counted_twice(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	usage_read(&t, process_find(&t, 2), USAGE_USER, 30);
	usage_read_inherited(&t, parent(&t), USAGE_USER, 45);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 30);
	process_died(&t, process_find(&t, 2), 1);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 45);
	process_table_release(&t);
}

static void a_grandchild_is_counted_once_on_its_way_up(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	assert_non_null(process_add(&t, 3, 2, 0, 0));
	usage_read(&t, process_find(&t, 3), USAGE_CPU, 10);
	usage_read(&t, process_find(&t, 2), USAGE_CPU, 5);
	usage_read(&t, parent(&t), USAGE_CPU, 1);
	process_died(&t, process_find(&t, 3), 1);
	usage_read_inherited(&t, process_find(&t, 2), USAGE_CPU, 12);
	usage_end_round(&t);
	process_died(&t, process_find(&t, 2), 2);
	usage_read_inherited(&t, parent(&t), USAGE_CPU, 12 + 6);
	usage_end_round(&t);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_CPU], 12 + 6 + 1);
	process_table_release(&t);
}

static void input_of_a_child_shows_in_its_parents_own_counter_only_once(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	usage_read(&t, process_find(&t, 2), USAGE_READ_BYTES, 1000);
	usage_read(&t, parent(&t), USAGE_READ_BYTES, 10);
	usage_end_round(&t);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_READ_BYTES], 1010);
	process_died(&t, process_find(&t, 2), 1);
	usage_read(&t, parent(&t), USAGE_READ_BYTES, 10 + 1200);
	usage_end_round(&t);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_READ_BYTES], 1210);
	process_table_release(&t);
}

static void totals_never_go_down(void **state)
{
	struct process_table t;

	(void)state;
	make_family(&t);
	usage_read(&t, parent(&t), USAGE_USER, 100);
	usage_read(&t, parent(&t), USAGE_USER, 40);
	usage_read(&t, parent(&t), USAGE_USER, 110);
	usage_end_round(&t);
	assert_int_equal(t.used[USAGE_USER], 110);
	process_died(&t, parent(&t), 1);
	assert_int_equal(t.used[USAGE_USER], 110);
	process_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_living_process_is_found_by_its_pid),
		cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
		cmocka_unit_test(any_mix_of_births_deaths_and_reaping_keeps_the_table_right),
		cmocka_unit_test(reaping_shows_each_of_the_dead_once),
		cmocka_unit_test(a_death_closes_what_was_kept_open),
		cmocka_unit_test(no_more_descriptors_are_kept_than_the_limit_allows),
		cmocka_unit_test(what_an_unseen_child_used_is_counted_when_its_parent_inherits_it),
		cmocka_unit_test(what_was_counted_of_a_child_is_not_counted_again_when_inherited),
		cmocka_unit_test(a_death_that_is_noticed_after_the_inheritance_is_not_counted_twice),
		cmocka_unit_test(a_grandchild_is_counted_once_on_its_way_up),
		cmocka_unit_test(input_of_a_child_shows_in_its_parents_own_counter_only_once),
		cmocka_unit_test(totals_never_go_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
