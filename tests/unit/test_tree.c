#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/procfs.h"
#include "exec/forks.h"
#include "exec/tree.h"
#include "held.h"
#include "need.h"
#include "scratch.h"

static void need_fork_events(void)
{
	struct error why = {""};

	need("perf", tree_fork_events_available(&why) == 0, "%s", why.text);
}

/* Follows a target from before its exec until it has ended. */
struct followed {
	struct held held;
	struct process_table table;
	struct tree *tree;
};

static void follow_below(struct followed *f, const char *const argv[], pid_t helper)
{
	struct error err;

	f->held = held_start(argv);
	process_table_init(&f->table);
	if (tree_new(f->held.pid, helper, &f->table, &f->tree, &err) < 0)
		fail_msg("%s", err.text);
	held_release(&f->held);
}

static void follow(struct followed *f, const char *const argv[])
{
	follow_below(f, argv, getpid());
}

static int follow_to_end(struct followed *f)
{
	int status = 0;

	while (!held_ended(&f->held, &status)) {
		tree_update(f->tree, clock_mono_ns());
		clock_sleep_ns(5 * NS_PER_MS);
	}
	tree_update(f->tree, clock_mono_ns());
	return status;
}

static void unfollow(struct followed *f)
{
	tree_free(f->tree);
	process_table_release(&f->table);
	held_close(&f->held);
}

/* A test that fails must not spoil those after it. */
static int allow_again(void **state)
{
	(void)state;
	forks_forbid(NULL);
	forks_forbid_machine(false);
	procfs_set_roots(NULL, NULL);
	return 0;
}

static int allow_again_and_remove(void **state)
{
	allow_again(state);
	return scratch_remove(state);
}

static void count_200(void)
{
	struct followed f;
	struct tree_counts counts;

	need_fork_events();
	follow(&f, (const char *const[]){held_target("many_children"), "200", "0", "4", NULL});
	assert_int_equal(follow_to_end(&f), 0);
	tree_counts(f.tree, &counts);
	if (!counts.exact)
		fail_msg("not exact: %s", counts.why);
	assert_int_equal(counts.processes, 201);
	assert_true(counts.unseen <= 200);
	assert_int_equal(tree_survivors(f.tree, NULL, 0), 0);
	assert_int_equal(f.table.alive, 0);
	unfollow(&f);
}

static void all_of_200_short_children_are_counted(void **state)
{
	(void)state;
	count_200();
}

static void all_of_200_short_children_are_counted_by_inherited_events(void **state)
{
	(void)state;
	forks_forbid_machine(true);
	count_200();
}

static void count_threads(void)
{
	struct followed f;
	struct tree_counts counts;

	need_fork_events();
	follow(&f, (const char *const[]){held_target("threads_clone"), "20", "1", NULL});
	assert_int_equal(follow_to_end(&f), 0);
	tree_counts(f.tree, &counts);
	assert_true(counts.exact);
	assert_int_equal(counts.processes, 1);
	unfollow(&f);
}

static void threads_are_no_processes(void **state)
{
	(void)state;
	count_threads();
}

static void threads_are_no_processes_to_inherited_events(void **state)
{
	(void)state;
	forks_forbid_machine(true);
	count_threads();
}

