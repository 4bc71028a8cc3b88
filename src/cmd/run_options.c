#include "cmd/run_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/spell.h"
#include "cmd/command.h"
#include "cmd/interrupt.h"
#include "cmd/terminal.h"
#include "engine/engine.h"
#include "report/summary.h"

const struct run_options run_options_defaults = {.engine = "auto", .precheck = "warn", .interval_ms = 10};

static int unknown_engine(const char *name, struct error *err)
{
	const char *names[engine_count + 2], *nearest;

	for (size_t i = 0; i < engine_count; i++)
		names[i] = engines[i]->name;
	names[engine_count] = "auto";
	names[engine_count + 1] = "none";
	nearest = spell_nearest(name, names, engine_count + 2);
	if (nearest)
		return error_set(err, "--engine '%s': no such parser; did you mean '%s'?", name, nearest);
	return error_set(err, "--engine '%s': no such parser; `assay doctor` lists them", name);
}

static int check_rate(const struct run_options *o, unsigned *ret_hz, struct error *err)
{
	uint64_t hz = SAMPLING_HZ_DEFAULT;

	if (!o->cpu_profile) {
		*ret_hz = 0;
		return 0;
	}
	if (*o->cpu_profile && (!parse_u64(o->cpu_profile, &hz) || hz < 1 || hz > SAMPLING_HZ_MAX))
		return error_set(err, "option '--cpu-profile': '%s' is not a whole number from 1 to %d",
				 typed_show(o->cpu_profile, strlen(o->cpu_profile)).text, SAMPLING_HZ_MAX);
	*ret_hz = (unsigned)hz;
	return 0;
}

int run_options_check(const struct run_options *o, unsigned *ret_hz, struct error *err)
{
	for (size_t i = 0; i < o->env.count; i++)
		if (!strchr(o->env.items[i], '=') || o->env.items[i][0] == '=')
			return error_set(err, "--env '%s': expected NAME=VALUE", o->env.items[i]);
	if (strcmp(o->engine, "auto") != 0 && strcmp(o->engine, "none") != 0 && !engine_find(o->engine))
		return unknown_engine(o->engine, err);
	return check_rate(o, ret_hz, err);
}

const char *run_options_given(const struct run_options *o)
{
	const struct run_options *d = &run_options_defaults;
	const struct {
		const char *name;
		bool given;
	} known[] = {
		{"out", o->out},
		{"label", o->label},
		{"env", o->env.count > 0},
		{"timeout", o->timeout_s > 0},
		{"interval", o->interval_ms > d->interval_ms || o->interval_ms < d->interval_ms},
		{"engine", o->engine != d->engine},
		{"precheck", o->precheck != d->precheck},
		{"no-probe", o->no_probe},
		{"wait-tree", o->wait_tree},
		{"cpu-profile", o->cpu_profile},
		{"sampler", o->sampler},
		{"regions", o->regions},
		{"summary-only", o->summary_only},
		{"exit-zero", o->exit_zero},
		{"quiet", o->quiet},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].given)
			return known[i].name;
	return NULL;
}

static enum precheck precheck_of(const char *name)
{
	return strcmp(name, "wait") == 0 ? PRECHECK_WAIT : strcmp(name, "refuse") == 0 ? PRECHECK_REFUSE
	       : strcmp(name, "off") == 0				? PRECHECK_OFF
									: PRECHECK_WARN;
}

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "assay: %s\n", text);
}

void run_options_put_json(const char *who, const char *path, const json_t *root, const struct record_result *result)
{
	CLEANUP(free_cleanup) char *text = root ? json_print(root) : NULL;
	struct error err;

	if (!text)
		fprintf(stderr, "assay %s: --json: out of memory\n", who);
	else if (!*path) /* whether it arrives, main() finds out */
		printf("%s%s\n", result->ends_with_newline ? "" : "\n", text);
	else if (json_write_file(path, root, &err) < 0)
		fprintf(stderr, "assay %s: --json: %s\n", who, err.text);
}

void run_options_put_summary(const struct record_result *result)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	summary_print(&result->run, result->kept ? result->dir.path : NULL, terminal_has_colour(STDERR_FILENO),
		      terminal_columns(STDERR_FILENO), &text);
	fwrite(text.text, 1, text.length, stderr);
}

int run_options_execute(const struct run_options *o, unsigned hz, const char *who, char **command,
			void (*answer)(void *context, struct record_result *result), void *context)
{
	struct record_options options = {
		.argv = command,
		.env = o->env.items,
		.out = o->out,
		.label = o->label,
		.engine = o->engine,
		.timeout_s = o->timeout_s,
		.interval_ms = o->interval_ms,
		.precheck = precheck_of(o->precheck),
		.wait_tree = o->wait_tree,
		.summary_only = o->summary_only,
		.no_probe = o->no_probe,
		.profile_hz = hz,
		.sampler = o->sampler,
		.regions = o->regions,
		.in_job = o->in_job,
		.instrument = o->instrument,
		.say = say,
		.progress = !o->quiet && isatty(STDERR_FILENO) ? say : NULL,
	};
	CLEANUP(record_result_release) struct record_result result;
	struct error err;
	int problem;

	record_result_init(&result);
	problem = record_run(&options, &result, &err);
	if (problem != RECORD_OK || !result.started) {
		fprintf(stderr, "assay %s: %s\n", who, err.text);
		return problem == RECORD_USAGE ? EXIT_USAGE : problem != RECORD_OK ? EXIT_TROUBLE : result.exit_status;
	}
	if (o->quiet && result.elsewhere && !o->in_job)
		say(NULL, result.run.warnings.texts[0]);
	answer(context, &result);
	if (result.undelivered) {
		fprintf(stderr,
			"assay %s: %" PRIu64 " bytes of the command's output could not be written where it was sent\n",
			who, result.undelivered);
		result.exit_status = result.exit_status ? result.exit_status : EXIT_TROUBLE;
	}
	if (result.die_of_interrupt && !o->exit_zero)
		interrupt_die();
	return o->exit_zero ? EXIT_DONE : result.exit_status;
}
