#include "trial/matrix_arm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "exec/apart.h"
#include "store/rundir.h"

#define TRIES_MAX 10000 /* interrupted runs of one arm */

/* What the recording process needs, and what it says. */
struct recording_arm {
	const struct matrix *m;
	const struct matrix_case *what;
	struct matrix_arm *arm;
	const char *path;
	char *const *argv;
	const char *const *env;
	int out;
	bool answered, trouble;
};

/* Kept for the process that is forked: the lists of pointers only. */
static char **command_of(const struct matrix *m, const struct matrix_case *c, size_t side, char **ret_binary)
{
	size_t count = 0, room = 4;
	char **argv;

	for (char **p = c->prefix; *p; p++)
		room++;
	for (char **p = c->args; *p; p++)
		room++;
	argv = calloc(room, sizeof *argv);
	*ret_binary = *c->binary == '/' ? strdup(c->binary) : fs_join(m->plan.sides[side].folder, c->binary);
	if (!argv || !*ret_binary) {
		free(argv);
		return NULL;
	}
	for (char **p = c->prefix; *p; p++)
		argv[count++] = *p;
	argv[count++] = *ret_binary;
	if (c->model) {
		argv[count++] = (char *)"-m";
		argv[count++] = c->model;
	}
	for (char **p = c->args; *p; p++)
		argv[count++] = *p;
	return argv;
}

/* The case's variables, the side's, and the GPUs last: what is set later replaces what was set before. */
static const char **environment_of(const struct matrix *m, const struct matrix_case *c, size_t side, char **ret_gpus)
{
	const json_t *own = m->plan.sides[side].env;
	size_t count = 0, room = json_array_size(own) + 2;
	const char **env;

	for (char **p = c->env; *p; p++)
		room++;
	env = calloc(room, sizeof *env);
	if (c->gpus && asprintf(ret_gpus, "CUDA_VISIBLE_DEVICES=%s", c->gpus) < 0)
		*ret_gpus = NULL;
	if (!env || (c->gpus && !*ret_gpus)) {
		free(env);
		return NULL;
	}
	for (char **p = c->env; *p; p++)
		env[count++] = *p;
	for (size_t i = 0; i < json_array_size(own); i++)
		env[count++] = json_string_value(json_array_get(own, i));
	if (c->gpus)
		env[count++] = *ret_gpus;
	return env;
}

/* One line "KEY TEXT" for the process that waits. */
static void tell(const struct recording_arm *r, const char *key, const char *text)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	buf_printf(&line, "%s ", key);
	utf8_append_line(&line, text, 380);
	buf_putc(&line, '\n');
	fs_write_all(r->out, line.text, line.length); /* where nobody listens any more, nobody has to know */
}

static void pass_on(void *context, const char *text)
{
	tell(context, "say", text);
}

/* In the process of its own. */
static int record_arm(void *context, int out)
{
	struct recording_arm *r = context;
	CLEANUP(buf_release) struct buf label;
	CLEANUP(record_result_release) struct record_result result;
	struct record_options options = {
		.argv = r->argv,
		.env = r->env,
		.out = r->path,
		.engine = "auto",
		.timeout_s = r->m->plan.timeout_s,
		.interval_ms = 10,
		.precheck = matrix_precheck(r->m->plan.precheck),
		.no_probe = true, /* it would stand in the next arm's way */
		.end_tree = true, /* as would what an interrupted one leaves */
		.in_design = r->arm->block >= 0,
		.block = r->arm->block,
		.arm = r->arm->position,
		.say = pass_on,
		.say_context = r,
	};
	struct error err;
	int problem;

	/* The lock is of the process that goes through the arms: it may end before this one. */
	close(r->m->lock);
	r->out = out;
	buf_init(&label);
	record_result_init(&result);
	buf_printf(&label, "%s [%s]", r->what->label, r->m->plan.sides[r->arm->side].name);
	options.label = label.text;
	problem = record_run(&options, &result, &err);
	if (problem == RECORD_REFUSED)
		tell(r, "refused", err.text);
	else if (problem != RECORD_OK)
		tell(r, "trouble", err.text);
	else if (!result.started)
		tell(r, "unstarted", err.text);
	else if (result.elsewhere)
		tell(r, "trouble", result.run.warnings.texts[0]);
	else if (!result.kept) /* why not is the last thing that was noted */
		tell(r, "trouble", result.run.warnings.texts[result.run.warnings.count - 1]);
	else
		tell(r, "done", run_status_name(result.run.status));
	return 0;
}

