/* assay profile: which functions use the CPU, phase by phase, and whether they are serial; of a command that it runs,
 * or of a finished run. */
#include "cmd/command.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cmd/profile_instrument.h"
#include "cmd/terminal.h"
#include "report/hotspots.h"

#define TOP_MAX 1e6
#define TOP_TEXT 12
#define TOP_JSON 20
#define DIFF_WORD "diff"

#define AT(member) offsetof(struct profile_args, member)

static const struct option options[] = {
	{"by", 0, OPTION_CHOICE, AT(by), "WHAT", "what a row is", "function", "function|line|module|thread|process"},
	{"group", 'g', OPTION_TEXT, AT(group), "NAME", "only this phase group or phase", "all"},
	{"top", 'n', OPTION_NUMBER, AT(top), "N", "rows of each table; 0: all", "12, with --json 20", NULL, 0, TOP_MAX},
	{"include", 0, OPTION_LIST, AT(include), "PATTERN",
	 "only samples with such a function, module or thread on their stack; may be repeated"},
	{"exclude", 0, OPTION_LIST, AT(exclude), "PATTERN", "not those; may be repeated"},
	{"focus", 0, OPTION_TEXT, AT(focus), "FUNCTION", "only samples with it, and who called it, and what it called"},
	{"json", 0, OPTION_MAYBE, AT(json), "FILE", "print the answer as JSON on standard output, or write it to FILE"},
	{"hz", 0, OPTION_NUMBER, AT(hz), "HZ", "samples per CPU second and thread, of a command",
	 RUN_TEXT_OF(SAMPLING_HZ_DEFAULT), NULL, 1, SAMPLING_HZ_MAX},
	{"instrument", 0, OPTION_FLAG, AT(run.instrument), NULL,
	 "record every call of a program compiled with -finstrument-functions, in place of samples"},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT",
	 "of diff's intervals, in percent or as a share (0.95)", "95", NULL, 0.5, 99.9999},
	{"inclusive", 0, OPTION_FLAG, AT(inclusive), NULL,
	 "diff compares what functions used with all that they called"},
	{"fail-on-change", 0, OPTION_FLAG, AT(fail_on_change), NULL,
	 "status 1 where diff finds a change, 4 where it cannot tell"},
	RUN_OPTION_ROWS(struct profile_args, run),
	OPTIONS_END,
};

/* The answer of a query as text. */
static int print_text(const struct hotspots_shown *shown, FILE *out, int fd, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	struct hotspots_shown here = *shown;

	here.colour = terminal_has_colour(fd);
	here.columns = (unsigned)terminal_columns_within(fd, PROFILE_COLUMNS_MAX);
	buf_init(&text);
	hotspots_print(&here, &text);
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}

/* Returns the exit status, or -1 with *err for wrong input. */
static int show(const struct profile_args *a, const char *path, struct error *err)
{
	CLEANUP(loaded_profile_release) struct loaded_profile loaded;
	CLEANUP(hotspots_release) struct hotspots hotspots;
	CLEANUP(json_cleanup) json_t *root = NULL;
	const struct hotspot_query query = profile_query(a, a->json ? TOP_JSON : TOP_TEXT);
	struct hotspots_shown shown = {.profile = &loaded.profile, .hotspots = &hotspots, .query = &query};

	loaded_profile_init(&loaded);
	hotspots_init(&hotspots);
	if (loaded_profile_read(&loaded, path, err) < 0 ||
	    hotspots_sum(&hotspots, &loaded.profile, &loaded.run.phases, &query, err) < 0 ||
	    profile_query_check(&query, &hotspots, &loaded.profile, &loaded.run.phases, err) < 0)
		return -1;
	shown.account = profile_account_of(&loaded.profile, loaded.run.cpu_s);
	if (!a->json)
		return print_text(&shown, stdout, STDOUT_FILENO, err) < 0 ? -1 : EXIT_DONE;
	root = hotspots_json(&shown);
	return profile_put_json(a, root, err) < 0 ? -1 : EXIT_DONE;
}