static void children_of_children_are_counted_and_others_forks_are_not(void **state)
{
	struct held bystander;
	struct followed f;
	struct tree_counts counts;
	int status;

	(void)state;
	need_fork_events();
	bystander = held_start((const char *const[]){held_target("many_children"), "1000000", "0", NULL});
	held_release(&bystander);
	/* Ten shells, each with ten children. */
	follow_below(&f,
		     (const char *const[]){
			     "sh", "-c",
			     "for i in 0 1 2 3 4 5 6 7 8 9; do sh -c 'for j in 0 1 2 3 4 5 6 7 8 9; do /bin/true; "
			     "done; exit 0' & done; wait",
			     NULL},
		     0);
	while (!held_ended(&f.held, &status))
		tree_update(f.tree, clock_mono_ns());
	assert_int_equal(status, 0);
	tree_counts(f.tree, &counts);
	kill(bystander.pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	held_close(&bystander);
	if (counts.exact)
		assert_int_equal(counts.processes, 1 + 10 + 100);
	else
		assert_true(counts.processes <= 1 + 10 + 100);
	unfollow(&f);
}

static void a_storm_of_forks_is_counted_or_said_to_be_incomplete(void **state)
{
	struct followed f;
	struct tree_counts counts;
	int status = 0;

	(void)state;
	need_fork_events();
	/* Nobody reads the rings meanwhile. */
	follow(&f, (const char *const[]){held_target("many_children"), "6000", "0", "8", NULL});
	while (!held_ended(&f.held, &status))
		clock_sleep_ns(20 * NS_PER_MS);
	assert_int_equal(status, 0);
	tree_update(f.tree, clock_mono_ns());
	tree_counts(f.tree, &counts);
	if (counts.exact)
		assert_int_equal(counts.processes, 6001);
	else
		assert_true(counts.processes >= 1 && counts.processes <= 6001 && counts.why[0]);
	unfollow(&f);
}

static void without_fork_events_the_living_are_found_and_the_count_is_a_lower_bound(void **state)
{
	struct followed f;
	struct tree_counts counts;

	(void)state;
	forks_forbid("the test forbids it");
	follow(&f, (const char *const[]){held_target("many_children"), "20", "60000", "20", NULL});
	while (f.table.alive < 21) {
		tree_update(f.tree, clock_mono_ns());
		clock_sleep_ns(5 * NS_PER_MS);
	}
	tree_counts(f.tree, &counts);
	assert_false(counts.exact);
	assert_string_equal(counts.why, "the test forbids it");
	assert_int_equal(counts.processes, 21);
	assert_int_equal(f.table.seen, 21);
	assert_int_equal(tree_signal(f.tree, SIGKILL), 21);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(tree_survivors(f.tree, NULL, 0), 0);
	assert_int_equal(f.table.alive, 0);
	unfollow(&f);
}

static void find_daemon(void)
{
	struct followed f;
	struct process *p;
	char text[32] = "";
	pid_t survivors[4] = {0};
	int daemon;

	follow(&f, (const char *const[]){held_target("daemonise"), "60000", NULL});
	assert_int_equal(follow_to_end(&f), 0);
	assert_true(read(f.held.output, text, sizeof text - 1) > 0);
	daemon = atoi(text);
	assert_true(daemon > 0);
	assert_int_equal(tree_survivors(f.tree, survivors, 4), 1);
	assert_int_equal(survivors[0], daemon);
	p = process_find(&f.table, daemon);
	assert_non_null(p);
	assert_true(p->alive);
	/* The command has ended: only the daemon gets it. */
	assert_int_equal(tree_signal(f.tree, SIGKILL), 1);
	assert_int_equal(waitpid(daemon, NULL, 0), daemon);
	assert_int_equal(tree_survivors(f.tree, survivors, 4), 0);
	assert_int_equal(f.table.alive, 0);
	unfollow(&f);
}

static void a_daemon_is_found_by_fork_events(void **state)
{
	(void)state;
	need_fork_events();
	find_daemon();
}

static void a_daemon_is_found_without_fork_events(void **state)
{
	(void)state;
	forks_forbid("the test forbids it");
	find_daemon();
}

static void a_signal_reaches_the_whole_tree_and_nobody_else(void **state)
{
	struct followed f;
	int status = 0;
	pid_t bystander = fork();

	(void)state;
	if (bystander == 0) {
		/* Not the target's, though a child of its subreaper: it is in a tree of its own. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(bystander > 0);
	follow(&f, (const char *const[]){"sh", "-c", "sleep 60 & sleep 60 & sh -c 'sleep 60; true' & wait", NULL});
	/* The shells, and the three that sleep. */
	while (f.table.alive < 5 + 1) {
		tree_update(f.tree, clock_mono_ns());
		clock_sleep_ns(5 * NS_PER_MS);
	}
	assert_int_equal(kill(bystander, SIGKILL), 0);
	assert_int_equal(waitpid(bystander, NULL, 0), bystander);
	assert_int_equal(tree_signal(f.tree, SIGTERM), 5);
	while (!held_ended(&f.held, &status))
		clock_sleep_ns(NS_PER_MS);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(tree_survivors(f.tree, NULL, 0), 0);
	unfollow(&f);
}

static bool is_zombie(int pid)
{
	char text[512];
	struct proc_stat stat;
	ssize_t length = procfs_read_file(text, sizeof text, "%d/stat", pid);

	return length > 0 && proc_stat_scan(text, (size_t)length, &stat) && proc_stat_ended(&stat);
}

/* A zombie's entry in /proc stays until its parent asks for its status. */
static void a_zombie_counts_once_however_often_it_is_seen(void **state)
{
	struct followed f;
	struct process *zombie = NULL;
	int64_t now = clock_mono_ns();

	(void)state;
	forks_forbid("the test forbids it");
	follow(&f, (const char *const[]){"sh", "-c", "true & exec sleep 60", NULL});
	while (!zombie) {
		tree_update(f.tree, now += 100 * NS_PER_MS);
		for (size_t i = 0; i < f.table.count; i++)
			if (f.table.items[i].pid != f.held.pid && f.table.items[i].alive)
				zombie = &f.table.items[i];
	}
	while (!is_zombie(zombie->pid))
		clock_sleep_ns(NS_PER_MS);
	/* As whoever has read its stat says. */
	tree_process_gone(f.tree, zombie, now);
	assert_int_equal(f.table.seen, 2);
	/* Past the time when all are judged anew. */
	for (int i = 0; i < 60; i++)
		tree_update(f.tree, now += 100 * NS_PER_MS);
	assert_int_equal(f.table.seen, 2);
	assert_int_equal(f.table.alive, 1);
	assert_int_equal(tree_signal(f.tree, SIGKILL), 1);
	while (waitpid(-1, NULL, 0) > 0)
		;
	unfollow(&f);
}

static void a_command_that_becomes_another_program_is_renamed(void **state)
{
	struct followed f;
	struct process *p;

	(void)state;
	follow(&f, (const char *const[]){"sleep", "60", NULL});
	p = process_find(&f.table, f.held.pid);
	assert_non_null(p);
	for (const char *seen = ""; strcmp(seen, "sleep 60") != 0; clock_sleep_ns(NS_PER_MS)) {
		p->command_stale = true;
		tree_update(f.tree, clock_mono_ns());
		seen = p->command ? p->command : "";
	}
	assert_int_equal(tree_signal(f.tree, SIGKILL), 1);
	while (waitpid(-1, NULL, 0) > 0)
		;
	unfollow(&f);
}

/* From here on, on a /proc made by hand. */
static void make_process(int pid, int ppid, char mode, long start)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "%d", pid);
	assert_true(mkdir(scratch_path(path), 0700) == 0 || errno == EEXIST);
	snprintf(path, sizeof path, "%d/stat", pid);
	f = fopen(scratch_path(path), "we");
	assert_non_null(f);
	fprintf(f, "%d (p %d) x) %c %d 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %ld 0 0\n", pid, pid, mode, ppid, start);
	assert_int_equal(fclose(f), 0);
}

