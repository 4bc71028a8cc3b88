#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <time.h>

#include "source/gpu_reader.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)
#define PATIENT (60 * SECOND) /* no test waits so long unless something hangs */
#define TRIES 20000	      /* of 1 ms */

#define ONE_GPU "count 1\ngpu.0.name Test GPU\n"

static int64_t now;

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* What the stand-in answers from now on. */
static void answers(const char *text)
{
	make_file("answers.new", text);
	assert_int_equal(rename(scratch_path("answers.new"), scratch_path("answers")), 0);
}

static size_t calls_of(const char *key)
{
	FILE *f = fopen(scratch_path("answers.calls"), "re");
	char line[256];
	size_t count = 0;

	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		count += strcmp(line, key) == 0;
	}
	if (f)
		fclose(f);
	return count;
}

static void await_calls(const char *key, size_t count)
{
	for (int i = 0; calls_of(key) < count; i++) {
		if (i == TRIES)
			fail_msg("%s was called %zu times, not %zu", key, calls_of(key), count);
		pause_ms(1);
	}
}

static void step(struct stage *s)
{
	now += SECOND;
	s->context.exact = true;
	stage_slow(s, now);
	s->context.exact = false;
	stage_tick(s, now);
}

/* Readings come in from threads: goes on until the series has that value. */
static void await(struct stage *s, const char *name, double value)
{
	for (int i = 0; !(fabs(last_of(name) - value) <= 1e-9 * fmax(1, fabs(value))); i++) {
		if (i == TRIES)
			fail_msg("%s is %.17g, and never %.17g", name, last_of(name), value);
		step(s);
		pause_ms(1);
	}
}

/* Goes on for so many readings, by the calls for the power of the first GPU. */
static void await_readings(struct stage *s, size_t count)
{
	size_t before = calls_of("gpu.0.power");

	for (int i = 0; calls_of("gpu.0.power") < before + count + 1; i++) {
		if (i == TRIES)
			fail_msg("no more readings are made");
		step(s);
	}
	step(s);
}

static void await_warning(struct stage *s, const char *words)
{
	for (int i = 0;; i++) {
		for (size_t k = 0; k < s->warnings.count; k++)
			if (strstr(s->warnings.texts[k], words))
				return;
		if (i == TRIES)
			fail_msg("no warning has '%s'", words);
		step(s);
	}
}

static void start(struct stage *s)
{
	stage_init(s, 0);
	stage_open(s, &source_gpu);
	step(s);
}

static int refused(struct error *why)
{
	struct stage s;
	void *unused;
	int result;

	stage_init(&s, 0);
	result = source_gpu.open(&s.context, &unused, why);
	stage_release(&s);
	return result;
}

static int with_driver(void **state)
{
	if (fake_roots(state) < 0)
		return -1;
	make_file("proc/driver/nvidia/version", "NVRM version: a test\n");
	now = 0;
	return setenv("ASSAY_TEST_NVML", scratch_path("answers"), 1);
}

static void every_figure_has_its_unit(void **state)
{
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.utilization 87 45\ngpu.0.memory 1000 400 600\ngpu.0.power 250500\n"
			"gpu.0.energy 123456\ngpu.0.tx 1000\ngpu.0.rx 2000\ngpu.0.generation 4\ngpu.0.width 16\n"
			"gpu.0.throttle 0\ngpu.0.temperature 71\ngpu.0.clock 1980\n");
	start(&s);
	assert_last("gpu.0.utilization", 0.87);
	assert_last("gpu.0.memory_utilization", 0.45);
	assert_last("gpu.0.memory.used", 600);
	assert_last("gpu.0.power", 250.5);
	assert_last("gpu.0.energy", 123.456);
	assert_last("gpu.0.pcie.peak", 16 * 1969e6);
	assert_last("gpu.0.throttle.power", 0);
	assert_last("gpu.0.throttle.thermal", 0);
	assert_last("gpu.0.temperature", 71);
	assert_last("gpu.0.clock.sm", 1.98e9);
	await(&s, "gpu.0.pcie.tx", 1e6);
	await(&s, "gpu.0.pcie.rx", 2e6);
	assert_string_equal(series_of("gpu.0.power")->scope, "gpu 0 Test GPU");
	assert_string_equal(series_of("gpu.0.power")->unit, "w");
	assert_int_equal(series_of("gpu.0.energy")->kind, SERIES_COUNTER);
	assert_int_equal(series_of("gpu.0.pcie.rx")->kind, SERIES_GAUGE);
	assert_int_equal(s.warnings.count, 0);
	stage_release(&s);
	assert_int_equal(calls_of("init"), 1);
	assert_int_equal(calls_of("shutdown"), 1);
}

