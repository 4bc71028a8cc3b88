#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/profile.h"
#include "record/perf_rings.h"
#include "record/sampling_recorder.h"
#include "store/samples.h"

#include "need.h"
#include "scratch.h"

#define HZ 499

/* A command that waits before its exec, as launch has it. */
static pid_t start(char *const *argv, int *ret_go)
{
	int go[2];
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(125);
		close(go[0]);
		execv(argv[0], argv);
		_exit(126);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

/* Runs it under the recorder as sampling.c does. *ret_cpu_s: what it used, by rusage. */
static void record(char *const *argv, struct profile *ret, struct warnings *warnings, double *ret_cpu_s)
{
	struct sampling_options options = {.recorder = "perf", .hz = HZ};
	struct sampling_context context = {.options = &options, .warnings = warnings};
	struct process_table table;
	struct rusage usage;
	struct error err = {""};
	void *state = NULL;
	int go, status;
	pid_t pid;

	process_table_init(&table);
	unlink(scratch_path("samples.seg")); /* of a recording before in this test */
	assert_int_equal(samples_writer_new(scratch_path("samples.seg"), WIRE_RECORDER_PERF, HZ, clock_mono_ns(),
					    &context.writer, &err), 0);
	assert_int_equal(module_files_new(context.writer, warnings, &context.files, &err), 0);
	assert_int_equal(perf_recorder.open(&context, &state, &err), 0);
	pid = start(argv, &go);
	assert_int_equal(perf_recorder.begin(state, pid, &err), 0);
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
	while (wait4(pid, &status, WNOHANG, &usage) == 0) {
		perf_recorder.poll(state, &table, clock_mono_ns());
		clock_sleep_ns(10 * NS_PER_MS);
	}
	assert_int_equal(status, 0);
	perf_recorder.end(state, &table, clock_mono_ns());
	perf_recorder.close(state);
	module_files_free(context.files);
	samples_writer_free(context.writer);
	process_table_release(&table);
	*ret_cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
		     (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
	assert_int_equal(samples_read(scratch_path("samples.seg"), ret, &err), 0);
	assert_false(ret->damaged);
}

static void need_perf(void)
{
	struct error err = {""};

	need("perf", perf_rings_allowed(HZ, &err) == 0, "%s", err.text);
}

static char *target(const char *name)
{
	static char path[512];

	snprintf(path, sizeof path, "%s/target_%s", getenv("ASSAY_TEST_TARGETS"), name);
	return path;
}

static uint64_t weight_of(const struct profile *p, uint32_t flags)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		if ((p->samples[i].flags & flags) == flags)
			weight += p->samples[i].weight;
	return weight;
}

/* Within 3%, and what chance adds where the CPUs are shared with others: then whose turn it is at a tick is drawn. */
static bool near(const struct profile *p, double cpu_s)
{
	return fabs((double)weight_of(p, 0) - cpu_s * HZ) < 0.03 * cpu_s * HZ + 2 * sqrt(cpu_s * HZ);
}

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), wanted = strlen(end);

	return length >= wanted && strcmp(path + length - wanted, end) == 0;
}

static bool has_module(const struct profile *p, const char *end)
{
	for (size_t i = 0; i < p->module_count; i++)
		if (ends_with(p->modules[i].path, end))
			return true;
	return false;
}

static void print_summary(const struct profile *p, double cpu_s)
{
	printf("%zu samples, %.3f s of %.3f s; complete %.1f%%, cut %.1f%%; %zu images, %zu threads, %zu modules, "
	       "%zu nodes\n",
	       p->sample_count, (double)weight_of(p, 0) / HZ, cpu_s,
	       100.0 * (double)weight_of(p, PROFILE_COMPLETE) / (double)weight_of(p, 0),
	       100.0 * (double)weight_of(p, PROFILE_CUT) / (double)weight_of(p, 0), p->image_count, p->thread_count,
	       p->module_count, p->node_count);
}