static void end_process(int pid)
{
	char path[64];

	snprintf(path, sizeof path, "%d/stat", pid);
	assert_int_equal(unlink(scratch_path(path)), 0);
	snprintf(path, sizeof path, "%d", pid);
	assert_int_equal(rmdir(scratch_path(path)), 0);
}

enum { HELPER = 500, COMMAND = 501 };

static struct tree *tree_by_hand(struct process_table *table)
{
	struct tree *tree;
	struct error err;

	procfs_set_roots(scratch_dir, NULL);
	forks_forbid("made by hand");
	make_process(1, 0, 'S', 1);
	make_process(HELPER, 1, 'S', 10);
	make_process(COMMAND, HELPER, 'S', 11);
	process_table_init(table);
	if (tree_new(COMMAND, HELPER, table, &tree, &err) < 0)
		fail_msg("%s", err.text);
	return tree;
}

static void end_by_hand(struct tree *tree, struct process_table *table)
{
	tree_free(tree);
	process_table_release(table);
}

/* Each update is later than any cost of the one before. */
static int64_t later(int64_t *now)
{
	return *now += 10 * NS_PER_S;
}

static void children_are_found_whatever_the_order_of_pids(void **state)
{
	struct process_table table;
	struct tree *tree = tree_by_hand(&table);
	int64_t now = 0;

	(void)state;
	/* A chain downwards in numbers, as after the pids have started anew. */
	make_process(9, 8, 'S', 20);
	make_process(8, 600, 'S', 19);
	make_process(600, 7, 'S', 18);
	make_process(7, COMMAND, 'S', 17);
	make_process(6, 1, 'S', 16);
	make_process(700, 6, 'S', 20);
	tree_update(tree, later(&now));
	assert_int_equal(table.alive, 5);
	for (int pid = 7; pid <= 9; pid++)
		assert_non_null(process_find(&table, pid));
	assert_null(process_find(&table, 700));
	assert_null(process_find(&table, 1));
	assert_null(process_find(&table, HELPER));
	assert_string_equal(process_find(&table, 9)->comm, "p 9) x");
	end_by_hand(tree, &table);
}

static void a_pid_of_an_unrelated_process_may_become_the_trees(void **state)
{
	struct process_table table;
	struct tree *tree = tree_by_hand(&table);
	int64_t now = 0;

	(void)state;
	make_process(40, 1, 'S', 20);
	tree_update(tree, later(&now));
	assert_int_equal(table.alive, 1);
	make_process(40, COMMAND, 'S', 30);
	tree_update(tree, later(&now));
	assert_int_equal(table.alive, 2);
	end_by_hand(tree, &table);
}