/* Of a run that has just ended: on stderr beside its summary, since standard output is the command's. */
static int answer_live(const struct profile_args *a, struct record_result *result, struct error *err)
{
	CLEANUP(hotspots_release) struct hotspots hotspots;
	CLEANUP(json_cleanup) json_t *root = NULL;
	const struct run *run = &result->run;
	const struct hotspot_query query = profile_query(a, a->json ? TOP_JSON : TOP_TEXT);
	struct hotspots_shown shown = {.profile = run->profile, .hotspots = &hotspots, .query = &query};

	hotspots_init(&hotspots);
	if (!run->profile)
		return error_set(err, "there are no samples: the warnings above or in run.json say why");
	if (hotspots_sum(&hotspots, run->profile, &run->phases, &query, err) < 0)
		return -1;
	shown.account = profile_account_of(run->profile, run->cpu_user_s + run->cpu_system_s);
	if (a->json) {
		root = hotspots_json(&shown);
		run_options_put_json("profile", a->json, root, result);
	}
	if (!a->run.quiet) {
		fputc('\n', stderr);
		if (print_text(&shown, stderr, STDERR_FILENO, err) < 0)
			return -1;
	}
	return profile_query_check(&query, &hotspots, run->profile, &run->phases, err);
}

static void answer(void *context, struct record_result *result)
{
	const struct profile_args *a = context;
	struct profile *profile = result->run.profile;
	struct error err;

	result->run.profile = NULL; /* the summary's short table would say the same twice */
	if (!a->run.quiet)
		run_options_put_summary(result);
	result->run.profile = profile;
	if (answer_live(a, result, &err) < 0)
		fprintf(stderr, "assay profile: %s\n", err.text);
}

static int execute(struct profile_args *a, char **command, struct error *err)
{
	unsigned hz = 0;

	if (run_options_check(&a->run, &hz, err) < 0)
		return -1;
	if (options_whole("hz", a->hz, err) < 0)
		return -1;
	if (hz && a->hz >= 0)
		return error_set(err, "options '--hz' and '--cpu-profile' say the same: give one of them");
	hz = hz ? hz : a->hz >= 0 ? (unsigned)a->hz : SAMPLING_HZ_DEFAULT;
	return run_options_execute(&a->run, hz, "profile", command, answer, a);
}

/* Options that are for another form of the command would be ignored in silence. */
static int check(const struct profile_args *a, bool live, bool comparing, struct error *err)
{
	const char *given = run_options_given(&a->run);

	if (a->run.instrument && comparing)
		return error_set(err, "option '--instrument' is not for assay profile diff");
	if (a->run.instrument)
		return profile_instrument_check(a, live, err);
	if (!live && given)
		return error_set(err, "option '--%s' is for a command that is run: assay profile [options] -- COMMAND",
				 given);
	if (!live && a->hz >= 0)
		return error_set(err, "option '--hz' is for a command that is run: the samples of a finished run are "
				      "taken");
	if (!comparing && (a->fail_on_change || a->inclusive || a->confidence >= 0))
		return error_set(err, "option '--%s' is for assay profile diff A B",
				 a->fail_on_change ? "fail-on-change" : a->inclusive ? "inclusive" : "confidence");
	if (comparing && a->focus)
		return error_set(err, "option '--focus' is not for assay profile diff; --include may be meant");
	if (comparing && a->top >= 0)
		return error_set(err, "option '--top' is not for assay profile diff: all rows are compared");
	if (comparing && a->confidence >= 1 && a->confidence < 50)
		return error_set(err, "option '--confidence': %g is no percentage of 50 or more, and no share below 1",
				 a->confidence);
	return options_whole("top", a->top, err);
}

/* "diff A B" compares; "diff" alone is a run directory of that name. */
static bool is_comparison(char *const *words, int count)
{
	return count > 0 && strcmp(words[0], DIFF_WORD) == 0 && (count != 1 || !fs_exists(DIFF_WORD));
}