static void weights_of_two_busy_threads_add_up_to_their_cpu_time(void **state)
{
	char *argv[] = {target("spin"), (char[]){"2"}, (char[]){"2.5"}, NULL};
	struct warnings warnings;
	struct profile p;
	double cpu_s;

	(void)state;
	need_perf();
	warnings_init(&warnings);
	profile_init(&p);
	record(argv, &p, &warnings, &cpu_s);
	print_summary(&p, cpu_s);
	assert_int_equal(p.recorder, WIRE_RECORDER_PERF);
	assert_true(near(&p, cpu_s));
	assert_true((double)weight_of(&p, PROFILE_COMPLETE) > 0.98 * (double)weight_of(&p, 0));
	assert_true(has_module(&p, "target_spin"));
	assert_int_equal(p.image_count, 1);
	assert_int_equal(p.thread_count, 2);
	assert_true(p.images[0].ended);
	assert_int_equal(p.images[0].weight, weight_of(&p, 0));
	assert_string_equal(p.threads[0].name, "target_spin");
	profile_release(&p);
	warnings_release(&warnings);
}

static void a_forked_and_executed_tree_is_followed(void **state)
{
	char script[1024];
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script, NULL};
	struct warnings warnings;
	struct profile p;
	double cpu_s;
	size_t found = 0;

	(void)state;
	need_perf();
	snprintf(script, sizeof script, "%s 1 0.4; env -i %s 1 0.4; exit 0", target("spin"), target("spin"));
	warnings_init(&warnings);
	profile_init(&p);
	record(argv, &p, &warnings, &cpu_s);
	print_summary(&p, cpu_s);
	for (size_t i = 0; i < p.image_count; i++)
		found += ends_with(p.images[i].exe, "/target_spin");
	assert_int_equal(found, 2);
	assert_true(near(&p, cpu_s));
	profile_release(&p);
	warnings_release(&warnings);
}

static void a_static_program_is_sampled_to_its_start(void **state)
{
	char *argv[] = {target("perf_static"), NULL};
	struct warnings warnings;
	struct profile p;
	double cpu_s;

	(void)state;
	need_perf();
	need("static libc", access(argv[0], X_OK) == 0, "no static program could be linked here");
	warnings_init(&warnings);
	profile_init(&p);
	record(argv, &p, &warnings, &cpu_s);
	print_summary(&p, cpu_s);
	assert_true(near(&p, cpu_s));
	assert_true((double)weight_of(&p, PROFILE_COMPLETE) > 0.95 * (double)weight_of(&p, 0));
	profile_release(&p);
	warnings_release(&warnings);
}

static bool samples_each_cpu(void)
{
	struct perf_rings *rings = NULL;
	struct error err = {""};
	bool machine;

	assert_int_equal(perf_rings_open(getpid(), HZ, &rings, &err), 0);
	machine = perf_rings_machine(rings);
	perf_rings_close(rings);
	return machine;
}

/* Of those that inherit their event none would ever be sampled: their period begins anew with each. */
static void processes_shorter_than_a_period_count_fairly(void **state)
{
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
			(char[]){"i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done"}, NULL};
	struct warnings warnings;
	struct profile p;
	double cpu_s;

	(void)state;
	need_perf();
	need("perf of each CPU", samples_each_cpu(), "CAP_PERFMON or perf_event_paranoid of 0 grants it");
	warnings_init(&warnings);
	profile_init(&p);
	record(argv, &p, &warnings, &cpu_s);
	print_summary(&p, cpu_s);
	assert_true((double)weight_of(&p, 0) / HZ > 0.7 * cpu_s);
	assert_true((double)weight_of(&p, 0) / HZ < 1.3 * cpu_s);
	profile_release(&p);
	warnings_release(&warnings);
}

static void where_only_inherited_events_are_granted_these_do(void **state)
{
	perf_rings_forbid_machine(true);
	weights_of_two_busy_threads_add_up_to_their_cpu_time(state);
	a_forked_and_executed_tree_is_followed(state);
	perf_rings_forbid_machine(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(weights_of_two_busy_threads_add_up_to_their_cpu_time, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_forked_and_executed_tree_is_followed, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(processes_shorter_than_a_period_count_fairly, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(where_only_inherited_events_are_granted_these_do, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_static_program_is_sampled_to_its_start, scratch_make,
						scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
