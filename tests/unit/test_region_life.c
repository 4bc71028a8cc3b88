#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>

#include "need.h"
#include "scratch.h"

#include "region_calls.h"
#include "region_raw.h"

static void fork_inside(void)
{
	pid_t pid;

	call(&b, 10);
	assay_region_begin(&a);
	pid = fork();
	if (pid == 0) {
		assay_region_end(&a);
		call(&b, 5);
		assay_region_end(&a);
		exit(0);
	}
	await(pid);
	assay_region_end(&a);
}

static void a_forked_child_has_files_of_its_own(void **state)
{
	size_t in_child = 0;

	(void)state;
	raw_run(fork_inside);
	assert_int_equal(raw.processes, 2);
	assert_int_equal(raw.files, 2);
	assert_int_equal(raw_calls_of("a"), 1);
	assert_int_equal(raw_calls_of("b"), 15);
	assert_int_equal(raw.troubles[REGION_TROUBLE_FORKED], 1);
	assert_int_equal(raw.troubles[REGION_TROUBLE_NO_BEGIN], 1);
	for (size_t i = 0; i < raw.count; i++)
		in_child += raw.calls[i].process == raw.calls[0].process;
	assert_true(in_child == 5 || in_child == 11);
}

static void fork_without_use(void)
{
	pid_t pid;

	call(&b, 1);
	pid = fork();
	if (pid == 0)
		exit(0);
	await(pid);
}

static void a_child_without_regions_leaves_nothing(void **state)
{
	(void)state;
	raw_run(fork_without_use);
	assert_int_equal(raw.processes, 1);
	assert_int_equal(raw.closed, 1);
}

static void vfork_and_exec(void)
{
	pid_t pid;

	call(&b, 3);
	pid = vfork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	await(pid);
	call(&b, 3);
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static void exec_keeps_what_was_recorded(void **state)
{
	(void)state;
	raw_run(vfork_and_exec);
	assert_int_equal(raw.processes, 1);
	assert_int_equal(raw.count, 6);
	assert_int_equal(raw.closed, 0);
}

static void *call_many(void *region)
{
	call(region, 20000);
	return NULL;
}

#define THREADS 8

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, call_many, i % 2 ? &a : &b) != 0)
			_exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void threads_lose_nothing(void **state)
{
	size_t by_thread[THREADS] = {0};

	(void)state;
	raw_run(run_threads);
	assert_int_equal(raw.count, THREADS * 20000);
	assert_int_equal(raw_calls_of("a"), THREADS / 2 * 20000);
	for (size_t i = 0; i < raw.count; i++) {
		assert_true(raw.calls[i].thread < THREADS);
		by_thread[raw.calls[i].thread]++;
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(by_thread[i], 20000);
	assert_int_equal(raw.records[REGION_RECORD_THREAD], THREADS);
	assert_int_equal(raw.records[REGION_RECORD_THREAD_END], THREADS);
}

static void *call_few(void *region)
{
	call(region, 3);
	assay_region_begin(&b);
	return NULL;
}

static void run_short_threads(void)
{
	for (int i = 0; i < 10000; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, call_few, &a) != 0)
			_exit(1);
		pthread_join(thread, NULL);
	}
}

static void ten_thousand_short_threads_share_few_files(void **state)
{
	(void)state;
	raw_run(run_short_threads);
	assert_int_equal(raw.files, 1);
	assert_int_equal(raw_calls_of("a"), 30000);
	assert_int_equal(raw_calls_of("b"), 10000);
	assert_int_equal(raw.troubles[REGION_TROUBLE_UNFINISHED], 10000);
	assert_int_equal(raw.records[REGION_RECORD_THREAD_END], 10000);
}

static _Atomic bool stop;

static void *call_until_told(void *region)
{
	while (!stop)
		call(region, 10);
	return NULL;
}

