/* What limited real runs of an engine, whose counters were written down every 100 ms while they ran.
 *
 * tests/data/limits/LOG.csv has the counters of tests/data/engine/LOG.tsv: ticks are of 10 ms, sizes in kB or bytes,
 * pressure in us, refaults in pages of 4096 bytes. The machine had two CPUs and no GPU; nothing else ran. Neither the
 * run-queue wait, nor pressure on the CPU, nor single threads were written down, so no verdict may rest on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine_replay.h"
#include "judge/limits.h"
#include "model/window.h"

#define MIB 1048576.0
#define SHORTEST_S 0.2 /* two readings */

/* From the columns of a csv to the figures of a phase. */
enum use { GROWTH, SHARE, MOST };

static const struct column {
	const char *name;
	double unit;
	enum use use;
	size_t offset;
} columns[] = {
	{"utime_ticks", 0.01, GROWTH, offsetof(struct phase_figures, cpu_user_s)},
	{"stime_ticks", 0.01, GROWTH, offsetof(struct phase_figures, cpu_system_s)},
	{"minflt", 1, GROWTH, offsetof(struct phase_figures, minor_faults)},
	{"majflt", 1, GROWTH, offsetof(struct phase_figures, major_faults)},
	{"threads", 1, MOST, offsetof(struct phase_figures, threads_max)},
	{"rss_anon_kb", 1024, MOST, offsetof(struct phase_figures, anon_peak)},
	{"rss_file_kb", 1024, MOST, offsetof(struct phase_figures, file_peak)},
	{"rchar", 1, GROWTH, offsetof(struct phase_figures, read_chars)},
	{"read_bytes", 1, GROWTH, offsetof(struct phase_figures, read_bytes)},
	{"psi_mem_some_us", 1e-6, SHARE, offsetof(struct phase_figures, psi_memory_some)},
	{"psi_mem_full_us", 1e-6, SHARE, offsetof(struct phase_figures, psi_memory_full)},
	{"psi_io_some_us", 1e-6, SHARE, offsetof(struct phase_figures, psi_io_some)},
	{"psi_io_full_us", 1e-6, SHARE, offsetof(struct phase_figures, psi_io_full)},
	{"refault_file", 4096, GROWTH, offsetof(struct phase_figures, machine_refault_bytes)},
	{"pgmajfault_sys", 1, GROWTH, offsetof(struct phase_figures, machine_major_faults)},
};

#define COLUMNS (sizeof columns / sizeof *columns)
#define FIELDS_MAX 32

static void read_data(const char *folder, const char *log, const char *suffix, struct buf *ret)
{
	char path[512];
	struct error err;

	snprintf(path, sizeof path, "%s/%s/%s.%s", replay_data(), folder, log, suffix);
	buf_init(ret);
	if (fs_read_file(path, 1 << 20, ret, &err) < 0)
		fail_msg("%s", err.text);
}

/* A recorded run, and how it is looked at. */
struct capture {
	const char *log;
	double memory_limit_mib; /* of its control group; 0: none */
	double from, to;         /* s: one phase "window" in place of those that the log gives; 0, 0: none */
	double times;            /* everything takes so many times as long: a model of so many times the size; 0: 1 */
};

static int64_t at_time(const struct capture *c, double seconds)
{
	return REPLAY_START + (int64_t)(seconds * 1e9 * (c->times > 0 ? c->times : 1));
}

/* When the command ended: the second line of its log. */
static int64_t end_of(const struct capture *c)
{
	struct buf text;
	const char *line;
	int64_t end;

	read_data("engine", c->log, "tsv", &text);
	line = strstr(text.text, "\nend\t");
	assert_non_null(line);
	end = at_time(c, strtod(line + 5, NULL));
	buf_release(&text);
	return end;
}

static size_t split_row(char *row, char *fields[FIELDS_MAX])
{
	size_t count = 0;

	for (char *rest = row; rest && count < FIELDS_MAX; count++)
		fields[count] = strsep(&rest, ",");
	return count;
}

