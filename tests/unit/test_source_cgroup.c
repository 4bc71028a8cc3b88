#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "need.h"
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
		{"memory.stat", "cache 1\nrss 2\ntotal_cache 3000\ntotal_rss 2000\n"},
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
	make_file("cg/user.slice/a b/memory.stat", "anon 100\nfile 200\nkernel 5\n");
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

static void in_a_container_the_mount_shows_a_part_of_the_hierarchy(void **state)
{
	struct cgroup_folder folder;
	char expected[512];
	struct error err;

	(void)state;
	make_mounts((const char *const[][3]){{"/other", "cg/wrong", "cgroup cgroup rw,memory"},
					     {"/docker/abc", "cg/memo\\040ry", "cgroup cgroup rw,memory"},
					     {NULL}});
	make_file("cg/wrong/x", "");
	make_file("cg/memo ry/inner/x", "");
	make_membership("5:memory:/docker/abc/inner\n");
	assert_int_equal(cgroup_find(COMMAND, "memory", &folder, &err), 0);
	snprintf(expected, sizeof expected, "%s/cg/memo ry/inner", scratch_dir);
	assert_string_equal(folder.path, expected);
	assert_false(folder.root);
	make_membership("5:memory:/docker/abc\n");
	assert_int_equal(cgroup_find(COMMAND, "memory", &folder, &err), 0);
	snprintf(expected, sizeof expected, "%s/cg/memo ry", scratch_dir);
	assert_string_equal(folder.path, expected);
	/* Not below the mount, only alike; and outside of the namespace. */
	make_membership("5:memory:/docker/abcd\n");
	assert_int_equal(cgroup_find(COMMAND, "memory", &folder, &err), 0);
	assert_string_equal(folder.path, "");
	make_membership("5:memory:/../other\n0::/../..\n");
	assert_int_equal(cgroup_find(COMMAND, "memory", &folder, &err), 0);
	assert_string_equal(folder.path, "");
	assert_int_equal(cgroup_find(COMMAND, "cpu", &folder, &err), 0);
	assert_string_equal(folder.path, "");
}

static void the_root_group_is_said_to_have_nothing(void **state)
{
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	make_mounts((const char *const[][3]){
		{"/", "cg/memory", "cgroup cgroup rw,memory"}, {"/", "cg/unified", "cgroup2 cgroup2 rw"}, {NULL}});
	make_membership("5:memory:/\n0::/\n");
	make_v1_memory("cg/memory", "9223372036854771712\n");
	make_file("cg/memory/cgroup.sane_behavior", "0\n");
	make_file("cg/unified/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=1\n");
	stage_init(&s, COMMAND);
	assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "root cgroup"));
	stage_release(&s);
}

static void damaged_files_of_groups_are_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {"",          "\n\n\n",        ":::", "5:memory", "5:memory:/a\xff\x01",
					    "0:memory:", "x\n0::\n0::/\n"};
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	make_file("proc/self/mountinfo",
		  "\n- \n1 2 3\n - cgroup2 x y\n1 2 3 4 5 - cgroup\n1 2 3 / /nowhere rw - cgroup2 a b\n");
	stage_init(&s, COMMAND);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		make_membership(texts[i]);
		why.text[0] = '\0';
		assert_int_equal(source_cgroup.open(&s.context, &unused, &why), -1);
		assert_non_null(strstr(why.text, "no cgroup file system"));
	}
	stage_release(&s);
}

/* From here on, a real group of this kernel. */
struct real {
	char folder[512];
	pid_t pid;
};

static bool write_number(const char *folder, const char *name, long number)
{
	char path[600], text[32];
	int fd, length = snprintf(text, sizeof text, "%ld", number);
	bool done;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, (size_t)length) == length;
	if (fd >= 0)
		close(fd);
	return done;
}

/* A group below this process's own, with a child in it that holds 64 MiB. */
static bool make_real(struct real *r, const char *controller)
{
	struct cgroup_folder own;
	struct error err;
	int ready[2];
	char c;

	if (cgroup_find(0, controller, &own, &err) < 0 || !own.path[0])
		return false;
	snprintf(r->folder, sizeof r->folder, "%.400s/assay-test-%d", own.path, (int)getpid());
	if (mkdir(r->folder, 0755) < 0)
		return false;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	r->pid = fork();
	if (r->pid == 0) {
		size_t size = (size_t)64 << 20;
		char *memory;

		if (!write_number(r->folder, "cgroup.procs", (long)getpid()))
			_exit(1);
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 1, size);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	c = read(ready[0], &c, 1) == 1;
	close(ready[0]);
	return c;
}

static void remove_real(struct real *r)
{
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	/* The kernel takes a moment to empty it. */
	while (r->folder[0] && rmdir(r->folder) < 0 && errno == EBUSY)
		usleep(1000);
}

static void a_real_groups_memory_is_that_of_its_process(void **state)
{
	struct real r = {0};
	struct stage s;
	bool made;

	(void)state;
	procfs_set_roots(NULL, NULL);
	made = make_real(&r, "memory");
	if (!made)
		remove_real(&r);
	need("cgroup", made, "no group can be made below this process's own memory cgroup of version 1");
	stage_init(&s, r.pid);
	stage_open(&s, &source_cgroup);
	stage_slow(&s, SECOND);
	remove_real(&r);
	assert_true(last_of("cgroup.memory.anon") >= 64 << 20);
	assert_true(last_of("cgroup.memory.anon") < 80 << 20);
	assert_true(last_of("cgroup.memory.current") >= last_of("cgroup.memory.anon"));
	assert_true(last_of("cgroup.memory.peak") >= 64 << 20);
	assert_last("cgroup.oom_kills", 0);
	/* Its files answer no more; what was read last stands. */
	stage_slow(&s, 100 * SECOND);
	stage_release(&s);
}

static void a_real_group_of_version_2_has_cpu_time_without_controllers(void **state)
{
	struct real r = {0};
	struct stage s;
	bool made;

	(void)state;
	procfs_set_roots(NULL, NULL);
	made = make_real(&r, "");
	if (!made)
		remove_real(&r);
	need("cgroup", made, "no group can be made below this process's own cgroup of version 2");
	stage_init(&s, r.pid);
	stage_open(&s, &source_cgroup);
	stage_slow(&s, SECOND);
	remove_real(&r);
	assert_true(last_of("cgroup.cpu.usage") > 0);
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(version_1_is_read_from_the_folders_of_its_controllers),
		FAKE(version_2_is_read_from_one_folder_with_its_pressure),
		FAKE(in_a_container_the_mount_shows_a_part_of_the_hierarchy),
		FAKE(the_root_group_is_said_to_have_nothing),
		FAKE(damaged_files_of_groups_are_refused_with_a_reason),
		FAKE(a_real_groups_memory_is_that_of_its_process),
		FAKE(a_real_group_of_version_2_has_cpu_time_without_controllers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
