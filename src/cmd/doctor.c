/* assay doctor: what can be measured here, and what would grant the rest. Looks only; writes nothing. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/units.h"
#include "cmd/paragraph.h"
#include "cmd/probe.h"
#include "engine/engine.h"
#include "exec/machine.h"
#include "exec/tree.h"
#include "record/judging.h"
#include "report/canvas.h"
#include "source/source.h"
#include "store/peakfile.h"
#include "store/region_writer.h"
#include "store/timeline_file.h"
#include "symbol/symbols.h"
#include "wire/sampler.h"

#define CLEAN_WINDOW_NS INT64_C(200000000)
#define NODE_OLDEST 20
#define LIBASSAY "libassay.so.0"
#define LIBASSAY_MPI "libassay-mpi.so.0"

struct check {
	const char *group, *name;
	bool available;
	char about[256];   /* what it is for, or what was found */
	struct error why_not; /* and what would grant it; only where not available */
};

struct checks {
	struct check *items;
	size_t count;
	bool failed;
};

static void checks_release(struct checks *c)
{
	free(c->items);
	*c = (struct checks){0};
}

/* A new check that is available until said otherwise. After running out of memory, one that nobody reads. */
static struct check *add(struct checks *c, const char *group, const char *name, const char *about)
{
	static struct check lost;
	struct check *items = c->failed ? NULL : reallocarray(c->items, c->count + 1, sizeof *items);

	if (!items) {
		c->failed = true;
		return &lost;
	}
	c->items = items;
	items[c->count] = (struct check){.group = group, .name = name, .available = true};
	snprintf(items[c->count].about, sizeof items[c->count].about, "%s", about);
	return &items[c->count++];
}

static void no_define(void *context, uint32_t id, const struct series_desc *desc)
{
	(void)context, (void)id, (void)desc;
}

static void no_points(void *context, int64_t t, const struct timeline_point *points, size_t count)
{
	(void)context, (void)t, (void)points, (void)count;
}

/* Opens each source as a run would, with a timeline that goes nowhere. */
static void check_sources(struct checks *checks)
{
	for (size_t i = 0; i < source_count; i++) {
		struct check *c = add(checks, "sources", sources[i]->name, sources[i]->summary);
		struct timeline timeline;
		struct process_table processes;
		struct warnings warnings;
		struct source_context context = {.timeline = &timeline, .processes = &processes, .warnings = &warnings};
		void *state;

		timeline_init(&timeline, (struct timeline_sink){.define = no_define, .points = no_points});
		process_table_init(&processes);
		warnings_init(&warnings);
		c->available = sources[i]->open(&context, &state, &c->why_not) == 0;
		if (c->available)
			sources[i]->close(state);
		warnings_release(&warnings);
		process_table_release(&processes);
		timeline_release(&timeline);
	}
}

/* What `assay profile` needs. Whether perf is allowed stands in its own row. */
static void check_profiling(struct checks *checks)
{
	struct check *c = add(checks, "recording", "sampler", "CPU samples of every program that loads libraries");
	CLEANUP(free_cleanup) char *library = fs_find_companion(SAMPLER_LIBRARY);
	char text[128];

	c->available = library != NULL;
	error_set(&c->why_not, "%s is not beside assay, nor in PREFIX/lib/assay: install it again", SAMPLER_LIBRARY);
	c = add(checks, "recording", "symbols", "");
	c->available = symbols_available(text, sizeof text, &c->why_not) == 0;
	snprintf(c->about, sizeof c->about, "names of functions in CPU samples, by %s", c->available ? text : "");
}

static void check_recording(struct checks *checks)
{
	struct check *c = add(checks, "recording", "forks", "every process of the tree is counted, also the shortest");
	char text[200];

	c->available = tree_fork_events_available(&c->why_not) == 0;
	c = add(checks, "recording", "perf", "");
	c->available = probe_perf(c->about, sizeof c->about, &c->why_not) == 0;
	c = add(checks, "recording", "terminal", "a target on a terminal gets a terminal");
	c->available = probe_pty(&c->why_not) == 0;
	c = add(checks, "recording", "cgroup", "");
	c->available = probe_cgroup(text, sizeof text, &c->why_not) == 0;
	snprintf(c->about, sizeof c->about, "a run can have a cgroup of its own below %s",
		 c->available ? text : "its own");
	c = add(checks, "recording", "timeline", "");
	c->available = timeline_file_available(text, sizeof text, &c->why_not) == 0;
	snprintf(c->about, sizeof c->about, "timeline.h5, by %s", c->available ? text : "");
	check_profiling(checks);
}

/* A library that programs link: beside assay as built, and where it is installed one folder above its plug-ins. */
static bool library_there(const char *name)
{
	CLEANUP(free_cleanup) char *beside = fs_find_companion(name), *above = fs_join("..", name);
	CLEANUP(free_cleanup) char *installed = above ? fs_find_companion(above) : NULL;

	return beside || installed;
}

