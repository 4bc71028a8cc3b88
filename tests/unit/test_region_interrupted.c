/* What interrupts a region: signal handlers that use regions, leave by longjmp, or fork; cancelled threads; want of
 * descriptors; another file where the thread's own was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "need.h"
#include "scratch.h"

#include "region_calls.h"
#include "region_raw.h"

static void *call_many(void *region)
{
	call(region, 20000);
	return NULL;
}

static sigjmp_buf back;
static volatile sig_atomic_t leave_handlers;

static void use_and_leave(int signal)
{
	(void)signal;
	call(assay_region_named("handler"), 1);
	if (leave_handlers)
		siglongjmp(back, 1);
}

static void tick_every(long us)
{
	struct itimerval every = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &every, NULL);
}

#define LEFT_CALLS 300000

/* Every slow path takes a lock, and every hot path reserves a place: neither may be left for good. */
static void leave_by_longjmp(void)
{
	static volatile long done;
	struct sigaction action = {.sa_handler = use_and_leave, .sa_flags = SA_NODEFER};
	pthread_t thread;

	sigaction(SIGALRM, &action, NULL);
	leave_handlers = 1;
	if (sigsetjmp(back, 1) == 0)
		tick_every(100);
	while (done < LEFT_CALLS) {
		call(assay_region_named("named"), 1);
		call(&a, 9);
		done++;
	}
	tick_every(0);
	leave_handlers = 0;
	if (pthread_create(&thread, NULL, call_many, &b) != 0)
		_exit(1);
	pthread_join(thread, NULL);
}

static void longjmp_out_of_handlers_loses_no_call(void **state)
{
	(void)state;
	raw_run(leave_by_longjmp);
	assert_true(raw_calls_of("named") >= LEFT_CALLS);
	assert_true(raw_calls_of("a") >= 9 * LEFT_CALLS);
	assert_true(raw_calls_of("handler") >= 1);
	assert_int_equal(raw_calls_of("b"), 20000);
	assert_int_equal(raw.dropped, 0);
}

static volatile sig_atomic_t forks, is_child;

/* The child goes on with what was interrupted, with files of its own. */
static void fork_and_go_on(int signal)
{
	pid_t pid;

	(void)signal;
	if (is_child)
		return;
	pid = fork();
	if (pid == 0)
		is_child = 1;
	else
		await(pid);
	/* Once more in a while, so that the program comes on. */
	if (++forks < 200 && !is_child)
		setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 100 + forks % 7 * 10}}, NULL);
}

static void fork_in_handlers(void)
{
	struct sigaction action = {.sa_handler = fork_and_go_on, .sa_flags = SA_RESTART};

	call(&a, 1);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 1000}}, NULL);
	while (forks < 200 && !is_child)
		call(&a, 100);
	if (is_child)
		_exit(0);
}

static void a_fork_in_a_handler_lets_the_child_go_on(void **state)
{
	(void)state;
	assert_int_equal(raw_run_for(fork_in_handlers), 0);
}

static void *call_until_cancelled(void *unused)
{
	(void)unused;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		call(&a, 1);
	return NULL;
}

static void cancel_at_any_moment(void)
{
	for (int i = 0; i < 1000; i++) {
		struct timespec wait = {0, i % 300 * 1000};
		pthread_t thread;

		if (pthread_create(&thread, NULL, call_until_cancelled, NULL) != 0)
			_exit(1);
		nanosleep(&wait, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 4; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, call_many, &b) != 0)
			_exit(1);
		pthread_join(thread, NULL);
	}
}

static void cancelled_threads_leave_the_lock_and_their_files_to_others(void **state)
{
	(void)state;
	raw_run(cancel_at_any_moment);
	assert_int_equal(raw_calls_of("b"), 4 * 20000);
	assert_int_equal(raw.dropped, 0);
}

static void call_without_descriptors(void)
{
	struct rlimit limit = {64, 64};
	struct timespec wait = {0, 20000000};
	int last = 0;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;)
		last = fd;
	call(&a, 5);
	close(last);
	close(last - 1);
	nanosleep(&wait, NULL);
	call(&a, 1000);
	if (open("/dev/null", O_RDONLY) < 0)
		_exit(2);
	call(&a, 9000);
	close(last);
	nanosleep(&wait, NULL);
	call(&b, 7);
}

static void want_of_descriptors_passes(void **state)
{
	(void)state;
	raw_run(call_without_descriptors);
	assert_int_equal(raw_calls_of("b"), 7);
	assert_true(raw_calls_of("a") >= 1000);
	assert_int_equal(raw_calls_of("a") + raw.dropped, 10000);
}

static void swap_the_file(void)
{
	char path[1200], other[1200];
	DIR *dir = opendir(scratch_dir);

	call(&a, 1);
	snprintf(other, sizeof other, "%s/victim", scratch_dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		snprintf(path, sizeof path, "%s/%s", scratch_dir, e->d_name);
		if (strstr(e->d_name, ".0") && (unlink(path) < 0 || symlink(other, path) < 0))
			_exit(1);
	}
	closedir(dir);
	call(&a, 100000);
}

static void another_file_in_its_place_is_not_written(void **state)
{
	char other[1200];
	struct stat st;

	(void)state;
	snprintf(other, sizeof other, "%s/victim", scratch_dir);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	assert_int_equal(raw_run_for(swap_the_file), 0);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(longjmp_out_of_handlers_loses_no_call),
		TEST(a_fork_in_a_handler_lets_the_child_go_on),
		TEST(cancelled_threads_leave_the_lock_and_their_files_to_others),
		TEST(want_of_descriptors_passes),
		TEST(another_file_in_its_place_is_not_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