static void figures_follow_the_device(void **state)
{
	struct stage s;

	(void)state;
	answers("count 2\ngpu.0.name A\ngpu.1.name B\ngpu.0.power 1000\ngpu.1.power 2000\n");
	start(&s);
	assert_last("gpu.0.power", 1);
	assert_last("gpu.1.power", 2);
	answers("count 2\ngpu.0.power 3000\ngpu.1.power 4000\n");
	await(&s, "gpu.0.power", 3);
	await(&s, "gpu.1.power", 4);
	assert_string_equal(series_of("gpu.1.power")->scope, "gpu 1 B");
	stage_release(&s);
}

static void throttling_tells_power_from_heat(void **state)
{
	static const struct {
		const char *bits;
		double power, thermal;
	} reasons[] = {
		{"0x1", 0, 0},	{"0x4", 1, 0},	{"0x80", 1, 0}, {"0x88", 1, 0},
		{"0x20", 0, 1}, {"0x48", 0, 1}, {"0x8", 1, 1},	{"0x112", 0, 0},
	};
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.throttle 0\n");
	start(&s);
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		char text[256];

		snprintf(text, sizeof text, ONE_GPU "gpu.0.power %zu\ngpu.0.throttle %s\n", i * 1000, reasons[i].bits);
		answers(text);
		await(&s, "gpu.0.power", (double)i);
		assert_last("gpu.0.throttle.power", reasons[i].power);
		assert_last("gpu.0.throttle.thermal", reasons[i].thermal);
	}
	stage_release(&s);
}

static void what_is_not_supported_is_absent_and_not_asked_again(void **state)
{
	struct stage s;

	(void)state;
	answers("count 2\ngpu.0.power 1000\ngpu.1.tx 1\ngpu.1.processes 24\n");
	start(&s);
	while (calls_of("gpu.1.tx") < 3 || calls_of("gpu.1.processes") < 2)
		await_readings(&s, 1);
	assert_int_equal(calls_of("gpu.0.utilization"), 1);
	assert_int_equal(calls_of("gpu.0.energy"), 1);
	assert_int_equal(calls_of("gpu.0.rx"), 1);
	assert_int_equal(calls_of("gpu.0.tx"), 1);
	assert_int_equal(calls_of("gpu.0.processes"), 1);
	assert_int_equal(shown_count, 2);
	assert_non_null(series_of("gpu.0.power"));
	assert_non_null(series_of("gpu.1.pcie.tx"));
	assert_int_equal(s.warnings.count, 0);
	stage_release(&s);
}

static void values_that_make_no_sense_are_no_points(void **state)
{
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.utilization 101 4294967295\ngpu.0.generation 9\ngpu.0.width 16\n"
			"gpu.0.processes 20 1 5\n");
	start(&s);
	await_readings(&s, 1);
	assert_null(series_of("gpu.0.utilization"));
	assert_null(series_of("gpu.0.memory_utilization"));
	assert_null(series_of("gpu.0.pcie.peak"));
	answers(ONE_GPU "gpu.0.power 2000\ngpu.0.generation 5\ngpu.0.width 0\n");
	await(&s, "gpu.0.power", 2);
	await_readings(&s, 1);
	assert_null(series_of("gpu.0.pcie.peak"));
	stage_release(&s);
}

static void energy_that_goes_back_is_left_out(void **state)
{
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.energy 5000\n");
	start(&s);
	answers(ONE_GPU "gpu.0.power 2000\ngpu.0.energy 1000\n");
	await(&s, "gpu.0.power", 2);
	await_readings(&s, 1);
	assert_last("gpu.0.energy", 5);
	answers(ONE_GPU "gpu.0.power 3000\ngpu.0.energy 6000\n");
	await(&s, "gpu.0.energy", 6);
	stage_release(&s);
}

