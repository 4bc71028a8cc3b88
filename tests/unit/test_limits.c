/* The rules on made-up phases: each case is what the counters would show of a plain situation, and its verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/movement.h"
#include "judged.h"

static void a_sleeper_on_a_busy_machine_waits_all_the_same(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 0.01;
	f->runqueue_wait_s = 0.05;
	f->machine_busy_s = 39.9;
	f->machine_steal_s = 10;
	f->psi_cpu_some = 0.9;
	expect(&r, LIMIT_WAIT, NULL, CONFIDENCE_HIGH, "slept");
}

static void what_was_not_measured_of_the_disk_does_not_hide_the_rest(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_LOAD);

	(void)state;
	f->cpu_s = 2;
	f->read_bytes = 5 * GIB;
	f->write_bytes = NAN;
	f->psi_io_some = 0.8;
	expect(&r, LIMIT_DISK, NULL, CONFIDENCE_HIGH, "512 MiB/s");
}

static void a_sleeper_waits(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = 0.01;
	expect(&r, LIMIT_WAIT, NULL, CONFIDENCE_HIGH, "slept");
}

static void half_asleep_is_neither_for_sure(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 5;
	expect(&r, LIMIT_WAIT, NULL, CONFIDENCE_LOW, "part of the time");
}

static void cold_pages_come_from_disk(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_LOAD);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 2;
	f->read_bytes = f->read_chars = 5 * GIB;
	f->psi_io_some = 0.8;
	add_disk(&r, 5 * GIB, 9.5);
	expect(&r, LIMIT_DISK, NULL, CONFIDENCE_HIGH, "vda");
}

static void a_disk_that_others_keep_busy_is_not_the_limit(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	f->read_bytes = 20 * MIB;
	f->psi_io_some = 0.8;
	add_disk(&r, 5 * GIB, 9.5);
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "busy");
}

static void pages_read_again_and_again_are_a_lack_of_memory(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_DECODE);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 6;
	f->read_bytes = 20 * GIB;
	f->machine_refault_bytes = 19.5 * GIB;
	f->psi_memory_some = 0.17;
	f->psi_io_some = 0.6;
	f->memory_limit = f->group_memory_peak = 240 * MIB;
	f->rss_peak = 200 * MIB;
	add_disk(&r, 20 * GIB, 9.5);
	expect(&r, LIMIT_RAM, NULL, CONFIDENCE_HIGH, "limit of 240 MiB");
}

static void a_cold_start_of_what_had_been_cached_once_is_a_matter_of_the_disk(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_LOAD);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 2;
	f->read_bytes = f->machine_refault_bytes = 5 * GIB;
	f->psi_memory_some = 0.7;
	f->psi_io_some = 0.8;
	f->memory_available = 15 * GIB;
	add_disk(&r, 5 * GIB, 9.5);
	add_series(&r, "input.0.size", "file /data/model.gguf", NAN, 5 * GIB);
	expect(&r, LIMIT_DISK, NULL, CONFIDENCE_HIGH, "vda");
}

static void a_kill_for_want_of_memory_says_it_all(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 0.5;
	f->oom_kills = 1;
	f->memory_limit = 200 * MIB;
	expect(&r, LIMIT_RAM, NULL, CONFIDENCE_HIGH, "limit of 200 MiB: the kernel killed 1 process ");
}

static void swapping_is_a_lack_of_memory(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 1;
	f->swap_in = f->swap_out = 2 * GIB;
	f->psi_memory_some = 0.5;
	expect(&r, LIMIT_RAM, NULL, CONFIDENCE_HIGH, "swapped");
}

/* A decode of one thread per CPU, of a model far larger than the caches. */
static struct phase_figures *decode(struct run *r, double tokens_per_s)
{
	struct phase_figures *f = quiet(r, GROUP_DECODE);