static void begin_windows(const struct run *run, const struct column *c, struct window *items, struct windows *w)
{
	for (size_t i = 0; i < run->phases.count; i++)
		items[i] = (struct window){.start = run->phases.items[i].start, .end = run->phases.items[i].end};
	windows_begin(w, c->use == MOST ? SERIES_GAUGE : SERIES_COUNTER, items, run->phases.count);
}

static void put_column(struct run *run, const struct column *c, const struct window *items)
{
	for (size_t i = 0; i < run->phases.count; i++) {
		double *figure = (double *)((char *)&run->figures[i] + c->offset);

		*figure = c->use == MOST ? items[i].max : items[i].growth;
		if (c->use == SHARE)
			*figure /= (double)(items[i].end - items[i].start) / 1e9;
	}
}

static void read_column(struct run *run, const struct capture *capture, const struct column *c)
{
	char *rows = NULL, *row, *fields[FIELDS_MAX];
	struct window *items = calloc(run->phases.count, sizeof *items);
	double unit = c->use != MOST && capture->times > 0 ? c->unit * capture->times : c->unit;
	struct windows w;
	struct buf text;
	size_t at = 0, count;

	assert_non_null(items);
	read_data("limits", capture->log, "csv", &text);
	row = strtok_r(text.text, "\n", &rows);
	count = split_row(row, fields);
	while (at < count && strcmp(fields[at], c->name) != 0)
		at++;
	assert_true(at < count);
	begin_windows(run, c, items, &w);
	while ((row = strtok_r(NULL, "\n", &rows))) {
		assert_int_equal(split_row(row, fields), count);
		windows_point(&w, at_time(capture, strtod(fields[0], NULL)), strtod(fields[at], NULL) * unit);
	}
	windows_end(&w, run->end);
	put_column(run, c, items);
	buf_release(&text);
	free(items);
}

/* The size of the model, as the recorder would note it of a file that the command names. */
static void note_input(struct run *run, double bytes)
{
	run->series = calloc(1, sizeof *run->series);
	assert_non_null(run->series);
	run->series_count = 1;
	run->series[0] = (struct run_series){
		.name = strdup("input.0.size"),
		.scope = strdup("file model.gguf"),
		.phases = calloc(run->phases.count, sizeof *run->series[0].phases),
		.first = bytes,
		.last = bytes,
	};
	assert_non_null(run->series[0].phases);
}

/* What is known of the machine and the model beside the counters. */
static void describe_machine(struct run *run, double memory_limit_mib)
{
	run->cpus = run->cpus_allowed = 2;
	run->memory_bytes = 24e9;
	run->bandwidth[0] = (struct bandwidth){
		.one = 29e9, /* seen between 28 and 30 */
		.all = 32.5e9, /* and between 31 and 34 */
		.one_spread = 0.07,
		.all_spread = 0.09,
		.threads = 2,
		.touched = NAN,
		.cache_bytes = 32 * MIB,
		.quiet = true,
	};
	run->weights = (struct run_weights){
		.file_bytes = 295.57 * MIB,
		.bytes_per_token = 305.5e6,
		.kv_bytes_per_position = 24 * 2 * 512 * 2, /* layers, keys and values, their width, 16 bits */
	};
	for (size_t i = 0; i < run->phases.count; i++) {
		struct phase_figures *f = &run->figures[i];

		f->cpu_s = f->cpu_user_s + f->cpu_system_s;
		f->rss_peak = f->anon_peak + f->file_peak;
		/* A model larger than the limit was read: the group was full from then on. */
		if (memory_limit_mib > 0)
			f->memory_limit = f->group_memory_peak = memory_limit_mib * MIB;
	}
	note_input(run, run->weights.file_bytes);
}

static void find_phases(struct run *run, const struct capture *c)
{
	struct marks marks;
	struct error err;

	marks_init(&marks);
	if (c->to > c->from) {
		assert_int_equal(marks_add(&marks, at_time(c, c->from), GROUP_OTHER, "window", 6, &err), 0);
		assert_int_equal(marks_add(&marks, at_time(c, c->to), GROUP_OTHER, "after", 5, &err), 0);
	}
	assert_int_equal(phases_from_marks(&run->phases, c->to > c->from ? &marks : &run->engine.marks, run->start,
					   run->end, "start", false, &run->warnings, &err),
			 0);
	marks_release(&marks);
}