static void take_line(void *context, const char *line)
{
	struct recording_arm *r = context;
	const char *space = strchr(line, ' ');
	size_t length = space ? (size_t)(space - line) : strlen(line);
	const char *text = space ? space + 1 : "";

	if (strncmp(line, "say", length) == 0) {
		if (r->m->say)
			r->m->say(r->m->context, text);
		return;
	}
	r->answered = true;
	r->trouble = strncmp(line, "trouble", length) == 0;
	if (strncmp(line, "done", length) == 0) {
		snprintf(r->arm->status, sizeof r->arm->status, "%s", text);
		return;
	}
	snprintf(r->arm->status, sizeof r->arm->status, "%s",
		 strncmp(line, "refused", length) == 0 ? "refused" : "not started");
	snprintf(r->arm->why, sizeof r->arm->why, "%s", text);
}

/* "TAG/03_A_old", or with "-2" and so on where an interrupted run has left that one. */
static int name_folder(const struct matrix *m, const struct matrix_case *c, struct matrix_arm *arm, char **ret_path,
		       struct error *err)
{
	CLEANUP(free_cleanup) char *tag = rundir_tag(m->plan.sides[arm->side].name);

	for (int number = 1; tag && number <= TRIES_MAX; number++) {
		CLEANUP(buf_release) struct buf name;

		buf_init(&name);
		buf_printf(&name, "%s/%s%02zu_%c_%s", c->tag, arm->block < 0 ? "warmup_" : "", arm->number,
			   (int)('A' + arm->side), tag);
		if (number > 1)
			buf_printf(&name, "-%d", number);
		*ret_path = fs_join(m->folder, name.text);
		if (!*ret_path)
			break;
		if (!fs_exists(*ret_path)) {
			arm->folder = buf_detach(&name);
			return arm->folder ? 0 : error_set(err, "out of memory for an arm's folder");
		}
		free(*ret_path);
		*ret_path = NULL;
	}
	return error_set(err, "%s/%s: no name is left for an arm's folder", m->folder, c->tag);
}

static void forget_folder(struct matrix_arm *arm)
{
	free(arm->folder);
	arm->folder = NULL;
}

/* What the process's end means. */
static int conclude(struct recording_arm *r, int status, struct error *err)
{
	struct matrix_arm *arm = r->arm;

	if (r->trouble)
		return error_set(err, "%s: arm %zu of %s: %s", r->what->label, arm->number + 1,
				 r->m->plan.sides[arm->side].name, arm->why);
	if (!r->answered) {
		if (!fs_exists(r->path))
			forget_folder(arm);
		if (apart_signal()) {
			*arm->status = '\0';
			return 1;
		}
		snprintf(arm->status, sizeof arm->status, "lost");
		snprintf(arm->why, sizeof arm->why, "the process that recorded it ended with status %d", status);
		return 0;
	}
	if (strcmp(arm->status, "refused") == 0 || strcmp(arm->status, "not started") == 0)
		forget_folder(arm);
	return apart_signal() || strcmp(arm->status, "interrupted") == 0;
}

int matrix_arm_run(const struct matrix *m, const struct matrix_case *c, struct matrix_arm *arm, struct error *err)
{
	CLEANUP(free_cleanup) char *binary = NULL, *gpus = NULL, *path = NULL;
	CLEANUP(free_cleanup) char **argv = command_of(m, c, arm->side, &binary);
	CLEANUP(free_cleanup) const char **env = environment_of(m, c, arm->side, &gpus);
	struct recording_arm r = {.m = m, .what = c, .arm = arm, .argv = argv, .env = env};
	int status;

	if (!argv || !env)
		return error_set(err, "%s: out of memory for its command", c->label);
	if (name_folder(m, c, arm, &path, err) < 0)
		return -1;
	r.path = path;
	if (apart_signal()) {
		forget_folder(arm);
		return 1;
	}
	status = apart_run(record_arm, take_line, &r, err);
	return status < 0 ? -1 : conclude(&r, status, err);
}