	f->cpu_s = f->machine_busy_s = 39.5;
	f->busiest_thread_s = 9.9;
	f->threads_max = 5;
	f->rss_peak = 400 * MIB;
	r->has_engine = true;
	r->engine.decode_tokens_per_s = tokens_per_s;
	r->weights.file_bytes = 310e6;
	r->weights.bytes_per_token = 305.5e6;
	r->bandwidth[0] = (struct bandwidth){.one = 20e9, .all = 33e9, .threads = 4, .touched = NAN};
	r->bandwidth[1] = (struct bandwidth){.one = 20e9, .all = 32e9, .threads = 4, .touched = NAN};
	return f;
}

static void a_decode_near_the_peak_is_held_by_memory_bandwidth(void **state)
{
	struct run r;

	(void)state;
	decode(&r, 105.5);
	expect(&r, LIMIT_MEMORY_BANDWIDTH, NULL, CONFIDENCE_HIGH, "32.2 GB/s");
}

static void a_peak_that_changed_makes_it_less_sure(void **state)
{
	struct run r;

	(void)state;
	decode(&r, 105.5);
	r.bandwidth[1].all = 45e9;
	expect(&r, LIMIT_MEMORY_BANDWIDTH, NULL, CONFIDENCE_MEDIUM, "33.0 to 45.0 GB/s");
}

static void a_slow_decode_of_busy_threads_is_not(void **state)
{
	struct run r;

	(void)state;
	decode(&r, 20);
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "4 CPUs");
}

static void more_than_memory_can_give_is_no_claim(void **state)
{
	struct run r;

	(void)state;
	decode(&r, 300);
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_MEDIUM, "memory");
}

static void weights_within_the_cache_are_no_claim(void **state)
{
	struct run r;
	struct phase_figures *f = decode(&r, 105.5);

	(void)state;
	f->rss_peak = 400 * MIB;
	r.cache_bytes = 512 * MIB;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_HIGH, "CPUs");
}

static void overlapping_requests_share_a_reading(void **state)
{
	struct run r;
	struct engine_request a = {.slot = 0, .start = 1, .end = 5000000000}, b = a;
	struct error err;

	(void)state;
	decode(&r, 105.5);
	b.slot = 1;
	assert_int_equal(engine_result_add_request(&r.engine, &a, &err), 0);
	assert_int_equal(engine_result_add_request(&r.engine, &b, &err), 0);
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_MEDIUM, "CPUs");
}

static void pages_touched_as_fast_as_a_streaming_probe_does(void **state)
{
	struct run r;
	struct phase_figures *f = decode(&r, NAN);

	(void)state;
	r.has_engine = false;
	r.bandwidth[1].touched = 14e9;
	f->touched_rate = 12e9;
	expect(&r, LIMIT_MEMORY_BANDWIDTH, NULL, CONFIDENCE_LOW, "distinct pages");
}

static void some_pages_touched_leave_it_open(void **state)
{
	struct run r;
	struct phase_figures *f = decode(&r, NAN);

	(void)state;
	r.has_engine = false;
	r.bandwidth[1].touched = 14e9;
	f->touched_rate = 5e9;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_MEDIUM, "waits for memory");
}

static void few_pages_touched_means_computing(void **state)
{
	struct run r;
	struct phase_figures *f = decode(&r, NAN);

	(void)state;
	r.has_engine = false;
	r.bandwidth[1].touched = 14e9;
	f->touched_rate = 0.5e9;
	expect(&r, LIMIT_CPU, "all threads", CONFIDENCE_MEDIUM, "threads that only spin");
}

static void add_gpu(struct run *r, double busy, double memory, double rx, double power)
{
	static const char scope[] = "gpu 0 H200";

	add_series(r, "gpu.0.utilization", scope, NAN, busy);
	add_series(r, "gpu.0.memory_utilization", scope, NAN, memory);
	add_series(r, "gpu.0.memory.target", scope, NAN, 40 * GIB);
	add_series(r, "gpu.0.pcie.rx", scope, NAN, rx);
	add_series(r, "gpu.0.pcie.tx", scope, NAN, 0);
	add_series(r, "gpu.0.pcie.peak", scope, NAN, 64e9);
	add_series(r, "gpu.0.throttle.power", scope, NAN, power);
	add_series(r, "gpu.0.throttle.thermal", scope, NAN, 0);
}