/* `words` are those that are no options, the last `command` of them behind "--" (-1: there was none). */
static int dispatch(struct profile_args *a, char **words, int count, int command, struct error *err)
{
	bool comparing = command < 0 && is_comparison(words, count);

	if (command >= 0 && count > command)
		return error_set(err, "'%s' stands before the command: a run directory or a command, not both",
				 typed_show(words[0], strlen(words[0])).text);
	if (count == 0)
		return error_set(err, "no command and no run directory given; usage: assay profile [options] -- "
				      "COMMAND [ARG...], or assay profile DIR");
	if (comparing && count != 3)
		return error_set(err, "expected two run directories; usage: assay profile diff A B");
	if (!comparing && command < 0 && count > 1)
		return error_set(err, "'%s' is one word too many: a command stands behind --, as in assay profile -- "
				      "COMMAND [ARG...]",
				 typed_show(words[1], strlen(words[1])).text);
	if (check(a, command >= 0, comparing, err) < 0)
		return -1;
	if (a->run.instrument && command >= 0)
		return profile_instrument_run(a, words);
	if (command >= 0)
		return execute(a, words, err);
	if (comparing)
		return profile_compare(a, words[1], words[2], err);
	if (!fs_exists(words[0]))
		return error_set(err, "%s: there is no such run directory; a command stands behind --",
				 typed_show(words[0], strlen(words[0])).text);
	return a->run.instrument ? profile_instrument_show(a, words[0], err) : show(a, words[0], err);
}

/* How many words stand behind the first "--"; -1: there is none. No option takes "--" as its value. */
static int behind_dashes(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return argc - i - 1;
	return -1;
}

static int run_profile(int argc, char **argv)
{
	struct profile_args args = {
		.run = run_options_defaults, .by = "function", .hz = -1, .top = -1, .confidence = -1};
	int rest, command = behind_dashes(argc, argv);
	struct error err;
	int status = options_parse(&cmd_profile, argc, argv, &args, &rest, &err);

	if (status == 0)
		status = dispatch(&args, argv + rest, argc - rest, command, &err);
	else if (status > 0)
		status = EXIT_DONE;
	options_release(&cmd_profile, &args);
	if (status >= 0)
		return status;
	fprintf(stderr, "assay profile: %s\n", err.text);
	return EXIT_USAGE;
}

const struct command cmd_profile = {
	.name = "profile",
	.summary = "which functions use the CPU, and whether they are serial",
	.usage = "[options] -- COMMAND [ARG...]\n       assay profile [options] DIR\n"
		 "       assay profile [options] diff A B",
	.description =
		"Samples where the CPU time of a command goes, in every thread of every\n"
		"process, without root and without perf; or shows a finished run that was\n"
		"recorded so (by this, or by assay run --cpu-profile). First what one thread ran\n"
		"alone while it held up the phase; then what was hot; last how much of the CPU\n"
		"time this is, and what could not be sampled. Of a command it is printed on\n"
		"stderr behind the summary of the run, whose options all work here.\n"
		"\n"
		"diff tells which functions take another share of the CPU time, or more of it,\n"
		"in run directory B than in A, beyond what the number of samples leaves open.\n"
		"\n"
		"--instrument records every call instead, of a program that was compiled with\n"
		"-finstrument-functions, and shows who called whom as a tree; assay tree shows\n"
		"the same graph (DIR/calls.graph) in other ways.\n"
		"\n"
		"PATTERN and FUNCTION are names as shown, with * ? [...] as in a shell; the\n"
		"parameters of a C++ function may be left out.",
	.options = options,
	.examples =
		"# where does the time go?\n"
		"assay profile -- ./prog input\n"
		"# of a finished run: one phase, by source line\n"
		"assay profile DIR --group decode --by line\n"
		"# who calls malloc?\n"
		"assay profile DIR --focus malloc\n"
		"# every call, counted and timed\n"
		"gcc -O2 -g -finstrument-functions -o prog prog.c\n"
		"assay profile --instrument -- ./prog input\n"
		"# what does the new build spend its time on?\n"
		"assay profile diff old-run new-run\n",
	.run = run_profile,
	.mixed = true,
};