static void memory_of_the_target_is_that_of_its_processes(void **state)
{
	static const char *const sizes[] = {"16", "24", "32"};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct stage s;
		char text[256];

		snprintf(text, sizeof text, ONE_GPU "gpu.0.power 1000\ngpu.0.processes %s 70 1000 71 500 99 7\n",
			 sizes[i]);
		answers(text);
		stage_init(&s, 70);
		assert_non_null(process_add(&s.table, 70, 1, 1, 1));
		assert_non_null(process_add(&s.table, 71, 70, 1, 1));
		stage_open(&s, &source_gpu);
		step(&s);
		assert_last("gpu.0.memory.target", 1500);
		process_died(&s.table, process_find(&s.table, 70), 2);
		process_died(&s.table, process_find(&s.table, 71), 2);
		await(&s, "gpu.0.memory.target", 0);
		stage_release(&s);
	}
}

static void without_pids_of_the_target_its_memory_is_absent(void **state)
{
	static const char *const lists[] = {
		"24 70 0xffffffffffffffff", /* not told */
		"24 4194305 5",	    /* of another container: no pid of ours */
		"24",			    /* nobody */
		"0",			    /* more than there is room for */
		"error 999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct stage s;
		char text[256];

		snprintf(text, sizeof text, ONE_GPU "gpu.0.power 1000\ngpu.0.processes %s\n", lists[i]);
		answers(text);
		stage_init(&s, 70);
		assert_non_null(process_add(&s.table, 70, 1, 1, 1));
		stage_open(&s, &source_gpu);
		await_readings(&s, 2);
		assert_null(series_of("gpu.0.memory.target"));
		stage_release(&s);
	}
}

static void a_gpu_that_only_others_use_holds_nothing_of_the_target(void **state)
{
	struct stage s;
	char text[256];

	(void)state;
	snprintf(text, sizeof text, ONE_GPU "gpu.0.power 1000\ngpu.0.processes 24 %d 5\n", (int)getpid());
	answers(text);
	stage_init(&s, 70);
	assert_non_null(process_add(&s.table, 70, 1, 1, 1));
	stage_open(&s, &source_gpu);
	await(&s, "gpu.0.memory.target", 0);
	stage_release(&s);
}

static void a_lost_gpu_is_said_once_and_left_alone(void **state)
{
	struct stage s;
	size_t calls;

	(void)state;
	answers("count 2\ngpu.0.power 1000\ngpu.1.power 1000\ngpu.1.energy 1000\n");
	start(&s);
	answers("count 2\ngpu.0.power 2000\ngpu.1.power error 15\ngpu.1.energy 2000\n");
	await_warning(&s, "GPU 1 could not be read at all times: power: GPU is lost.");
	await(&s, "gpu.0.power", 2);
	calls = calls_of("gpu.1.power");
	await_readings(&s, 2);
	assert_int_equal(calls_of("gpu.1.power"), calls);
	assert_int_equal(s.warnings.count, 1);
	stage_release(&s);
}

static void an_error_that_passes_is_said_and_the_figure_comes_back(void **state)
{
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.temperature error 999\n");
	start(&s);
	await_warning(&s, "temperature: Unknown Error");
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.temperature 50\n");
	await(&s, "gpu.0.temperature", 50);
	assert_int_equal(s.warnings.count, 1);
	stage_release(&s);
}

static void a_gpu_without_a_handle_does_not_keep_the_others_away(void **state)
{
	struct stage s;

	(void)state;
	answers("count 2\ngpu.0.handle error 999\ngpu.1.power 5000\n");
	start(&s);
	assert_last("gpu.1.power", 5);
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "GPU 0 could not be read at all times: handle: Unknown Error"));
	assert_int_equal(calls_of("gpu.0.power"), 0);
	stage_release(&s);
}

static void a_call_that_hangs_holds_up_neither_ticks_nor_other_figures(void **state)
{
	struct stage s;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\ngpu.0.rx hang\ngpu.0.tx hang\n");
	start(&s);
	await_calls("gpu.0.rx", 1);
	answers(ONE_GPU "gpu.0.power 2000\ngpu.0.rx hang\ngpu.0.tx hang\n");
	await(&s, "gpu.0.power", 2);
	answers(ONE_GPU "gpu.0.power hang\ngpu.0.rx 1\ngpu.0.tx 1\n");
	await(&s, "gpu.0.pcie.rx", 1000);
	answers(ONE_GPU "gpu.0.power 3000\n");
	await(&s, "gpu.0.power", 3);
	stage_release(&s);
}

static void without_a_driver_the_library_is_not_opened(void **state)
{
	struct error why;

	(void)state;
	answers(ONE_GPU);
	assert_int_equal(remove(scratch_path("proc/driver/nvidia/version")), 0);
	assert_int_equal(refused(&why), SOURCE_ABSENT);
	assert_non_null(strstr(why.text, "no driver of NVIDIA is loaded"));
	assert_int_equal(calls_of("init"), 0);
	make_file("sys/module/nvidia/version", "1\n");
	answers(ONE_GPU "init error 18\n");
	assert_int_equal(refused(&why), -1);
	assert_int_equal(calls_of("init"), 1);
}

