/* assay run: puts itself in front of a command and tells what it cost, phase by phase. */
#include "cmd/command.h"

#include "cmd/run_options.h"

struct run_args {
	struct run_options run;
	const char *json;
};

static const struct option options[] = {
	RUN_OPTION_ROWS(struct run_args, run),
	{"json", 0, OPTION_MAYBE, offsetof(struct run_args, json), "FILE",
	 "print run.json on standard output when all is done, or write it to FILE", NULL},
	OPTIONS_END,
};

/* What assay could not write is told, and the status stays the command's. */
static void answer(void *context, struct record_result *result)
{
	const struct run_args *a = context;

	if (!a->run.quiet)
		run_options_put_summary(result);
	if (a->json)
		run_options_put_json("run", a->json, result->json, result);
}

static int run(int argc, char **argv)
{
	struct run_args args = {.run = run_options_defaults};
	unsigned hz = 0;
	struct error err;
	int rest, status;

	status = options_parse(&cmd_run, argc, argv, &args, &rest, &err);
	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && !argv[rest])
		status = error_set(&err, "no command given; usage: assay run [options] -- COMMAND [ARG...]");
	if (status == 0)
		status = run_options_check(&args.run, &hz, &err);
	if (status == 0 && args.run.sampler && !hz)
		status = error_set(&err, "option '--sampler' needs --cpu-profile");
	if (status < 0) {
		fprintf(stderr, "assay run: %s\n", err.text);
		options_release(&cmd_run, &args);
		return EXIT_USAGE;
	}
	status = run_options_execute(&args.run, hz, "run", argv + rest, answer, &args);
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
		    "# and where in the program the CPU time went\n"
		    "assay run --cpu-profile -- ./server --selftest\n"
		    "# an engine, for a script\n"
		    "assay run -q --json=run.json -- llama-bench -m model.gguf\n",
	.run = run,
};
