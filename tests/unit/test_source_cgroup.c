#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "source/cgroup_find.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)
#define COMMAND 4194306

/* Lines of mountinfo; each mount point is a folder of the scratch folder. */
static void make_mounts(const char *const lines[][3])
{
	char text[4096] = "20 1 0:20 / /proc rw - proc proc rw\n";
	size_t length = strlen(text);

	/* What is mounted of the hierarchy, where, and how. */
	for (size_t i = 0; lines[i][0]; i++)
		length += (size_t)snprintf(text + length, sizeof text - length,
					   "%zu 20 0:%zu %s %s/%s rw,relatime shared:9 - %s\n", 30 + i, 30 + i,
					   lines[i][0], scratch_dir, lines[i][1], lines[i][2]);
	make_file("proc/self/mountinfo", text);
}

static void make_membership(const char *text)
{
	char path[64];

	snprintf(path, sizeof path, "proc/%d/cgroup", COMMAND);
	make_file(path, text);
}

static void start(struct stage *s)
{
	stage_init(s, COMMAND);
	stage_open(s, &source_cgroup);
}

static void make_v1_memory(const char *folder, const char *limit)
{
	char path[128];
	const char *const files[][2] = {
		{"memory.usage_in_bytes", "5000\n"},
		{"memory.max_usage_in_bytes", "9000\n"},
		{"memory.stat", "cache 1\nrss 2\nworkingset_refault_file 1\npgmajfault 1\n"
				"total_cache 3000\ntotal_rss 2000\ntotal_workingset_refault_anon 2\n"
				"total_workingset_refault_file 30\ntotal_swap 400\ntotal_pgmajfault 50\n"},
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
		{"memory.limit_in_bytes", limit},
	};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
		make_file(path, files[i][1]);
	}
}

static void version_1_is_read_from_the_folders_of_its_controllers(void **state)
{
	struct stage s;

	(void)state;
	make_mounts((const char *const[][3]){{"/", "cg/memory", "cgroup cgroup rw,memory"},
					     {"/", "cg/cpu,cpuacct", "cgroup cgroup rw,cpu,cpuacct"},
					     {"/", "cg/unified", "cgroup2 cgroup2 rw"},
					     {NULL}});
	make_membership("5:memory:/jobs/a\n4:cpu,cpuacct:/jobs\n1:name=systemd:/x\n0::/\n");
	make_file("cg/unified/cgroup.procs", "");
	make_v1_memory("cg/memory/jobs", "70000\n");
	make_v1_memory("cg/memory/jobs/a", "9223372036854771712\n");
	make_file("cg/cpu,cpuacct/jobs/cpuacct.usage", "7000000000\n");
	make_file("cg/cpu,cpuacct/jobs/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n");
	make_file("cg/cpu,cpuacct/jobs/cpu.cfs_quota_us", "150000\n");
	make_file("cg/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.memory.current", 5000);
	assert_last("cgroup.memory.peak", 9000);
	assert_last("cgroup.memory.anon", 2000);
	assert_last("cgroup.memory.file", 3000);
	assert_last("cgroup.memory.swap", 400);
	assert_last("cgroup.refaults.file", 30 * (double)sysconf(_SC_PAGESIZE));
	assert_last("cgroup.refaults.anon", 2 * (double)sysconf(_SC_PAGESIZE));
	assert_last("cgroup.faults.major", 50);
	assert_last("cgroup.oom_kills", 3);
	assert_last("cgroup.cpu.usage", 7);
	assert_last("cgroup.cpu.periods", 10);
	assert_last("cgroup.cpu.throttled_periods", 4);
	assert_last("cgroup.cpu.throttled", 2);
	assert_last("cgroup.cpu.quota", 1.5);
	/* That of the group above, since this one has none. */
	assert_last("cgroup.memory.limit", 70000);
	assert_null(series_of("cgroup.pressure.cpu.some"));
	stage_release(&s);
}