static void an_orphan_is_found_below_the_helper(void **state)
{
	struct process_table table;
	struct tree *tree = tree_by_hand(&table);
	int64_t now = 0;

	(void)state;
	make_process(40, HELPER, 'S', 20);
	end_process(COMMAND);
	tree_update(tree, later(&now));
	assert_int_equal(table.alive, 1);
	assert_non_null(process_find(&table, 40));
	assert_false(table.items[0].alive);
	end_by_hand(tree, &table);
}

static void a_pid_that_is_used_again_in_the_tree_is_another_process(void **state)
{
	struct process_table table;
	struct tree *tree = tree_by_hand(&table);
	int64_t now = 0;

	(void)state;
	make_process(40, COMMAND, 'S', 20);
	tree_update(tree, later(&now));
	tree_process_gone(tree, process_find(&table, 40), now);
	make_process(40, COMMAND, 'S', 99);
	tree_update(tree, later(&now));
	assert_int_equal(table.seen, 3);
	assert_int_equal(process_find(&table, 40)->start_ticks, 99);
	end_by_hand(tree, &table);
}

static void damaged_entries_of_proc_are_passed_over(void **state)
{
	static const char *const texts[] = {"", "40 (x", "40 (x) S", "\1\2\3)))", "40 (x) S 99999999999999999999 "};
	struct process_table table;
	struct tree *tree = tree_by_hand(&table);
	int64_t now = 0;

	(void)state;
	make_process(40, COMMAND, 'S', 20);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		FILE *f = fopen(scratch_path("40/stat"), "we");

		assert_non_null(f);
		fputs(texts[i], f);
		assert_int_equal(fclose(f), 0);
		tree_update(tree, later(&now));
		assert_int_equal(table.alive, 1);
	}
	end_by_hand(tree, &table);
}

static void a_command_that_is_not_there_is_an_error(void **state)
{
	struct process_table table;
	struct tree *tree;
	struct error err;

	(void)state;
	procfs_set_roots(scratch_dir, NULL);
	process_table_init(&table);
	assert_int_equal(tree_new(12345, 1, &table, &tree, &err), -1);
	assert_non_null(strstr(err.text, "12345/stat"));
	procfs_set_roots("/nowhere", NULL);
	assert_int_equal(tree_new(12345, 1, &table, &tree, &err), -1);
	assert_string_equal(err.text, "/nowhere: No such file or directory");
	process_table_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_of_200_short_children_are_counted, allow_again),
		cmocka_unit_test_teardown(all_of_200_short_children_are_counted_by_inherited_events, allow_again),
		cmocka_unit_test_teardown(threads_are_no_processes, allow_again),
		cmocka_unit_test_teardown(threads_are_no_processes_to_inherited_events, allow_again),
		cmocka_unit_test_teardown(children_of_children_are_counted_and_others_forks_are_not, allow_again),
		cmocka_unit_test_teardown(a_storm_of_forks_is_counted_or_said_to_be_incomplete, allow_again),
		cmocka_unit_test_teardown(without_fork_events_the_living_are_found_and_the_count_is_a_lower_bound,
					  allow_again),
		cmocka_unit_test_teardown(a_daemon_is_found_by_fork_events, allow_again),
		cmocka_unit_test_teardown(a_daemon_is_found_without_fork_events, allow_again),
		cmocka_unit_test_teardown(a_signal_reaches_the_whole_tree_and_nobody_else, allow_again),
		cmocka_unit_test_teardown(a_zombie_counts_once_however_often_it_is_seen, allow_again),
		cmocka_unit_test_teardown(a_command_that_becomes_another_program_is_renamed, allow_again),
		cmocka_unit_test_setup_teardown(children_are_found_whatever_the_order_of_pids, scratch_make,
						allow_again_and_remove),
		cmocka_unit_test_setup_teardown(a_pid_of_an_unrelated_process_may_become_the_trees, scratch_make,
						allow_again_and_remove),
		cmocka_unit_test_setup_teardown(an_orphan_is_found_below_the_helper, scratch_make,
						allow_again_and_remove),
		cmocka_unit_test_setup_teardown(a_pid_that_is_used_again_in_the_tree_is_another_process, scratch_make,
						allow_again_and_remove),
		cmocka_unit_test_setup_teardown(damaged_entries_of_proc_are_passed_over, scratch_make,
						allow_again_and_remove),
		cmocka_unit_test_setup_teardown(a_command_that_is_not_there_is_an_error, scratch_make,
						allow_again_and_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
