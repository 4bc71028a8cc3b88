#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/bandwidth.h"
#include "exec/memory_room.h"
#include "fake_proc.h"

static int children_left(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 ? 0 : 1;
}

static void this_machine_is_measured(void **state)
{
	struct bandwidth b = {0};
	struct error err;
	int64_t before = clock_wall_ns();

	(void)state;
	if (bandwidth_measure(NULL, &b, &err) < 0)
		fail_msg("%s", err.text);
	/* No machine that this runs on, however slow and busy, and none faster than any. */
	assert_true(b.one > 1e6 && b.one < 1e13);
	assert_true(b.all > 1e6 && b.all < 1e13);
	assert_true(b.one_spread >= 0 && b.all_spread >= 0);
	assert_true(b.threads >= 1 && b.threads <= 64);
	assert_true(isnan(b.touched) || b.touched >= 0);
	assert_true(b.took_s > 0.5);
	assert_true(b.wall_ns >= before && b.wall_ns <= clock_wall_ns());
	assert_false(b.quiet);
	assert_int_equal(children_left(), 0);
}

static void as_many_threads_read_as_there_are_allowed_cpus(void **state)
{
	cpu_set_t all, one;
	struct bandwidth b = {0};
	struct error err;
	size_t cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	if (bandwidth_measure(NULL, &b, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	assert_int_equal(b.threads, 1);
	assert_true(b.all > 0);
}

static void a_signal_ends_it_early(void **state)
{
	struct bandwidth b = {0};
	struct error err = {""};
	volatile int stop = 1;

	(void)state;
	assert_int_equal(bandwidth_measure(&stop, &b, &err), -1);
	assert_non_null(strstr(err.text, "interrupted"));
	assert_int_equal(children_left(), 0);
	assert_true(b.one == 0);
}

static void with_little_memory_nothing_is_measured(void **state)
{
	struct bandwidth b = {0};
	struct error err = {""};

	(void)state;
	assert_int_equal(bandwidth_measure(NULL, &b, &err), -1);
	assert_non_null(strstr(err.text, "not known"));
	make_file("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 500000 kB\n");
	assert_int_equal(bandwidth_measure(NULL, &b, &err), -1);
	assert_non_null(strstr(err.text, "too little"));
	/* Enough, but for the size of the cache. */
	make_file("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 800000 kB\n");
	make_file("sys/devices/system/cpu/cpu0/cache/index0/level", "3\n");
	make_file("sys/devices/system/cpu/cpu0/cache/index0/type", "Unified\n");
	make_file("sys/devices/system/cpu/cpu0/cache/index0/size", "65536K\n");
	make_file("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n");
	assert_int_equal(bandwidth_measure(NULL, &b, &err), -1);
	assert_non_null(strstr(err.text, "too little"));
	assert_true(b.one == 0);
}

static void room_is(double expected)
{
	double room = memory_room_read();

	if (!(room == expected))
		fail_msg("the room is %.0f, not %.0f", room, expected);
}

static void the_least_limit_of_the_cgroups_above_counts(void **state)
{
	(void)state;
	assert_true(isnan(memory_room_read()));
	make_file("proc/meminfo", "MemTotal: 4000 kB\nMemAvailable: 1000 kB\n");
	room_is(1024000);
	make_file("proc/self/cgroup", "4:cpu:/odd\n3:memory:/a/b\n0::/c/d\n");
	room_is(1024000);
	make_file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900000\n");
	make_file("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "100000\n");
	room_is(800000);
	make_file("sys/fs/cgroup/c/d/memory.max", "max\n");
	make_file("sys/fs/cgroup/c/d/memory.current", "100000\n");
	room_is(800000);
	make_file("sys/fs/cgroup/c/memory.max", "700000\n");
	make_file("sys/fs/cgroup/c/memory.current", "500000\n");
	room_is(200000);
	make_file("sys/fs/cgroup/c/memory.stat", "anon 1\ninactive_file 300000\n");
	room_is(500000);
	/* More in use than is allowed, as after the limit was lowered. */
	make_file("sys/fs/cgroup/c/memory.current", "5000000\n");
	room_is(0);
}

static void make_cache(int cpu, int index, const char *level, const char *type, const char *size, const char *shared)
{
	const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
	const char *const texts[] = {level, type, size, shared};
	char path[128];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, names[i]);
		make_file(path, texts[i]);
	}
}

static void the_last_cache_is_that_of_the_highest_level(void **state)
{
	struct last_cache cache;

	(void)state;
	last_cache_read(&cache);
	assert_true(cache.all == 0 && cache.largest == 0);
	make_cache(0, 0, "1\n", "Data\n", "48K\n", "0\n");
	make_cache(0, 1, "1\n", "Instruction\n", "32K\n", "0\n");
	make_cache(0, 2, "2\n", "Unified\n", "1024K\n", "0\n");
	last_cache_read(&cache);
	assert_true(cache.all == 1024 * 1024 && cache.largest == 1024 * 1024);
	make_cache(0, 3, "3\n", "Unified\n", "32M\n", "0,2-5\n");
	/* The second CPU shares it, and does not count. */
	make_cache(1, 3, "3\n", "Unified\n", "32M\n", "0,2-5\n");
	last_cache_read(&cache);
	assert_true(cache.all == 32.0 * 1024 * 1024 && cache.largest == cache.all);
	make_file("sys/devices/system/cpu/cpu0/cache/index3/size", "\xff");
	last_cache_read(&cache);
	assert_true(cache.all == 0);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_machine_is_measured),
		cmocka_unit_test(as_many_threads_read_as_there_are_allowed_cpus),
		cmocka_unit_test(a_signal_ends_it_early),
		FAKE(with_little_memory_nothing_is_measured),
		FAKE(the_least_limit_of_the_cgroups_above_counts),
		FAKE(the_last_cache_is_that_of_the_highest_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