static void version_2_is_read_from_one_folder_with_its_pressure(void **state)
{
	struct stage s;

	(void)state;
	make_mounts((const char *const[][3]){{"/", "cg", "cgroup2 cgroup rw,nsdelegate"}, {NULL}});
	make_membership("0::/user.slice/a b\n");
	make_file("cg/user.slice/memory.max", "90000\n");
	make_file("cg/user.slice/cpu.max", "max 100000\n");
	make_file("cg/user.slice/a b/cgroup.events", "populated 1\n");
	make_file("cg/user.slice/a b/memory.current", "5000\n");
	make_file("cg/user.slice/a b/memory.max", "max\n");
	make_file("cg/user.slice/a b/memory.stat", "anon 100\nfile 200\nkernel 5\nworkingset_refault_anon 2\n"
						   "workingset_refault_file 30\npgmajfault 50\n");
	make_file("cg/user.slice/a b/memory.swap.current", "400\n");
	make_file("cg/user.slice/a b/memory.events", "low 0\noom 1\noom_kill 2\noom_group_kill 0\n");
	make_file("cg/user.slice/a b/cpu.stat",
		  "usage_usec 3000000\nuser_usec 1\nsystem_usec 1\nnr_periods 5\nnr_throttled 1\n"
		  "throttled_usec 500000\n");
	make_file("cg/user.slice/a b/cpu.max", "50000 100000\n");
	make_file("cg/user.slice/a b/memory.pressure", "some avg10=0 avg60=0 avg300=0 total=1500000\n"
						       "full avg10=0 avg60=0 avg300=0 total=500000\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.memory.current", 5000);
	assert_last("cgroup.memory.anon", 100);
	assert_last("cgroup.memory.file", 200);
	assert_last("cgroup.memory.swap", 400);
	assert_last("cgroup.refaults.file", 30 * (double)sysconf(_SC_PAGESIZE));
	assert_last("cgroup.refaults.anon", 2 * (double)sysconf(_SC_PAGESIZE));
	assert_last("cgroup.faults.major", 50);
	assert_last("cgroup.memory.limit", 90000);
	assert_last("cgroup.oom_kills", 2);
	assert_last("cgroup.cpu.usage", 3);
	assert_last("cgroup.cpu.throttled", 0.5);
	assert_last("cgroup.cpu.quota", 0.5);
	assert_last("cgroup.pressure.memory.some", 1.5);
	assert_last("cgroup.pressure.memory.full", 0.5);
	assert_null(series_of("cgroup.memory.peak"));
	assert_null(series_of("cgroup.pressure.io.some"));
	stage_release(&s);
}

/* The folder of the memory controller of a process of that membership. */
static const char *memory_folder_of(const char *membership)
{
	static struct cgroup_place place;
	struct error err;

	assert_int_equal(cgroup_find(membership, &place, &err), 0);
	assert_string_equal(place.cpu.path, "");
	assert_string_equal(place.unified.path, "");
	assert_false(place.memory.root);
	return place.memory.path;
}

static void in_a_container_the_mount_shows_a_part_of_the_hierarchy(void **state)
{
	char expected[512];

	(void)state;
	make_mounts((const char *const[][3]){{"/other", "cg/wrong", "cgroup cgroup rw,memory"},
					     {"/docker/abc", "cg/memo\\040ry", "cgroup cgroup rw,memory"},
					     {NULL}});
	make_file("cg/wrong/x", "");
	make_file("cg/memo ry/inner/x", "");
	snprintf(expected, sizeof expected, "%s/cg/memo ry/inner", scratch_dir);
	assert_string_equal(memory_folder_of("5:memory:/docker/abc/inner\n"), expected);
	snprintf(expected, sizeof expected, "%s/cg/memo ry", scratch_dir);
	assert_string_equal(memory_folder_of("5:memory:/docker/abc\n"), expected);
	/* Not below the mount, only alike; and outside of the namespace. */
	assert_string_equal(memory_folder_of("5:memory:/docker/abcd\n"), "");
	assert_string_equal(memory_folder_of("5:memory:/../other\n0::/../..\n"), "");
}

static void make_roots(void)
{
	make_mounts((const char *const[][3]){
		{"/", "cg/memory", "cgroup cgroup rw,memory"}, {"/", "cg/unified", "cgroup2 cgroup2 rw"}, {NULL}});
	make_v1_memory("cg/memory", "9223372036854771712\n");
	make_file("cg/memory/cgroup.sane_behavior", "0\n");
	make_file("cg/unified/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=1\n");
	make_membership("5:memory:/\n0::/\n");
	make_file("proc/self/cgroup", "5:memory:/\n0::/\n");
}

