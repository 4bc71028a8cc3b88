#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/machine.h"
#include "exec/others.h"
#include "fake_proc.h"

static void this_machine_is_described(void **state)
{
	struct machine m;

	(void)state;
	machine_read(&m);
	assert_true(m.cpus >= 1);
	assert_true(m.cpus_allowed >= 1 && m.cpus_allowed <= m.cpus);
	assert_true(m.memory > 1 << 20);
	assert_true(m.swap >= 0);
	assert_true(m.kernel[0] && m.architecture[0] && m.system[0]);
	assert_null(strchr(m.system, '"'));
	assert_int_equal(strlen(m.boot_id), 36);
}

static void only_the_cpus_of_its_mask_are_allowed(void **state)
{
	cpu_set_t before, one;
	struct machine m;
	size_t cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	machine_read(&m);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	assert_int_equal(m.cpus_allowed, 1);
}

static void a_quiet_machine_is_clean(void **state)
{
	struct machine_state s;

	(void)state;
	make_file("proc/loadavg", "0.50 0.40 0.30 1/99 1234\n");
	make_file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\nSwapTotal: 100 kB\nSwapFree: 96 kB\n");
	make_file("proc/stat", "cpu  10 20 30 999 888 1 2 50 7 7\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
	machine_look(&s, NS_PER_MS);
	assert_true(s.clean);
	assert_int_equal(s.reason_count, 0);
	assert_true(fabs(s.load_1min - 0.5) < 1e-9);
	assert_true(s.busy_cpus >= 0 && s.busy_cpus < 1e-9);
	assert_int_equal(s.memory_available, 900 * 1024);
	assert_int_equal(s.swap_used, 4 * 1024);
	assert_string_equal(s.governor, "performance");
	assert_int_equal(s.other_assay, 0);
}

static void every_reason_is_given(void **state)
{
	struct machine_state s;

	(void)state;
	make_file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 50 kB\nSwapTotal: 100 kB\nSwapFree: 50 kB\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n");
	machine_look(&s, 0);
	assert_false(s.clean);
	assert_int_equal(s.reason_count, 3);
	assert_string_equal(s.reasons[0], "only 5% of the memory is available");
	assert_string_equal(s.reasons[1], "50% of the swap space is in use");
	assert_string_equal(s.reasons[2], "the CPU frequency governor is powersave");
	assert_true(isnan(s.busy_cpus));
}

static void powersave_of_a_driver_that_adapts_is_judged_by_its_preference(void **state)
{
	struct machine_state s;

	(void)state;
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance_performance\n");
	machine_look(&s, 0);
	assert_true(s.clean);
	make_file("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance_power\n");
	machine_look(&s, 0);
	assert_string_equal(s.reasons[0], "the CPU's energy preference is balance_power");
}

static void files_that_are_missing_or_damaged_make_nothing_unclean(void **state)
{
	struct machine_state s;
	struct machine m;

	(void)state;
	machine_look(&s, NS_PER_MS);
	assert_true(s.clean);
	assert_true(isnan(s.busy_cpus));
	assert_int_equal(s.memory_available, -1);
	make_file("proc/loadavg", "\xff");
	make_file("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: x\nSwapTotal:");
	make_file("proc/stat", "cpu  1");
	make_file("proc/cpuinfo", "model name");
	machine_look(&s, NS_PER_MS);
	assert_true(s.clean);
	machine_read(&m);
	assert_int_equal(m.memory, -1);
	assert_string_equal(m.cpu_model, "");
}

static void the_model_of_the_processor_is_its_name(void **state)
{
	struct machine m;

	(void)state;
	make_file("proc/cpuinfo",
		  "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Fast(R) CPU @ 2.00GHz\t \nstepping\t: 7\n");
	machine_read(&m);
	assert_string_equal(m.cpu_model, "Fast(R) CPU @ 2.00GHz");
}

static void a_busy_program_is_noticed(void **state)
{
	pid_t busy[2];
	struct machine_state s = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				__asm__ volatile("");
		}
	}
	for (int tries = 0; s.reason_count == 0 && tries < 100; tries++)
		machine_look(&s, 100 * NS_PER_MS);
	for (int i = 0; i < 2; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	assert_true(s.busy_cpus > 0.1);
	assert_false(s.clean);
	assert_non_null(strstr(s.reasons[0], "other programs use"));
}

/* Two that call themselves assay and its helper. With `apart`, they are no descendants of this process. Returns the pid
 * of the first through the pipe that ends them when it is closed. */
static pid_t pretend(int hold[2], bool apart)
{
	int tell[2];
	pid_t pid, first;

	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(tell), 0);
	first = fork();
	if (first == 0) {
		char c;

		close(hold[1]);
		if (apart && fork() != 0)
			_exit(0);
		prctl(PR_SET_NAME, "assay");
		if (fork() == 0) {
			prctl(PR_SET_NAME, "measure-helper");
			/* Only now is everything as it should be. */
			pid = getppid();
			if (write(tell[1], &pid, sizeof pid) != sizeof pid)
				_exit(1);
		}
		close(tell[1]);
		_exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
	}
	close(hold[0]);
	close(tell[1]);
	assert_int_equal(read(tell[0], &pid, sizeof pid), sizeof pid);
	close(tell[0]);
	if (apart)
		assert_int_equal(waitpid(first, NULL, 0), first);
	return pid;
}

/* Another real one on this machine would be found as well. */
static bool somebody_records(void)
{
	return others_find_recording() != 0;
}

static void another_assay_that_records_is_found(void **state)
{
	struct machine_state s;
	int hold[2];
	pid_t pid;

	(void)state;
	pid = pretend(hold, true);
	machine_look(&s, 0);
	close(hold[1]);
	assert_true(s.other_assay > 0);
	if (s.other_assay == pid)
		assert_non_null(strstr(s.reasons[s.reason_count - 1], "another assay is recording"));
	while (kill(pid, 0) == 0)
		usleep(1000);
}

static void an_assay_below_this_process_is_not_another(void **state)
{
	int hold[2], other;
	bool quiet = !somebody_records();
	pid_t pid = pretend(hold, false);

	(void)state;
	other = others_find_recording();
	close(hold[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_not_equal(other, pid);
	if (quiet && !somebody_records())
		assert_int_equal(other, 0);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_machine_is_described),
		cmocka_unit_test(only_the_cpus_of_its_mask_are_allowed),
		FAKE(a_quiet_machine_is_clean),
		FAKE(every_reason_is_given),
		FAKE(powersave_of_a_driver_that_adapts_is_judged_by_its_preference),
		FAKE(files_that_are_missing_or_damaged_make_nothing_unclean),
		FAKE(the_model_of_the_processor_is_its_name),
		cmocka_unit_test(a_busy_program_is_noticed),
		cmocka_unit_test(another_assay_that_records_is_found),
		cmocka_unit_test(an_assay_below_this_process_is_not_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
