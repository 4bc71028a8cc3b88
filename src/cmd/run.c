/* assay run: puts itself in front of a command and tells what it cost, phase by phase. */
#include "cmd/command.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/spell.h"
#include "cmd/terminal.h"
#include "engine/engine.h"
#include "record/record.h"
#include "report/summary.h"

struct run_args {
	const char *out, *label, *engine, *precheck, *json;
	struct option_list env;
	double timeout_s, interval_ms;
	bool wait_tree, exit_zero, quiet, summary_only, no_probe;
};

static const struct option options[] = {
	{"out", 'o', OPTION_TEXT, offsetof(struct run_args, out), "DIR", "folder for the results; must be new or empty",
	 "assay-runs/DATE-LABEL"},
	{"label", 0, OPTION_TEXT, offsetof(struct run_args, label), "TEXT", "name of this run in reports",
	 "the command's name"},
	{"env", 0, OPTION_LIST, offsetof(struct run_args, env), "K=V",
	 "set a variable for the command; may be repeated", NULL},
	{"timeout", 0, OPTION_NUMBER, offsetof(struct run_args, timeout_s), "S",
	 "end the whole process tree after S seconds (TERM, 5 s later KILL); exit status 124", "none", NULL, 0, 1e9},
	{"interval", 0, OPTION_NUMBER, offsetof(struct run_args, interval_ms), "MS",
	 "time between readings; stretched when reading would cost over 0.7% of a core", "10", NULL, 1, 60000},
	{"engine", 0, OPTION_TEXT, offsetof(struct run_args, engine), "NAME",
	 "parser for the command's output: auto, none, or one that `assay doctor` lists", "auto"},
	{"precheck", 0, OPTION_CHOICE, offsetof(struct run_args, precheck), "WHAT",
	 "when the machine is busy or short of memory before the run", "warn", "wait|refuse|warn|off"},
	{"no-probe", 0, OPTION_FLAG, offsetof(struct run_args, no_probe), NULL,
	 "do not measure how fast memory can be read, nor look at which pages are touched", NULL},
	{"wait-tree", 0, OPTION_FLAG, offsetof(struct run_args, wait_tree), NULL,
	 "wait for descendants that outlive the command, too", NULL},
	{"summary-only", 0, OPTION_FLAG, offsetof(struct run_args, summary_only), NULL,
	 "the command's standard output goes to its log only", NULL},
	{"exit-zero", 0, OPTION_FLAG, offsetof(struct run_args, exit_zero), NULL,
	 "exit with 0 whatever the command's status was", NULL},
	{"quiet", 'q', OPTION_FLAG, offsetof(struct run_args, quiet), NULL, "print no summary", NULL},
	{"json", 0, OPTION_MAYBE, offsetof(struct run_args, json), "FILE",
	 "print run.json on standard output when all is done, or write it to FILE", NULL},
	OPTIONS_END,
};

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

static int check(const struct run_args *a, struct error *err)
{
	for (size_t i = 0; i < a->env.count; i++)
		if (!strchr(a->env.items[i], '=') || a->env.items[i][0] == '=')
			return error_set(err, "--env '%s': expected NAME=VALUE", a->env.items[i]);
	if (strcmp(a->engine, "auto") != 0 && strcmp(a->engine, "none") != 0 && !engine_find(a->engine))
		return unknown_engine(a->engine, err);
	return 0;
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

/* run.json on standard output, or to a file. */
static void put_json(const struct run_args *a, const struct record_result *result)
{
	CLEANUP(free_cleanup) char *text = result->json ? json_print(result->json) : NULL;
	struct error err;

	if (!text)
		fprintf(stderr, "assay run: --json: out of memory\n");
	else if (!*a->json) /* whether it arrives, main() finds out */
		printf("%s%s\n", result->ends_with_newline ? "" : "\n", text);
	else if (json_write_file(a->json, result->json, &err) < 0)
		fprintf(stderr, "assay run: --json: %s\n", err.text);
}

static void put_summary(const struct record_result *result)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	summary_print(&result->run, result->kept ? result->dir.path : NULL, terminal_has_colour(STDERR_FILENO),
		      terminal_columns(STDERR_FILENO), &text);
	fwrite(text.text, 1, text.length, stderr);
}