static void without_a_command_the_root_group_is_said_to_have_nothing(void **state)
{
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	make_roots();
	stage_init(&s, 0);
	assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "root cgroup"));
	make_file("proc/self/cgroup", "0::/a\n");
	make_file("cg/unified/a/cgroup.events", "");
	assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "cgroup.subtree_control"));
	stage_release(&s);
}

static void a_run_that_stays_in_the_root_group_says_so_once(void **state)
{
	struct stage s;

	(void)state;
	make_roots();
	start(&s);
	stage_slow(&s, 5 * SECOND);
	stage_slow(&s, 6 * SECOND);
	assert_int_equal(s.warnings.count, 0);
	stage_slow(&s, 7 * SECOND);
	stage_slow(&s, 9 * SECOND);
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "Not observed, cgroup: the command runs in the root cgroup"));
	assert_int_equal(shown_count, 0);
	stage_release(&s);
}

/* What the command is doing, as far as its flags tell. */
static void make_alive(bool alive)
{
	char path[64];

	snprintf(path, sizeof path, "proc/%d/stat", COMMAND);
	make_file(path, alive ? "4194306 (a ) b) R 1 4194306 4194306 0 -1 4194304 9 9 9 9\n"
			      : "4194306 (a ) b) R 1 4194306 4194306 0 -1 4194308 9 9 9 9\n");
}

