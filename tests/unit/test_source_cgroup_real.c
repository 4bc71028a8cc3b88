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

/* A group of this kernel, and the child that is in it. */
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

/* A group below this process's own. */
static bool make_real_group(struct real *r, const char *controller)
{
	struct cgroup_place place;
	const struct cgroup_folder *own = strcmp(controller, "memory") == 0 ? &place.memory
					  : strcmp(controller, "cpu") == 0  ? &place.cpu
									    : &place.unified;
	char text[16384];
	struct error err;

	if (procfs_read_file(text, sizeof text, "self/cgroup") <= 0 || cgroup_find(text, &place, &err) < 0 ||
	    !own->path[0])
		return false;
	snprintf(r->folder, sizeof r->folder, "%.400s/assay-test-%d", own->path, (int)getpid());
	return mkdir(r->folder, 0755) == 0;
}

/* The same, with a child in it that holds 64 MiB. */
static bool make_real(struct real *r, const char *controller)
{
	int ready[2];
	char c;

	if (!make_real_group(r, controller))
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

/* A child that uses all the CPU time that it gets. */
static pid_t start_spinner(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (volatile unsigned n = 0;; n++)
			;
	}
	assert_true(pid > 0);
	return pid;
}

static void a_real_move_under_a_quota_and_a_limit_is_followed(void **state)
{
	struct real memory = {0}, cpu = {0};
	struct stage s;
	double before;
	int64_t now = SECOND;
	bool made;

	(void)state;
	made = make_real_group(&memory, "memory") && make_real_group(&cpu, "cpu") &&
	       write_number(memory.folder, "memory.limit_in_bytes", 96L << 20) &&
	       write_number(cpu.folder, "cpu.cfs_period_us", 20000) &&
	       write_number(cpu.folder, "cpu.cfs_quota_us", 5000);
	if (!made) {
		remove_real(&memory);
		remove_real(&cpu);
	}
	need("cgroup", made, "no groups can be made below this process's own ones of version 1");
	cpu.pid = start_spinner();
	stage_init(&s, cpu.pid);
	stage_open(&s, &source_cgroup);
	stage_slow(&s, now);
	before = last_of("cgroup.cpu.throttled");
	made = write_number(memory.folder, "cgroup.procs", (long)cpu.pid) &&
	       write_number(cpu.folder, "cgroup.procs", (long)cpu.pid);
	for (int i = 0; made && i < 500 && !(last_of("cgroup.cpu.throttled_periods") >= 3); i++) {
		usleep(20000);
		now += SECOND / 5;
		stage_slow(&s, now);
	}
	/* Ended, but not waited for: it seems to be in the root groups. */
	kill(cpu.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)cpu.pid, NULL, WEXITED | WNOWAIT), 0);
	s.context.exact = true;
	stage_slow(&s, now + SECOND);
	remove_real(&cpu);
	remove_real(&memory);
	assert_true(made);
	assert_last("cgroup.cpu.quota", 0.25);
	assert_last("cgroup.memory.limit", 96 << 20);
	assert_true(last_of("cgroup.cpu.throttled_periods") >= 3);
	assert_true(last_of("cgroup.cpu.periods") >= last_of("cgroup.cpu.throttled_periods"));
	assert_true(last_of("cgroup.cpu.throttled") > fmax(before, 0));
	/* The kernel gave the page of its stack or so to the new group, and nothing else. */
	assert_true(last_of("cgroup.memory.current") < 96 << 20);
	stage_slow(&s, now + 2 * SECOND);
	stage_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_groups_memory_is_that_of_its_process),
		cmocka_unit_test(a_real_group_of_version_2_has_cpu_time_without_controllers),
		cmocka_unit_test(a_real_move_under_a_quota_and_a_limit_is_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
