#include "record/begin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "exec/memory_room.h"
#include "model/mask.h"
#include "record/judging.h"
#include "store/peakfile.h"

#define LOOK_NS (200 * NS_PER_MS)
#define WAIT_STEP_NS (2 * NS_PER_S)
#define WAIT_LIMIT_NS (60 * NS_PER_S)

extern char **environ;

static void say(const struct record_options *o, const char *text)
{
	if (o->say)
		o->say(o->say_context, text);
}

void begin_reasons(const struct machine_state *s, struct buf *out)
{
	for (int i = 0; i < s->reason_count; i++)
		buf_printf(out, "%s%s", i ? "; " : "", s->reasons[i]);
}

int begin_precheck(const struct record_options *options, struct machine_state *ret, struct error *err)
{
	int64_t begun = clock_mono_ns();
	bool told = false;

	for (;;) {
		CLEANUP(buf_release) struct buf text;

		buf_init(&text);
		machine_look(ret, options->precheck == PRECHECK_OFF ? 0 : LOOK_NS);
		if (ret->clean || options->precheck == PRECHECK_OFF)
			return RECORD_OK;
		begin_reasons(ret, &text);
		if (options->precheck == PRECHECK_REFUSE) {
			error_set(err, "the machine is not clean: %s (--precheck warn runs anyway)", text.text);
			return RECORD_REFUSED;
		}
		if (options->precheck == PRECHECK_WARN || clock_mono_ns() - begun > WAIT_LIMIT_NS)
			return RECORD_OK;
		if (!told) {
			struct error line;

			error_set(&line, "waiting up to 60 s for the machine to become clean: %s", text.text);
			say(options, line.text);
			told = true;
		}
		clock_sleep_ns(WAIT_STEP_NS);
	}
}