static void a_command_that_leaves_the_root_group_is_followed(void **state)
{
	struct stage s;

	(void)state;
	make_roots();
	make_alive(true);
	make_v1_memory("cg/memory/jobs", "70000\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_int_equal(shown_count, 0);
	make_membership("5:memory:/jobs\n0::/\n");
	stage_slow(&s, SECOND + 1);
	assert_last("cgroup.memory.current", 5000);
	assert_last("cgroup.memory.limit", 70000);
	assert_last("cgroup.oom_kills", 3);
	stage_slow(&s, 5 * SECOND);
	assert_int_equal(s.warnings.count, 0);
	stage_release(&s);
}

static void make_v1_cpu(const char *folder, const char *usage, const char *stat)
{
	char path[128];

	snprintf(path, sizeof path, "%s/cpuacct.usage", folder);
	make_file(path, usage);
	snprintf(path, sizeof path, "%s/cpu.stat", folder);
	make_file(path, stat);
}

/* Two groups for memory, two for CPU. */
static void make_groups(void)
{
	make_mounts((const char *const[][3]){{"/", "cg/memory", "cgroup cgroup rw,memory"},
					     {"/", "cg/cpu", "cgroup cgroup rw,cpu,cpuacct"},
					     {NULL}});
	make_v1_memory("cg/memory/a", "70000\n");
	make_v1_memory("cg/memory/b", "9223372036854771712\n");
	make_file("cg/memory/b/memory.usage_in_bytes", "100\n");
	make_file("cg/memory/b/memory.oom_control", "oom_kill 9\n");
	make_v1_cpu("cg/cpu/a", "7000000000\n", "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n");
	make_v1_cpu("cg/cpu/b", "1000000000\n", "nr_periods 3\nnr_throttled 1\nthrottled_time 1000000000\n");
	make_membership("5:memory:/a\n4:cpu,cpuacct:/a\n");
	make_alive(true);
}

static void in_another_group_counters_go_on_and_gauges_are_new(void **state)
{
	struct stage s;

	(void)state;
	make_groups();
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.cpu.usage", 7);
	make_membership("5:memory:/b\n4:cpu,cpuacct:/b\n");
	stage_slow(&s, SECOND + SECOND / 10);
	/* The sink has checked that no counter went down. */
	assert_last("cgroup.cpu.usage", 7);
	assert_last("cgroup.cpu.throttled_periods", 4);
	assert_last("cgroup.oom_kills", 3);
	assert_last("cgroup.memory.current", 100);
	/* It has no limit, so that it may use all of this machine's. */
	assert_true(last_of("cgroup.memory.limit") > 1e6);
	make_v1_cpu("cg/cpu/b", "1500000000\n", "nr_periods 5\nnr_throttled 3\nthrottled_time 1250000000\n");
	make_file("cg/memory/b/memory.oom_control", "oom_kill 10\n");
	stage_slow(&s, 100 * SECOND);
	assert_last("cgroup.cpu.usage", 7.5);
	assert_last("cgroup.cpu.periods", 12);
	assert_last("cgroup.cpu.throttled_periods", 6);
	assert_last("cgroup.cpu.throttled", 2.25);
	assert_last("cgroup.oom_kills", 4);
	stage_release(&s);
}

static void a_move_in_one_hierarchy_leaves_the_others_as_they_were(void **state)
{
	struct stage s;

	(void)state;
	make_groups();
	start(&s);
	stage_slow(&s, SECOND);
	make_file("cg/cpu/a/cpuacct.usage", "8000000000\n");
	make_membership("5:memory:/b\n4:cpu,cpuacct:/a\n");
	stage_slow(&s, SECOND + SECOND / 10);
	assert_last("cgroup.memory.current", 100);
	assert_last("cgroup.cpu.usage", 8);
	stage_release(&s);
}

static void an_ending_command_has_not_moved_to_the_root_group(void **state)
{
	struct stage s;

	(void)state;
	make_groups();
	make_file("cg/memory/cgroup.sane_behavior", "0\n");
	start(&s);
	stage_slow(&s, SECOND);
	make_alive(false);
	make_membership("5:memory:/\n4:cpu,cpuacct:/\n");
	make_file("cg/memory/a/memory.usage_in_bytes", "6000\n");
	s.context.exact = true;
	stage_slow(&s, SECOND + SECOND / 10);
	assert_last("cgroup.memory.current", 6000);
	stage_release(&s);
}

static void after_two_seconds_it_is_looked_for_once_a_second_and_at_exact_ticks(void **state)
{
	struct stage s;

	(void)state;
	make_groups();
	start(&s);
	stage_slow(&s, SECOND);
	stage_slow(&s, 4 * SECOND);
	make_membership("5:memory:/b\n4:cpu,cpuacct:/a\n");
	stage_slow(&s, 4 * SECOND + SECOND / 2);
	assert_last("cgroup.memory.current", 5000);
	stage_slow(&s, 5 * SECOND);
	assert_last("cgroup.memory.current", 100);
	make_membership("5:memory:/a\n4:cpu,cpuacct:/a\n");
	s.context.exact = true;
	stage_slow(&s, 5 * SECOND + 1);
	assert_last("cgroup.memory.current", 5000);
	stage_release(&s);
}

static void throttling_is_that_of_the_group_with_the_quota(void **state)
{
	struct stage s;

	(void)state;
	make_mounts((const char *const[][3]){{"/", "cg", "cgroup2 cgroup rw,nsdelegate"}, {NULL}});
	make_membership("0::/slice/leaf\n");
	make_file("cg/slice/cpu.max", "50000 100000\n");
	make_file("cg/slice/cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 1\nthrottled_usec 500000\n");
	make_file("cg/slice/leaf/cgroup.events", "populated 1\n");
	/* Without a controller of its own it still has its CPU time. */
	make_file("cg/slice/leaf/cpu.stat", "usage_usec 3000000\nuser_usec 1\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.cpu.usage", 3);
	assert_last("cgroup.cpu.quota", 0.5);
	assert_last("cgroup.cpu.periods", 5);
	assert_last("cgroup.cpu.throttled_periods", 1);
	assert_last("cgroup.cpu.throttled", 0.5);
	/* Another group further down gets a smaller one. */
	make_file("cg/slice/leaf/cpu.max", "20000 100000\n");
	make_file("cg/slice/leaf/cpu.stat",
		  "usage_usec 3000000\nnr_periods 1\nnr_throttled 1\nthrottled_usec 100000\n");
	stage_slow(&s, 100 * SECOND);
	make_file("cg/slice/leaf/cpu.stat",
		  "usage_usec 3000000\nnr_periods 3\nnr_throttled 2\nthrottled_usec 150000\n");
	stage_slow(&s, 200 * SECOND);
	assert_last("cgroup.cpu.quota", 0.2);
	assert_last("cgroup.cpu.periods", 7);
	assert_last("cgroup.cpu.throttled_periods", 2);
	stage_release(&s);
}

static void an_old_kernels_refaults_are_those_of_files(void **state)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	struct stage s;

	(void)state;
	make_mounts((const char *const[][3]){
		{"/", "cg/memory", "cgroup cgroup rw,memory"}, {"/", "cg/unified", "cgroup2 cgroup2 rw"}, {NULL}});
	make_file("cg/unified/a/cgroup.events", "");
	make_file("cg/unified/a/memory.stat", "anon 1\nworkingset_refault 7\n");
	make_file("cg/memory/a/memory.stat", "workingset_refault 5\ntotal_rss 1\ntotal_workingset_refault 6\n");
	make_membership("0::/a\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.refaults.file", 7 * page);
	assert_null(series_of("cgroup.refaults.anon"));
	stage_release(&s);
	make_membership("5:memory:/a\n");
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.refaults.file", 6 * page);
	assert_null(series_of("cgroup.refaults.anon"));
	stage_release(&s);
}