static void judge(struct run *run, const struct capture *c)
{
	struct error err;

	run_init(run);
	replay(c->log, &plain, &run->engine);
	run->has_engine = true;
	run->start = REPLAY_START;
	run->end = end_of(c);
	find_phases(run, c);
	run->figures = calloc(run->phases.count, sizeof *run->figures);
	assert_non_null(run->figures);
	for (size_t i = 0; i < run->phases.count; i++)
		run->figures[i] = phase_figures_none;
	for (size_t k = 0; k < COLUMNS; k++)
		read_column(run, c, &columns[k]);
	describe_machine(run, c->memory_limit_mib);
	if (limits_judge(run, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(run->limit_count, run->phases.count);
}

/* What is true, by hand. Confidence: the least and the most that the counters bear out. */
struct truth {
	const char *phase;
	enum limit_kind kind;
	const char *detail;
	enum limit_confidence least, most;
	const char *names; /* what the sentence must name */
};

static void assert_limit(const char *log, const struct phase *phase, const struct limit *l, const struct truth *wanted)
{
	if (strcmp(phase->name, wanted->phase) != 0)
		fail_msg("%s: the phase is %s, not %s", log, phase->name, wanted->phase);
	if (l->kind != wanted->kind || strcmp(l->detail ? l->detail : "", wanted->detail) != 0 ||
	    l->confidence < wanted->least || l->confidence > wanted->most || !strstr(l->why, wanted->names))
		fail_msg("%s, %s: %s, %s, %s: %s\ninstead of %s, %s, %s to %s, \"%s\"", log, phase->name,
			 limit_kind_name(l->kind), l->detail ? l->detail : "", limit_confidence_name(l->confidence),
			 l->why, limit_kind_name(wanted->kind), wanted->detail, limit_confidence_name(wanted->least),
			 limit_confidence_name(wanted->most), wanted->names);
}

/* Compares the phases that are long enough, in their order; the list ends with a row without a phase. */
static void assert_phases(const struct capture *c, const struct truth *wanted)
{
	struct run run;

	judge(&run, c);
	for (size_t i = 0; i < run.phases.count; i++) {
		const struct phase *p = &run.phases.items[i];

		if ((double)(p->end - p->start) / 1e9 < SHORTEST_S)
			continue;
		if (!wanted->phase)
			fail_msg("%s: the phase %s is not expected", c->log, p->name);
		assert_limit(c->log, p, &run.limits[i], wanted++);
	}
	assert_null(wanted->phase);
	run_release(&run);
}

/* The same for the one phase of a capture that is looked at by hand. */
static void assert_window(const struct capture *c, const struct truth *wanted)
{
	struct run run;
	size_t found = 0;

	judge(&run, c);
	for (size_t i = 0; i < run.phases.count; i++)
		if (strcmp(run.phases.items[i].name, "window") == 0) {
			assert_limit(c->log, &run.phases.items[i], &run.limits[i], wanted);
			found++;
		}
	assert_int_equal(found, 1);
	run_release(&run);
}

/* Without a look at single threads, all that can be said of a busy CPU is how busy it was. */
#define BUSY(phase) {phase, LIMIT_CPU, "all threads", CONFIDENCE_LOW, CONFIDENCE_MEDIUM, "of the 2 CPUs"}

static void a_warm_run_computes_the_prompt_and_streams_the_weights_for_each_token(void **state)
{
	static const struct capture warm = {.log = "new-bench-warmcache"};
	static const struct truth wanted[] = {
		BUSY("warmup"),
		BUSY("pp256"),
		{"tg128", LIMIT_MEMORY_BANDWIDTH, "", CONFIDENCE_MEDIUM, CONFIDENCE_MEDIUM, "105.5 tokens/s"},
		{NULL},
	};

	(void)state;
	assert_phases(&warm, wanted);
}

static void a_cold_run_waits_for_the_disk_while_it_loads_and_is_a_warm_one_then(void **state)
{
	/* The model is so small that its load ends within a reading: a larger one is made of it. */
	static const struct capture load = {
		.log = "new-bench-coldcache-mmap", .from = 0.0085, .to = 0.1379, .times = 4};
	static const struct truth disk = {"window", LIMIT_DISK, "", CONFIDENCE_MEDIUM, CONFIDENCE_HIGH, "/s"};
	static const struct capture cold = {.log = "new-bench-coldcache-mmap"};
	static const struct truth wanted[] = {
		BUSY("warmup"),
		BUSY("pp256"),
		{"tg128", LIMIT_MEMORY_BANDWIDTH, "", CONFIDENCE_MEDIUM, CONFIDENCE_MEDIUM, "106.5 tokens/s"},
		{NULL},
	};

	(void)state;
	assert_window(&load, &disk);
	assert_phases(&cold, wanted);
}

static void with_less_memory_than_the_model_it_is_ram_from_the_second_reading_on(void **state)
{
	static const struct capture limited = {.log = "new-bench-memlimit240-mmap", .memory_limit_mib = 240};
	/* In the warmup the model is read for the first and then the second time while 1.6 cores compute. */
	static const struct truth wanted[] = {
		{"warmup", LIMIT_UNKNOWN, "", CONFIDENCE_LOW, CONFIDENCE_LOW, "1.58 cores"},
		{"pp32", LIMIT_RAM, "", CONFIDENCE_MEDIUM, CONFIDENCE_HIGH, "limit of 240"},
		{"tg16", LIMIT_RAM, "", CONFIDENCE_HIGH, CONFIDENCE_HIGH, "limit of 240"},
		{NULL},
	};

	(void)state;
	assert_phases(&limited, wanted);
}

static void a_server_computes_while_it_has_requests(void **state)
{
	static const struct capture one_by_one = {.log = "new-server-default"};
	static const struct capture together = {.log = "new-server-parallel4"};
	static const struct capture old = {.log = "old-server-default"};
	static const struct truth wanted[] = {
		{"load", LIMIT_CPU, "one thread", CONFIDENCE_LOW, CONFIDENCE_LOW, ""},
		BUSY("serving"),
		{NULL},
	};

	(void)state;
	assert_phases(&one_by_one, wanted);
	assert_phases(&together, wanted);
	assert_phases(&old, wanted + 1); /* it loads in a tenth of a second */
}

static void a_long_prompt_keeps_all_threads_busy(void **state)
{
	static const struct capture prompts[] = {
		{.log = "new-server-default", .from = 0.95, .to = 8.80},
		{.log = "old-server-default", .from = 0.80, .to = 9.40},
	};
	static const struct truth wanted = BUSY("window");

	(void)state;
	assert_window(&prompts[0], &wanted);
	assert_window(&prompts[1], &wanted);
}

static void a_server_without_requests_waits(void **state)
{
	static const struct capture idle[] = {
		{.log = "new-server-default", .from = 12.54, .to = 13.44},
		{.log = "old-server-default", .from = 10.95, .to = 11.30},
	};
	static const struct truth wanted = {"window", LIMIT_WAIT, "", CONFIDENCE_MEDIUM, CONFIDENCE_HIGH, "slept"};

	(void)state;
	assert_window(&idle[0], &wanted);
	assert_window(&idle[1], &wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_warm_run_computes_the_prompt_and_streams_the_weights_for_each_token),
		cmocka_unit_test(a_cold_run_waits_for_the_disk_while_it_loads_and_is_a_warm_one_then),
		cmocka_unit_test(with_less_memory_than_the_model_it_is_ram_from_the_second_reading_on),
		cmocka_unit_test(a_server_computes_while_it_has_requests),
		cmocka_unit_test(a_long_prompt_keeps_all_threads_busy),
		cmocka_unit_test(a_server_without_requests_waits),
	};

	replay_data();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