static void a_gpu_whose_memory_is_busy(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_DECODE);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	add_gpu(&r, 0.97, 0.75, 1e9, 0);
	expect(&r, LIMIT_GPU, "memory", CONFIDENCE_HIGH, "H200");
}

static void a_gpu_that_others_use_is_not_the_limit(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_DECODE);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	add_gpu(&r, 0.97, 0.75, 1e9, 0);
	for (size_t i = 0; i < r.series_count; i++)
		if (strcmp(r.series[i].name, "gpu.0.memory.target") == 0)
			r.series[i].phases[0].mean = 0;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "busy");
}

static void a_gpu_held_by_its_power_limit(void **state)
{
	struct run r;

	(void)state;
	quiet(&r, GROUP_PREFILL);
	add_gpu(&r, 0.97, 0.3, 1e9, 0.6);
	expect(&r, LIMIT_GPU, "power", CONFIDENCE_HIGH, "power limit 60");
}

static void a_link_that_is_full_while_the_gpu_idles(void **state)
{
	struct run r;

	(void)state;
	quiet(&r, GROUP_LOAD);
	add_gpu(&r, 0.05, 0.02, 60e9, 0);
	expect(&r, LIMIT_PCIE, NULL, CONFIDENCE_HIGH, "PCIe");
}

static void a_full_link_is_the_network(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = 1;
	add_series(&r, "net.eth0.rx_bytes", "network eth0", 1.2e9, NAN);
	add_series(&r, "net.eth0.tx_bytes", "network eth0", 1e6, NAN);
	add_series(&r, "net.eth0.speed", "network eth0", NAN, 125e6);
	expect(&r, LIMIT_NETWORK, NULL, CONFIDENCE_HIGH, "eth0");
}

static void traffic_of_others_is_no_limit(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 1.5;
	add_series(&r, "net.eth0.rx_bytes", "network eth0", 1e8, NAN);
	add_series(&r, "net.eth0.tx_bytes", "network eth0", 1e6, NAN);
	add_series(&r, "net.eth0.speed", "network eth0", NAN, 1.25e9);
	expect(&r, LIMIT_WAIT, NULL, CONFIDENCE_MEDIUM, "went over eth0");
}

static void moving_bytes_with_stalls_unknown_is_not_surely_waiting_for_something_else(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = 0.1;
	f->psi_io_some = NAN;
	f->read_bytes = 300 * MIB;
	expect(&r, LIMIT_WAIT, NULL, CONFIDENCE_LOW, "on the disk, ");
}

static void refaults_of_others_are_not_the_commands(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	f->read_bytes = 2 * MIB;
	f->machine_refault_bytes = 40 * GIB;
	f->psi_memory_some = 0.9;
	f->memory_available = 0.5 * GIB;
	add_series(&r, "input.0.size", "file /data/small", NAN, 2 * MIB);
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "busy");
}

static void a_machine_whose_cpus_are_unknown_gives_none_away(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	r.cpus = r.cpus_allowed = 0;
	f->cpu_s = f->busiest_thread_s = f->machine_busy_s = 9.9;
	expect(&r, LIMIT_CPU, "one thread", CONFIDENCE_HIGH, "busy");
}

static void without_counters_nothing_is_claimed_and_they_are_named(void **state)
{
	struct run r;

	(void)state;
	stage(&r, GROUP_OTHER);
	expect(&r, LIMIT_UNKNOWN, NULL, CONFIDENCE_LOW, "Not measured: CPU time");
}

static void a_short_phase_is_not_judged(void **state)
{
	struct run r;
	struct phase_figures *f = quiet(&r, GROUP_OTHER);

	(void)state;
	r.phases.items[0].end = 99000000;
	f->cpu_s = f->busiest_thread_s = 0.1;
	expect(&r, LIMIT_UNKNOWN, NULL, CONFIDENCE_LOW, "too short");
}

/* Whatever is missing, no rule may take it for a fact: each counter in turn, and each pair, is taken away from every
 * situation above that has them all, and only weaker words may come of it, never a crash or a cut sentence. */