static void a_membership_past_the_buffer_loses_its_last_line_only(void **state)
{
	char *text = malloc(40000);
	struct stage s;

	(void)state;
	assert_non_null(text);
	make_groups();
	memset(text, 'x', 39999);
	memcpy(text, "5:memory:/a\n4:cpu,cpuacct:/a/", 29);
	text[39999] = '\0';
	make_membership(text);
	free(text);
	start(&s);
	stage_slow(&s, SECOND);
	assert_last("cgroup.memory.current", 5000);
	assert_null(series_of("cgroup.cpu.usage"));
	stage_release(&s);
}

static void a_command_that_is_gone_or_damaged_leaves_its_last_group(void **state)
{
	static const char *const stats[] = {"", "4194306", "4194306 (x", "4194306 (x) R 1 2 3",
					    "4194306 (x) R 1 2 3 4 5 z"};
	struct stage s;

	(void)state;
	make_groups();
	start(&s);
	stage_slow(&s, SECOND);
	make_membership("5:memory:/b\n");
	for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
		char path[64];

		snprintf(path, sizeof path, "proc/%d/stat", COMMAND);
		make_file(path, stats[i]);
		stage_slow(&s, (int64_t)(i + 1) * 100 * SECOND);
		assert_last("cgroup.memory.current", 5000);
	}
	/* It is alive, but who knows where. */
	make_alive(true);
	make_membership("\xff\n::::\n5:memory\n0::nowhere\n");
	stage_slow(&s, 1000 * SECOND);
	assert_last("cgroup.memory.current", 5000);
	make_membership("5:memory:/b\n");
	stage_slow(&s, 2000 * SECOND);
	assert_last("cgroup.memory.current", 100);
	stage_release(&s);
}

static void damaged_files_of_groups_are_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {"",		 "\n\n\n",	  ":::", "5:memory", "5:memory:/a\xff\x01",
					    "0:memory:", "x\n0::\n0::/\n"};
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	make_file("proc/self/mountinfo",
		  "\n- \n1 2 3\n - cgroup2 x y\n1 2 3 4 5 - cgroup\n1 2 3 / /nowhere rw - cgroup2 a b\n");
	stage_init(&s, COMMAND);
	assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "/cgroup: No such file"));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		make_membership(texts[i]);
		why.text[0] = '\0';
		assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
		assert_non_null(strstr(why.text, "no cgroup file system"));
	}
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(version_1_is_read_from_the_folders_of_its_controllers),
		FAKE(version_2_is_read_from_one_folder_with_its_pressure),
		FAKE(in_a_container_the_mount_shows_a_part_of_the_hierarchy),
		FAKE(without_a_command_the_root_group_is_said_to_have_nothing),
		FAKE(a_run_that_stays_in_the_root_group_says_so_once),
		FAKE(a_command_that_leaves_the_root_group_is_followed),
		FAKE(in_another_group_counters_go_on_and_gauges_are_new),
		FAKE(a_move_in_one_hierarchy_leaves_the_others_as_they_were),
		FAKE(an_ending_command_has_not_moved_to_the_root_group),
		FAKE(after_two_seconds_it_is_looked_for_once_a_second_and_at_exact_ticks),
		FAKE(throttling_is_that_of_the_group_with_the_quota),
		FAKE(an_old_kernels_refaults_are_those_of_files),
		FAKE(a_membership_past_the_buffer_loses_its_last_line_only),
		FAKE(a_command_that_is_gone_or_damaged_leaves_its_last_group),
		FAKE(damaged_files_of_groups_are_refused_with_a_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