/* Variables that change how fast a program is, and tell nothing else. All others are not recorded. */
static bool may_be_recorded(const char *name)
{
	static const char *const names[] = {"LANG",
					    "TZ",
					    "CUDA_VISIBLE_DEVICES",
					    "HIP_VISIBLE_DEVICES",
					    "ROCR_VISIBLE_DEVICES",
					    "CUDA_DEVICE_ORDER",
					    "SLURM_JOB_ID",
					    "SLURM_NTASKS",
					    "SLURM_CPUS_PER_TASK",
					    "HF_HUB_OFFLINE",
					    "TOKENIZERS_PARALLELISM",
					    "MALLOC_ARENA_MAX",
					    "MALLOC_CONF",
					    "OPENBLAS_NUM_THREADS",
					    "OPENBLAS_CORETYPE",
					    "MKL_NUM_THREADS",
					    "BLIS_NUM_THREADS",
					    "GOMAXPROCS",
					    "RAYON_NUM_THREADS",
					    "NUMEXPR_NUM_THREADS"};
	static const char *const prefixes[] = {"OMP_", "KMP_", "GOMP_", "LC_", "GGML_"};

	if (mask_is_secret_name(name))
		return false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void put_variable(json_t *object, const char *assignment)
{
	const char *equals = strchr(assignment, '=');
	CLEANUP(free_cleanup) char *name = equals ? strndup(assignment, (size_t)(equals - assignment)) : NULL;

	if (name && may_be_recorded(name))
		json_put_text(object, name, equals + 1);
}

static json_t *environment_json(const struct record_options *o)
{
	json_t *object = json_object();

	for (char **e = environ; e && *e; e++)
		put_variable(object, *e);
	for (const char *const *e = o->env; e && *e; e++)
		put_variable(object, *e);
	return object;
}

static json_t *machine_json(void)
{
	json_t *object = json_object();
	struct machine m;
	struct last_cache cache;
	struct peak_identity id;
	struct bandwidth peak;

	machine_read(&m);
	json_put_text(object, "cpu_model", m.cpu_model);
	json_put_integer(object, "cpus", m.cpus);
	json_put_integer(object, "cpus_allowed", m.cpus_allowed);
	json_put_number(object, "memory_mib", (double)m.memory / 1048576);
	json_put_number(object, "swap_mib", (double)m.swap / 1048576);
	json_put_text(object, "system", m.system);
	json_put_text(object, "kernel", m.kernel);
	json_put_text(object, "architecture", m.architecture);
	json_put_text(object, "boot_id", m.boot_id);
	if (*m.hypervisor)
		json_put_text(object, "hypervisor", m.hypervisor);
	last_cache_read(&cache);
	if (cache.all > 0) {
		json_put_number(object, "cache_mib", cache.all / 1048576);
		json_put_number(object, "cache_one_mib", cache.largest / 1048576);
	}
	/* One that cannot be read is measured anew where a verdict needs it. */
	id = judging_identity(&m);
	if (peakfile_load(&id, &peak, NULL) == 0)
		json_object_set_new(object, "memory_bandwidth", bandwidth_json(&peak));
	return object;
}

static json_t *state_json(const struct machine_state *s, enum precheck precheck)
{
	json_t *object = json_object(), *reasons = json_array();

	if (precheck == PRECHECK_OFF) {
		json_decref(reasons);
		json_put_bool(object, "checked", false);
		return object;
	}
	json_put_bool(object, "clean", s->clean);
	for (int i = 0; i < s->reason_count; i++)
		json_array_append_new(reasons, json_text(s->reasons[i], strlen(s->reasons[i])));
	json_object_set_new(object, "reasons", reasons);
	json_put_number(object, "load_1min", s->load_1min);
	json_put_number(object, "busy_cpus", s->busy_cpus);
	json_put_number(object, "memory_available_mib", (double)s->memory_available / 1048576);
	json_put_number(object, "swap_used_mib", (double)s->swap_used / 1048576);
	if (*s->governor)
		json_put_text(object, "governor", s->governor);
	return object;
}

json_t *begin_build(const struct record_options *options, const struct machine_state *state, const char *label,
		    int64_t wall_ns)
{
	json_t *root = json_object(), *opts = json_object();
	CLEANUP(buf_release) struct buf command;
	CLEANUP(free_cleanup) char *cwd = getcwd(NULL, 0);
	char started[40];

	buf_init(&command);
	mask_command(&command, options->argv);
	clock_iso8601(wall_ns, started, sizeof started);
	json_put_text(root, "assay", ASSAY_VERSION);
	json_put_text(root, "label", label);
	json_put_text(root, "command", command.text);
	json_put_text(root, "cwd", cwd);
	json_put_text(root, "started_at", started);
	json_put_integer(root, "wall_offset_ns", clock_wall_offset_ns());
	if (options->in_design) {
		json_put_integer(root, "block", options->block);
		json_put_integer(root, "arm", options->arm);
	}
	json_put_number(opts, "interval_ms", options->interval_ms);
	json_put_text(opts, "engine", options->engine);
	if (options->timeout_s > 0)
		json_put_number(opts, "timeout_s", options->timeout_s);
	json_put_bool(opts, "wait_tree", options->wait_tree);
	if (options->profile_hz) {
		json_put_integer(opts, "cpu_profile_hz", options->profile_hz);
		json_put_text(opts, "sampler", options->sampler ? options->sampler : "preload");
	}
	json_object_set_new(root, "options", opts);
	json_object_set_new(root, "environment", environment_json(options));
	json_object_set_new(root, "machine", machine_json());
	json_object_set_new(root, "machine_before", state_json(state, options->precheck));
	return root;
}

/* Sets one "K=V", in place of an older one; takes the text over. */
static void set_variable(char **environment, size_t *count, char *assignment)
{
	size_t name = strcspn(assignment, "=") + 1;

	for (size_t i = 0; i < *count; i++) {
		if (strncmp(environment[i], assignment, name) == 0) {
			free(environment[i]);
			environment[i] = assignment;
			return;
		}
	}
	environment[(*count)++] = assignment;
}

static int set_copy(char **environment, size_t *count, const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
		return -1;
	set_variable(environment, count, text);
	return 0;
}

char **begin_environment(const struct record_options *options, const char *markers, const char *run_dir,
			 const char *const *more)
{
	size_t count = 0, room = 3;
	char **environment;
	int failed = 0;

	for (char **e = environ; e && *e; e++)
		room++;
	for (const char *const *e = options->env; e && *e; e++)
		room++;
	for (const char *const *e = more; e && *e; e++)
		room++;
	environment = calloc(room, sizeof *environment);
	if (!environment)
		return NULL;
	/* Not through set_copy: an environment may hold a name twice, or an entry without "=", and is passed on as it
	 * is. */
	for (char **e = environ; e && *e; e++)
		failed |= !(environment[count++] = strdup(*e));
	for (const char *const *e = options->env; !failed && e && *e; e++)
		failed |= set_copy(environment, &count, *e, NULL) < 0;
	if (!failed && markers)
		failed |= set_copy(environment, &count, "ASSAY_MARKERS", markers) < 0;
	if (!failed && run_dir)
		failed |= set_copy(environment, &count, "ASSAY_RUN_DIR", run_dir) < 0;
	for (const char *const *e = more; !failed && e && *e; e++)
		failed |= set_copy(environment, &count, *e, NULL) < 0;
	if (failed) {
		begin_environment_free(environment);
		return NULL;
	}
	return environment;
}

void begin_environment_free(char **environment)
{
	for (char **e = environment; e && *e; e++)
		free(*e);
	free(environment);
}