/* What marks regions, what gathers them from many ranks, and what reads and draws them. */
static void check_regions(struct checks *checks)
{
	struct check *c = add(checks, "regions", "files", "");
	char text[128];

	c->available = region_writer_available(text, sizeof text, &c->why_not) == 0;
	snprintf(c->about, sizeof c->about, "regions.h5, merge, inspect, regions diff, check, by %s",
		 c->available ? text : "");
	c = add(checks, "regions", "figures", "");
	c->available = canvas_load(text, sizeof text, &c->why_not) != NULL;
	snprintf(c->about, sizeof c->about, "plot, by %s", c->available ? text : "");
	c = add(checks, "regions", "libassay", "regions and phases that a program marks (assay.h, -lassay)");
	c->available = library_there(LIBASSAY);
	error_set(&c->why_not, "%s is not beside assay, nor in PREFIX/lib: install it again", LIBASSAY);
	c = add(checks, "regions", "libassay-mpi", "ranks, clocks and calls of programs built for " ASSAY_MPI_NAME);
	c->available = *ASSAY_MPI_NAME && library_there(LIBASSAY_MPI);
	if (!*ASSAY_MPI_NAME)
		error_set(&c->why_not, "no MPI was found when assay was built: apt-get install libopenmpi-dev, and "
				       "build it again; without it `assay merge` joins what each rank recorded");
	else
		error_set(&c->why_not, "%s (for %s) is not beside assay, nor in PREFIX/lib: install it again",
			  LIBASSAY_MPI, ASSAY_MPI_NAME);
}

static void check_engines(struct checks *checks)
{
	for (size_t i = 0; i < engine_count; i++)
		add(checks, "engines", engines[i]->name, engines[i]->summary);
}

static void check_tools(struct checks *checks)
{
	struct check *c = add(checks, "tools", "xz", "what ./dev demo measures");
	char text[128];
	double version;
	const char *end;

	if (probe_program("xz", text, sizeof text, &c->why_not) < 0) {
		c->available = false;
		error_set(&c->why_not, "xz is not in $PATH; ./dev demo needs it: apt-get install xz-utils");
	}
	c = add(checks, "tools", "node", "what ./dev demo --llm runs its engine with");
	if (probe_version("node", text, sizeof text, &c->why_not) < 0) {
		c->available = false;
		error_prefix(&c->why_not, "./dev demo --llm needs Node.js %d or newer", NODE_OLDEST);
		return;
	}
	version = parse_double_prefix(text + (*text == 'v'), &end);
	if (!(version >= NODE_OLDEST)) {
		c->available = false;
		error_set(&c->why_not, "this is %.40s; ./dev demo --llm needs Node.js %d or newer", text, NODE_OLDEST);
	}
}

/* Whether a run started now would be of a quiet machine. */
static void check_clean(struct checks *checks)
{
	struct check *c = add(checks, "machine", "quiet", "nothing else of weight is running now");
	struct machine_state state;

	machine_look(&state, CLEAN_WINDOW_NS);
	c->available = state.clean;
	error_set(&c->why_not, "%s", state.reason_count ? state.reasons[0] : "");
	for (int i = 1; i < state.reason_count; i++) {
		struct error first = c->why_not;

		error_set(&c->why_not, "%.300s; %s", first.text, state.reasons[i]);
	}
}

/* The peak that verdicts on memory bandwidth are held against, where a run has left one. */
static void check_bandwidth(struct checks *checks, const struct machine *m)
{
	struct check *c = add(checks, "machine", "bandwidth", "");
	struct peak_identity id = judging_identity(m);
	struct bandwidth b;
	char when[40], together[96] = "";
	int got = peakfile_load(&id, &b, &c->why_not);

	c->available = got == 0;
	if (got > 0)
		error_set(&c->why_not, "not measured yet: measured after the first run whose verdict needs it");
	else if (got < 0)
		error_prefix(&c->why_not, "measured anew after the next run whose verdict needs it");
	if (got != 0)
		return;
	clock_iso8601(b.wall_ns, when, sizeof when);
	if (b.threads > 1)
		snprintf(together, sizeof together, ", %.1f GB/s by %d threads (rounds within %s)", b.all / 1e9,
			 b.threads, units_percent(b.all_spread).text);
	snprintf(c->about, sizeof c->about, "memory is read at %.1f GB/s by one thread%s, measured %.10s", b.one / 1e9,
		 together, when);
}

