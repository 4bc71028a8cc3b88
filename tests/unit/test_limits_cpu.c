/* The rules about the CPU on made-up phases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judged.h"

static void one_busy_thread_of_small_memory_is_cpu_for_sure(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "99");
}

static void one_busy_thread_of_large_memory_may_wait_for_it(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	f->rss_peak = 4 * GIB;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_MEDIUM, "waits for memory");
}

static void all_cpus_busy(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->machine_busy_s = 39.5;
	f->busiest_thread_s = 9.9;
	f->threads_max = 4;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "of the 4 CPUs");
}

static void two_busy_threads_of_many_cpus(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->machine_busy_s = 19.8;
	f->busiest_thread_s = 9.9;
	f->threads_max = 2;
	add_series(&r, "thread.11.cpu", "thread 11 of 10 worker", 9.9, NAN);
	add_series(&r, "thread.12.cpu", "thread 12 of 10 worker", 9.9, NAN);
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "2 working threads");
}

static void starved_threads_look_busy_and_are_called_contended(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 20;
	f->runqueue_wait_s = 18;
	f->busiest_thread_s = 5.5;
	f->machine_busy_s = 39.8;
	f->psi_cpu_some = 0.9;
	f->threads_max = 4;
	expect(&r, LIMIT_CPU, "contended", CONFIDENCE_HIGH, "47");
}

static void waiting_for_ones_own_threads_is_no_contention(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 39.5;
	f->machine_busy_s = 39.8;
	f->runqueue_wait_s = 35;
	f->busiest_thread_s = 6;
	f->threads_max = 8;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "wait for each other");
}

static void who_gets_nearly_all_is_not_held_back_by_a_small_neighbour(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 36.4;
	f->machine_busy_s = 39.8;
	f->runqueue_wait_s = 40;
	f->busiest_thread_s = 6;
	f->threads_max = 8;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "7.6 of its threads were ready");
}

static void a_crowd_of_threads_is_not_left_unknown(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->machine_busy_s = 32;
	f->runqueue_wait_s = 60;
	f->busiest_thread_s = 5;
	f->threads_max = 8;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_MEDIUM, "ready to run");
}

static void two_threads_on_the_one_cpu_of_their_affinity(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpus_allowed = 1.04; /* taskset had all CPUs for a moment */
	f->cpu_s = 9.95;
	f->machine_busy_s = 19.9; /* a neighbour on another CPU */
	f->runqueue_wait_s = 9.9;
	f->busiest_thread_s = 5;
	f->threads_max = 2;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "the one CPU that it may use");
}

static void what_the_hypervisor_takes_is_contention(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 6;
	f->machine_steal_s = 8;
	expect(&r, LIMIT_CPU, "contended", CONFIDENCE_MEDIUM, "hypervisor");
}

static void a_quota_is_named(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 5;
	f->runqueue_wait_s = 4.9;
	f->quota = 0.5;
	f->quota_periods = 100;
	f->throttled_periods = 99;
	f->throttled_s = 4.9;
	expect(&r, LIMIT_CPU, "quota", CONFIDENCE_HIGH, "0.5 CPUs");
}

static void copying_in_the_kernel_is_not_surely_computing(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->cpu_system_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	f->cpu_user_s = 0.1;
	f->read_chars = 130e9;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_MEDIUM, "99% of it in the kernel, which copied 12.1 GiB/s");
}

static void a_busy_thread_that_also_reads_from_disk_is_told_so(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	f->read_bytes = 6 * GIB;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_MEDIUM, "614 MiB/s came from disk");
}

static void the_only_thread_there_is_needs_no_others(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->machine_busy_s = 9.6;
	f->busiest_thread_s = 7.6; /* the first look came late */
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "One thread is busy 96%");
}

static void too_few_looks_at_threads_do_not_mean_that_none_waited(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	r.cpus = r.cpus_allowed = 2;
	f->cpu_s = 4.9;
	f->busiest_thread_s = f->runqueue_wait_s = 0;
	f->machine_busy_s = 19.9;
	f->psi_cpu_some = 0.99;
	expect(&r, LIMIT_CPU, "contended", CONFIDENCE_MEDIUM, "Some task waited for a CPU 99% of the time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_busy_thread_of_small_memory_is_cpu_for_sure),
		cmocka_unit_test(one_busy_thread_of_large_memory_may_wait_for_it),
		cmocka_unit_test(all_cpus_busy),
		cmocka_unit_test(two_busy_threads_of_many_cpus),
		cmocka_unit_test(starved_threads_look_busy_and_are_called_contended),
		cmocka_unit_test(waiting_for_ones_own_threads_is_no_contention),
		cmocka_unit_test(who_gets_nearly_all_is_not_held_back_by_a_small_neighbour),
		cmocka_unit_test(a_crowd_of_threads_is_not_left_unknown),
		cmocka_unit_test(two_threads_on_the_one_cpu_of_their_affinity),
		cmocka_unit_test(what_the_hypervisor_takes_is_contention),
		cmocka_unit_test(a_quota_is_named),
		cmocka_unit_test(copying_in_the_kernel_is_not_surely_computing),
		cmocka_unit_test(a_busy_thread_that_also_reads_from_disk_is_told_so),
		cmocka_unit_test(the_only_thread_there_is_needs_no_others),
		cmocka_unit_test(too_few_looks_at_threads_do_not_mean_that_none_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