static void no_gpu_is_absent_and_a_failing_library_is_not(void **state)
{
	struct error why;

	(void)state;
	answers("count 0\n");
	assert_int_equal(refused(&why), SOURCE_ABSENT);
	answers("init error 9\n");
	assert_int_equal(refused(&why), SOURCE_ABSENT);
	answers("init error 18\n");
	assert_int_equal(refused(&why), -1);
	assert_string_equal(why.text, "libnvidia-ml.so.1: nvmlInit_v2: Driver/library version mismatch (18)");
	answers("count error 999\n");
	assert_int_equal(refused(&why), -1);
	answers("count 1\ngpu.0.handle error 15\n");
	assert_int_equal(refused(&why), -1);
	assert_non_null(strstr(why.text, "GPU is lost"));
	answers("count error 12345\n");
	assert_int_equal(refused(&why), -1);
	assert_non_null(strstr(why.text, "no reason given (12345)"));
	await_calls("shutdown", 4);
}

static void a_library_that_hangs_when_it_starts_is_left_behind(void **state)
{
	struct gpu_reader *reader = NULL;
	struct error why;

	(void)state;
	answers("init hang\n");
	assert_int_equal(gpu_reader_new(1000000, &reader, &why), -1);
	assert_null(reader);
	assert_non_null(strstr(why.text, "did not answer within 0.001 s"));
	answers(ONE_GPU);
	await_calls("shutdown", 1);
}

static void a_reading_is_taken_once(void **state)
{
	struct gpu_reading reading[1];
	struct gpu_reader *reader;
	struct error why;

	(void)state;
	answers(ONE_GPU "gpu.0.power 1000\n");
	assert_int_equal(gpu_reader_new(PATIENT, &reader, &why), 0);
	assert_int_equal(gpu_reader_count(reader), 1);
	assert_true(gpu_reader_take(reader, reading));
	assert_true(reading[0].values[NVML_POWER] == 1);
	assert_false(gpu_reader_take(reader, reading));
	assert_int_equal(gpu_reader_silent_ns(reader), 0);
	gpu_reader_ask(reader, PATIENT);
	assert_true(gpu_reader_take(reader, reading));
	assert_true(reading[0].values[NVML_POWER] == 1);
	answers(ONE_GPU "gpu.0.power hang\n");
	gpu_reader_ask(reader, 0);
	pause_ms(1);
	assert_true(gpu_reader_silent_ns(reader) >= 1000000);
	answers(ONE_GPU);
	gpu_reader_free(reader);
	assert_int_equal(calls_of("shutdown"), 1);
}

/* Loaded by its path once, it is what is found by its name later. */
static int load_stand_in(void **state)
{
	char path[512];

	(void)state;
	snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", getenv("ASSAY_TEST_TARGETS"));
	if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
		return 0;
	fprintf(stderr, "%s\n", dlerror());
	return -1;
}

#define GPU(test) cmocka_unit_test_setup_teardown(test, with_driver, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GPU(every_figure_has_its_unit),
		GPU(figures_follow_the_device),
		GPU(throttling_tells_power_from_heat),
		GPU(what_is_not_supported_is_absent_and_not_asked_again),
		GPU(values_that_make_no_sense_are_no_points),
		GPU(energy_that_goes_back_is_left_out),
		GPU(memory_of_the_target_is_that_of_its_processes),
		GPU(without_pids_of_the_target_its_memory_is_absent),
		GPU(a_gpu_that_only_others_use_holds_nothing_of_the_target),
		GPU(a_lost_gpu_is_said_once_and_left_alone),
		GPU(an_error_that_passes_is_said_and_the_figure_comes_back),
		GPU(a_gpu_without_a_handle_does_not_keep_the_others_away),
		GPU(a_call_that_hangs_holds_up_neither_ticks_nor_other_figures),
		GPU(without_a_driver_the_library_is_not_opened),
		GPU(no_gpu_is_absent_and_a_failing_library_is_not),
		GPU(a_library_that_hangs_when_it_starts_is_left_behind),
		GPU(a_reading_is_taken_once),
	};
	return cmocka_run_group_tests(tests, load_stand_in, NULL);
}