static void no_sentence_is_cut_whatever_is_missing(void **state)
{
	static const double values[] = {NAN, 0, 1e-9, 1, 1e3, 1e12, 1e15};
	size_t fields = sizeof(struct phase_figures) / sizeof(double), n = sizeof values / sizeof *values;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		struct run r;
		struct error err;
		double *figures;
		uint64_t seed = i * UINT64_C(0x9e3779b97f4a7c15) + 1;

		stage(&r, (enum phase_group)(i % GROUP_COUNT));
		figures = (double *)r.figures;
		for (size_t k = 0; k < fields; k++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			figures[k] = values[seed % n];
		}
		r.has_engine = i % 3 == 0;
		r.engine.decode_tokens_per_s = values[seed / 8 % n];
		r.weights.bytes_per_token = values[seed / 64 % n];
		r.bandwidth[0].one = r.bandwidth[0].all = 1e10;
		assert_int_equal(limits_judge(&r, &err), 0);
		assert_int_equal(movement_judge(&r, &err), 0);
		assert_true(strlen(r.limits[0].why) < sizeof r.limits[0].why - 1);
		assert_true(r.limits[0].why[strlen(r.limits[0].why) - 1] == '.');
		if (strstr(r.limits[0].why, "nan") || strstr(r.limits[0].why, "inf"))
			fail_msg("%s", r.limits[0].why);
		for (size_t k = 0; k < r.movement_count; k++)
			assert_true(r.movements[k].text[strlen(r.movements[k].text) - 1] == '.');
		run_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_for_want_of_memory_says_it_all),
		cmocka_unit_test(traffic_of_others_is_no_limit),
		cmocka_unit_test(a_sleeper_waits),
		cmocka_unit_test(a_sleeper_on_a_busy_machine_waits_all_the_same),
		cmocka_unit_test(what_was_not_measured_of_the_disk_does_not_hide_the_rest),
		cmocka_unit_test(half_asleep_is_neither_for_sure),
		cmocka_unit_test(cold_pages_come_from_disk),
		cmocka_unit_test(a_disk_that_others_keep_busy_is_not_the_limit),
		cmocka_unit_test(pages_read_again_and_again_are_a_lack_of_memory),
		cmocka_unit_test(a_cold_start_of_what_had_been_cached_once_is_a_matter_of_the_disk),
		cmocka_unit_test(swapping_is_a_lack_of_memory),
		cmocka_unit_test(a_decode_near_the_peak_is_held_by_memory_bandwidth),
		cmocka_unit_test(a_peak_that_changed_makes_it_less_sure),
		cmocka_unit_test(a_slow_decode_of_busy_threads_is_not),
		cmocka_unit_test(more_than_memory_can_give_is_no_claim),
		cmocka_unit_test(weights_within_the_cache_are_no_claim),
		cmocka_unit_test(overlapping_requests_share_a_reading),
		cmocka_unit_test(pages_touched_as_fast_as_a_streaming_probe_does),
		cmocka_unit_test(some_pages_touched_leave_it_open),
		cmocka_unit_test(few_pages_touched_means_computing),
		cmocka_unit_test(a_gpu_whose_memory_is_busy),
		cmocka_unit_test(a_gpu_that_others_use_is_not_the_limit),
		cmocka_unit_test(a_gpu_held_by_its_power_limit),
		cmocka_unit_test(a_link_that_is_full_while_the_gpu_idles),
		cmocka_unit_test(a_full_link_is_the_network),
		cmocka_unit_test(moving_bytes_with_stalls_unknown_is_not_surely_waiting_for_something_else),
		cmocka_unit_test(refaults_of_others_are_not_the_commands),
		cmocka_unit_test(a_machine_whose_cpus_are_unknown_gives_none_away),
		cmocka_unit_test(without_counters_nothing_is_claimed_and_they_are_named),
		cmocka_unit_test(a_short_phase_is_not_judged),
		cmocka_unit_test(no_sentence_is_cut_whatever_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