static void print_machine(const struct machine *m)
{
	printf("assay %s on %s, Linux %s, %s\n", ASSAY_VERSION, m->system, m->kernel, m->architecture);
	printf("%d of %d CPUs (%s), %s of memory, ", m->cpus_allowed, m->cpus,
	       *m->cpu_model ? m->cpu_model : "model unknown", units_bytes((double)m->memory).text);
	printf("%s swap%s%s\n", m->swap ? units_bytes((double)m->swap).text : "no", *m->hypervisor ? ", under " : "",
	       m->hypervisor);
}

static void print_text(const struct machine *m, const struct checks *checks)
{
	size_t column = 0, missing = 0;

	for (size_t i = 0; i < checks->count; i++) {
		size_t width = paragraph_width(checks->items[i].name);

		column = width > column ? width : column;
		missing += !checks->items[i].available;
	}
	column += 2 + 2 + 5;
	print_machine(m);
	for (size_t i = 0; i < checks->count; i++) {
		const struct check *c = &checks->items[i];

		if (i == 0 || strcmp(c->group, checks->items[i - 1].group) != 0)
			printf("\n%s\n", c->group);
		printf("  %-*s%-5s", (int)column - 7, c->name, c->available ? "yes" : "no");
		paragraph_print(stdout, c->available ? c->about : c->why_not.text, column, column);
	}
	printf("\n%zu of %zu are here.\n", checks->count - missing, checks->count);
}

static json_t *machine_json(const struct machine *m)
{
	json_t *o = json_object();

	json_put_text(o, "system", m->system);
	json_put_text(o, "kernel", m->kernel);
	json_put_text(o, "architecture", m->architecture);
	json_put_text(o, "cpu_model", m->cpu_model);
	json_put_text(o, "hypervisor", m->hypervisor);
	json_put_integer(o, "cpus", m->cpus);
	json_put_integer(o, "cpus_allowed", m->cpus_allowed);
	json_put_integer(o, "memory_bytes", m->memory);
	json_put_integer(o, "swap_bytes", m->swap);
	return o;
}

static int print_json(const struct machine *m, const struct checks *checks)
{
	CLEANUP(json_cleanup) json_t *root = json_object();
	CLEANUP(free_cleanup) char *text = NULL;
	json_t *list = json_array();

	json_put_text(root, "version", ASSAY_VERSION);
	json_object_set_new(root, "machine", machine_json(m));
	for (size_t i = 0; i < checks->count; i++) {
		const struct check *c = &checks->items[i];
		json_t *o = json_object();

		json_put_text(o, "group", c->group);
		json_put_text(o, "name", c->name);
		json_put_bool(o, "available", c->available);
		json_put_text(o, "about", c->about);
		json_put_text(o, "why_not", c->available ? NULL : c->why_not.text);
		json_array_append_new(list, o);
	}
	json_object_set_new(root, "checks", list);
	text = json_print(root);
	if (!text)
		return -1;
	puts(text);
	return 0;
}

struct doctor_arguments {
	bool json;
};

static int run(int argc, char **argv)
{
	CLEANUP(checks_release) struct checks checks = {0};
	struct doctor_arguments args = {0};
	struct machine machine;
	struct error err;
	int rest, got = options_parse(&cmd_doctor, argc, argv, &args, &rest, &err);

	if (got == 0 && rest < argc)
		got = error_set(&err, "'%s' is one word too many", typed_show(argv[rest], strlen(argv[rest])).text);
	if (got != 0) {
		if (got < 0)
			fprintf(stderr, "assay doctor: %s\n", err.text);
		return got < 0 ? EXIT_USAGE : EXIT_DONE;
	}
	machine_read(&machine);
	check_sources(&checks);
	check_recording(&checks);
	check_regions(&checks);
	check_engines(&checks);
	check_tools(&checks);
	check_clean(&checks);
	check_bandwidth(&checks, &machine);
	if (args.json && !checks.failed)
		checks.failed = print_json(&machine, &checks) < 0;
	else if (!checks.failed)
		print_text(&machine, &checks);
	if (checks.failed)
		fprintf(stderr, "assay doctor: out of memory\n");
	return checks.failed ? EXIT_TROUBLE : EXIT_DONE;
}

static const struct option options[] = {
	{"json", 0, OPTION_FLAG, offsetof(struct doctor_arguments, json), NULL, "print the answer as JSON"},
	OPTIONS_END,
};

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "what can be measured here, and what would grant the rest",
	.usage = "[--json]",
	.description = "Tries every source of counters, every way of recording, what regions need and the\n"
		       "tools of the demo, and says which are available here, or why not and what would\n"
		       "grant them. Looks only: needs no rights and writes nothing. What is missing is no\n"
		       "error.",
	.options = options,
	.examples = "# what is there, and what is not\nassay doctor\n"
		    "# only what is missing\nassay doctor --json | jq -r '.checks[] | select(.why_not) | .why_not'\n",
	.run = run,
};
