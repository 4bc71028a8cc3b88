/* assay run: puts itself in front of a command and tells what it cost, phase by phase. */
#include "cmd/command.h"

#include <string.h>

#include "base/cleanup.h"
#include "cmd/run_options.h"
#include "record/job.h"

struct run_args {
	struct run_options run;
	const char *json;
	struct job job; /* size 0: this is no rank of a job of several */
	bool ended;     /* the command was started, and its results are made */
};

static const struct option options[] = {
	RUN_OPTION_ROWS(struct run_args, run),
	{"json", 0, OPTION_MAYBE, offsetof(struct run_args, json), "FILE",
	 "print run.json on standard output when all is done, or write it to FILE", NULL},
	OPTIONS_END,
};

/* Only the rank that ends last has something to show, for all of them. */
static void answer_for_job(struct run_args *a, const struct record_result *own)
{
	CLEANUP(record_result_release) struct record_result all;
	struct error err;
	int last;

	record_result_init(&all);
	if (own->elsewhere)
		fprintf(stderr, "assay run: rank %d: %s\n", a->job.rank, own->run.warnings.texts[0]);
	last = job_finish(&a->job, own->run.status, &all, &err);
	if (last < 0)
		fprintf(stderr, "assay run: there is no result of the job: %s\n", err.text);
	if (last > 0 && !a->run.quiet)
		run_options_put_summary(&all);
	if (last > 0 && a->json)
		run_options_put_json("run", a->json, all.json, &all);
}

/* What assay could not write is told, and the status stays the command's. */
static void answer(void *context, struct record_result *result)
{
	struct run_args *a = context;

	a->ended = true;
	if (a->job.size) {
		answer_for_job(a, result);
		return;
	}
	if (!a->run.quiet)
		run_options_put_summary(result);
	if (a->json)
		run_options_put_json("run", a->json, result->json, result);
}

/* Under a launcher of parallel programs: this rank's run directory becomes a part of the job's. */
static int join(struct run_args *a, const char *command, struct error *err)
{
	const char *slash = strrchr(command, '/'), *label = a->run.label;
	int problem;

	if (!job_find(&a->job))
		return RECORD_OK;
	if (!label)
		label = slash && slash[1] ? slash + 1 : command;
	problem = job_join(&a->job, a->run.out, label, err);
	if (problem == RECORD_USAGE)
		return problem;
	if (a->job.rank_path)
		a->run.out = a->job.rank_path;
	if (problem == RECORD_OK) {
		a->run.in_job = true;
		return RECORD_OK;
	}
	/* The run is not lost for that. */
	fprintf(stderr, "assay run: rank %d: %s; its results are not joined with those of other ranks\n", a->job.rank,
		err->text);
	a->job.size = 0;
	return RECORD_OK;
}

static int execute(struct run_args *a, unsigned hz, char **command)
{
	struct error err;
	int status = join(a, command[0], &err);

	if (status == RECORD_OK) {
		status = run_options_execute(&a->run, hz, "run", command, answer, a);
		if (a->job.size && !a->ended)
			job_leave(&a->job);
		return status;
	}
	fprintf(stderr, "assay run: %s\n", err.text);
	return EXIT_USAGE;
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
	job_init(&args.job);
	status = execute(&args, hz, argv + rest);
	job_release(&args.job);
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
		       "or by the output of engines that assay knows. Regions that a program marks with\n"
		       "libassay (assay.h) go to regions.h5, for `assay inspect`. The exit status is the\n"
		       "command's own (128+N for signal N, 124 after a timeout, 127 and 126 where it\n"
		       "could not be started). Started by mpirun or srun, each rank records into\n"
		       "DIR/rank-N, and the last one to end makes one result of all in DIR.",
	.options = options,
	.examples = "# what did this cost?\n"
		    "assay run -- make -j4\n"
		    "# phases of a script of your own\n"
		    "assay run -o result -- sh -c 'echo load >> $ASSAY_MARKERS; sleep 1; echo work >> $ASSAY_MARKERS; "
		    "gzip -k big'\n"
		    "# and where in the program the CPU time went\n"
		    "assay run --cpu-profile -- ./server --selftest\n"
		    "# an engine, for a script\n"
		    "assay run -q --json=run.json -- llama-bench -m model.gguf\n"
		    "# all ranks of a parallel program\n"
		    "mpirun -n 4 assay run -o result -- ./app\n",
	.run = run,
};