static void end_meanwhile(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, call_until_told, i ? &a : &b) != 0)
			_exit(1);
	for (int i = 0; i < 20; i++) {
		call(&a, 5000);
		if (i % 3 == 0)
			assay_set_mode(i % 2 ? ASSAY_TRACE : ASSAY_AGGREGATE);
		if (assay_finalize() != 0 || assay_init(NULL) != 0)
			_exit(2);
		sched_yield();
	}
	assay_finalize();
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void an_end_while_threads_go_on_harms_none(void **state)
{
	(void)state;
	raw_run(end_meanwhile);
	assert_int_equal(raw.processes, 21);
	assert_true(raw.count >= 20 * 5000);
}

static uint64_t *ended;

static void announce_calls(void)
{
	for (;;) {
		assay_region_begin(&a);
		assay_region_end(&a);
		__atomic_store_n(ended, *ended + 1, __ATOMIC_RELEASE);
	}
}

static void a_killed_program_loses_no_call_that_had_ended(void **state)
{
	(void)state;
	ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ended != MAP_FAILED);
	setenv("ASSAY_DIR", scratch_dir, 1);
	for (int i = 0; i < 20; i++) {
		struct timespec a_while = {0, 100000 + 977000 * i};
		uint64_t told;
		int status;
		pid_t pid;

		*ended = 0;
		pid = fork();
		if (pid == 0)
			announce_calls();
		assert_true(pid > 0);
		while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) == 0)
			sched_yield();
		nanosleep(&a_while, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		told = *ended;
		raw_read(scratch_dir);
		assert_in_range(raw.count, told, told + 1);
		for (size_t j = 0; j < raw.count; j++)
			assert_true(raw.calls[j].event.start <= raw.calls[j].event.end && raw.calls[j].event.start > 0);
		scratch_remove(NULL);
		assert_int_equal(scratch_make(NULL), 0);
		setenv("ASSAY_DIR", scratch_dir, 1);
	}
	munmap(ended, 4096);
}

static void write_to_the_limit(void)
{
	setenv("ASSAY_LIMIT", "1M", 1);
	call(&a, 100000);
	call(&b, 7);
}

static void beyond_the_limit_calls_are_counted_by_region(void **state)
{
	(void)state;
	raw_run(write_to_the_limit);
	assert_true(raw.count > 20000 && raw.count < 1048576 / 24);
	assert_int_equal(raw.count + raw.dropped, 100007);
	assert_int_equal(raw_total_of("a")->dropped + raw.count, 100000);
	assert_int_equal(raw_total_of("b")->dropped, 7);
}

static const char *little;

static void write_little(void)
{
	setenv("ASSAY_LIMIT", little, 1);
	call(&a, 3000);
	/* So many regions that counts of the last ones lie on another page than those of the first. */
	for (int i = 0; i < 100; i++) {
		char text[32];

		snprintf(text, sizeof text, "number %d", i);
		call(assay_region_named(text), 1);
	}
}

static void the_least_limit_counts_each_call_by_region(void **state)
{
	static const struct {
		const char *limit;
		size_t least, most; /* calls that are kept */
	} cases[] = {{"1", 0, 0}, {"12K", 500, 512}, {"50K", 2040, 2048}, {"64K", 2550, 2560}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t counted = 0;

		little = cases[i].limit;
		raw_run(write_little);
		if (sysconf(_SC_PAGESIZE) == 4096)
			assert_in_range(raw.count, cases[i].least, cases[i].most);
		for (size_t k = 0; k < raw.total_count; k++)
			counted += raw.totals[k].dropped;
		assert_int_equal(counted + raw.count, 3100);
		scratch_remove(NULL);
		assert_int_equal(scratch_make(NULL), 0);
		setenv("ASSAY_DIR", scratch_dir, 1);
	}
}

static void limit_file_sizes(void)
{
	struct rlimit limit = {.rlim_cur = 280000000, .rlim_max = RLIM_INFINITY};

	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		_exit(1);
	call(&a, 1000000);
	limit.rlim_cur = 100;
	setrlimit(RLIMIT_FSIZE, &limit);
	call(&a, 10);
	assay_finalize();
	if (assay_init(NULL) != -1 || !strstr(assay_last_error(), strerror(EFBIG)))
		_exit(2);
	call(&a, 10);
}