/* The command died of a Ctrl-C at the terminal. So do we, or the shell's loop around us would go on. */
static void die_of_interrupt(void)
{
	sigset_t only;

	signal(SIGINT, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, SIGINT);
	raise(SIGINT);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static int run_with(const struct run_args *a, char **command)
{
	struct record_options o = {
		.argv = command,
		.env = a->env.items,
		.out = a->out,
		.label = a->label,
		.engine = a->engine,
		.timeout_s = a->timeout_s,
		.interval_ms = a->interval_ms,
		.precheck = precheck_of(a->precheck),
		.wait_tree = a->wait_tree,
		.summary_only = a->summary_only,
		.no_probe = a->no_probe,
		.say = say,
		.progress = !a->quiet && isatty(STDERR_FILENO) ? say : NULL,
	};
	CLEANUP(record_result_release) struct record_result result;
	struct error err;
	int problem;

	record_result_init(&result);
	problem = record_run(&o, &result, &err);
	if (problem != RECORD_OK || !result.started) {
		fprintf(stderr, "assay run: %s\n", err.text);
		return problem == RECORD_USAGE ? EXIT_USAGE : problem != RECORD_OK ? EXIT_TROUBLE : result.exit_status;
	}
	if (!a->quiet)
		put_summary(&result);
	else if (result.elsewhere)
		say(NULL, result.run.warnings.texts[0]);
	if (result.undelivered) {
		fprintf(stderr,
			"assay run: %" PRIu64 " bytes of the command's output could not be written where it was sent\n",
			result.undelivered);
		result.exit_status = result.exit_status ? result.exit_status : EXIT_TROUBLE;
	}
	/* What assay could not write is told, and the status stays the command's. */
	if (a->json)
		put_json(a, &result);
	if (result.die_of_interrupt && !a->exit_zero)
		die_of_interrupt();
	return a->exit_zero ? EXIT_DONE : result.exit_status;
}

static int run(int argc, char **argv)
{
	struct run_args args = {.engine = "auto", .precheck = "warn", .interval_ms = 10};
	struct error err;
	int rest, status;

	status = options_parse(&cmd_run, argc, argv, &args, &rest, &err);
	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && !argv[rest])
		status = error_set(&err, "no command given; usage: assay run [options] -- COMMAND [ARG...]");
	if (status == 0)
		status = check(&args, &err);
	if (status < 0) {
		fprintf(stderr, "assay run: %s\n", err.text);
		options_release(&cmd_run, &args);
		return EXIT_USAGE;
	}
	status = run_with(&args, argv + rest);
	options_release(&cmd_run, &args);
	return status;
}

const struct command cmd_run = {
	.name = "run",
	.summary = "run a command and tell what it cost, phase by phase",
	.usage = "[options] -- COMMAND [ARG...]",
	.description = "Runs the command unchanged, follows its whole process tree, and records CPU,\n"
		       "memory, disk and pressure on one time axis; then tells what limited each phase\n"
		       "and why, and what moved. The run is split into phases: by\n"
		       "lines that are appended to the file in $ASSAY_MARKERS, by assay_mark() in C,\n"
		       "or by the output of engines that assay knows. The exit status is the\n"
		       "command's own (128+N for signal N, 124 after a timeout, 127 and 126 where it\n"
		       "could not be started).",
	.options = options,
	.examples = "# what did this cost?\n"
		    "assay run -- make -j4\n"
		    "# phases of a script of your own\n"
		    "assay run -o result -- sh -c 'echo load >> $ASSAY_MARKERS; sleep 1; echo work >> $ASSAY_MARKERS; "
		    "gzip -k big'\n"
		    "# an engine, for a script\n"
		    "assay run -q --json=run.json -- llama-bench -m model.gguf\n",
	.run = run,
};