static void a_limit_on_file_sizes_kills_nobody(void **state)
{
	(void)state;
	raw_run(limit_file_sizes);
	assert_true(raw.count > 1000);
	assert_int_equal(raw.count + raw.dropped, 1000010);
}

static void call_much(void)
{
	call(&a, 300000);
	assay_set_mode(ASSAY_AGGREGATE);
	call(&b, 5);
}

static void a_full_disk_stops_the_recording_and_not_the_program(void **state)
{
	int mounted;

	(void)state;
	mounted = mount("none", scratch_dir, "tmpfs", 0, "size=2m");
	need("mount", mounted == 0, "a small file system cannot be mounted");
	raw_run(call_much);
	assert_int_equal(umount2(scratch_dir, MNT_DETACH), 0);
	assert_true(raw.count > 1000 && raw.count < 300000);
	assert_int_equal(raw_calls_of("a") + raw_total_of("a")->dropped, 300000);
	assert_int_equal(raw_total_of("b")->calls, 5);
}

static void call_some(void)
{
	setenv("ASSAY_DIR", scratch_path("nowhere"), 1);
	errno = EXDEV;
	call(&a, 1000);
	assay_token_end(assay_token_begin(&a));
	if (errno != EXDEV || assay_flush() != -1)
		_exit(1);
	if (assay_init(NULL) != -1 || !strstr(assay_last_error(), "/nowhere: No such file or directory"))
		_exit(2);
}

static void a_folder_that_is_not_there_is_said_and_nothing_else(void **state)
{
	(void)state;
	raw_run(call_some);
	assert_int_equal(raw.processes, 0);
}

static void lose_the_folder(void)
{
	call(&a, 10);
	if (scratch_remove(NULL) != 0)
		_exit(1);
	call(&a, 100000);
	if (assay_flush() != -1)
		_exit(2);
}

static void a_folder_that_is_removed_stops_the_recording(void **state)
{
	(void)state;
	assert_int_equal(raw_run_for(lose_the_folder), 0);
	assert_int_equal(access(scratch_dir, F_OK), -1);
	assert_int_equal(scratch_make(NULL), 0);
}

static void close_everything(void)
{
	call(&a, 10);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	call(&a, 100000);
}

static void a_daemon_may_close_all_descriptors(void **state)
{
	(void)state;
	raw_run(close_everything);
	assert_int_equal(raw.count, 100010);
}

static void use_little_address_space(void)
{
	struct rlimit limit = {.rlim_max = RLIM_INFINITY};
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!f || fscanf(f, "%lu", &pages) != 1 || fclose(f) != 0)
		_exit(1);
	limit.rlim_cur = pages * 4096 + (64u << 20);
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		_exit(2);
	call(&a, 100000);
}

static void little_address_space_is_enough(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	need("plain-build", false, "a sanitizer needs more address space than that");
#endif
	raw_run(use_little_address_space);
	assert_int_equal(raw.count, 100000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_forked_child_has_files_of_its_own),
		TEST(a_child_without_regions_leaves_nothing),
		TEST(exec_keeps_what_was_recorded),
		TEST(threads_lose_nothing),
		TEST(ten_thousand_short_threads_share_few_files),
		TEST(an_end_while_threads_go_on_harms_none),
		TEST(a_killed_program_loses_no_call_that_had_ended),
		TEST(beyond_the_limit_calls_are_counted_by_region),
		TEST(the_least_limit_counts_each_call_by_region),
		TEST(a_limit_on_file_sizes_kills_nobody),
		TEST(a_full_disk_stops_the_recording_and_not_the_program),
		TEST(a_folder_that_is_not_there_is_said_and_nothing_else),
		TEST(a_folder_that_is_removed_stops_the_recording),
		TEST(a_daemon_may_close_all_descriptors),
		TEST(little_address_space_is_enough),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
