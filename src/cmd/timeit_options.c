#include "cmd/timeit_options.h"

#include <string.h>

#include "exec/snippet_runner.h"
#include "trial/trial.h"

#define AT(field) offsetof(struct timeit_args, field)
#define REPEAT_MAX 1e6
#define SEED_MAX 9007199254740992.0 /* 2^53 */

const struct option timeit_options[] = {
	{"setup", 's', OPTION_LIST, AT(setups), "CODE",
	 "runs untimed before the executions of each batch; its variables are the statement's, too; may be repeated",
	 NULL},
	{"each", 0, OPTION_TEXT, AT(each), "CODE",
	 "runs untimed before every execution, each of which is then timed alone: fresh input", NULL},
	{"include", 'I', OPTION_LIST, AT(headers), "HEADER",
	 "include math.h, ./mine.h; a folder is one to look for headers in", NULL},
	{"library", 'l', OPTION_LIST, AT(libraries), "NAME", "link with this library, as -l of compilers", NULL},
	{"library-dir", 'L', OPTION_LIST, AT(library_dirs), "DIR", "look for libraries here, too", NULL},
	{"cc", 0, OPTION_TEXT, AT(cc), "COMMAND", "the compiler; g++ and clang++ take the snippets as C++",
	 "$CC, or cc"},
	{"cflags", 0, OPTION_TEXT, AT(cflags), "OPTIONS", "the compiler's options, as one word for your shell",
	 "-O2, and -frounding-math of gcc"},
	{"std", 0, OPTION_TEXT, AT(standard), "STANDARD", "of the language: c11, gnu17, c++20", "the compiler's"},
	{"lib", 0, OPTION_LIST, AT(shared), "FILE",
	 "a shared library, instead of a statement; several of them are compared with the first", NULL},
	{"call", 0, OPTION_TEXT, AT(call), "SYMBOL", "its function to call, which takes no arguments", NULL},
	{"compare", 'c', OPTION_LIST, AT(others), "OTHER",
	 "another statement (with --lib: another function), interleaved with the first and judged; may be repeated",
	 NULL},
	{"number", 'n', OPTION_NUMBER, AT(number), "N", "executions in one batch", "as many as take some 10 ms", NULL,
	 1, (double)SNIPPET_NUMBER_MAX},
	{"repeat", 'r', OPTION_NUMBER, AT(repeat), "N", "batches", "10 to 60, as fit into 1.5 s", NULL, 1, REPEAT_MAX},
	{"warmup", 'w', OPTION_NUMBER, AT(warmup), "N", "unmeasured executions before each batch",
	 "a quarter of a batch, at least one", NULL, 0, (double)SNIPPET_NUMBER_MAX},
	{"max-time", 0, OPTION_NUMBER, AT(max_time), "S",
	 "instead of -n and -r: growing batches until their total is beyond S seconds", NULL, NULL, 1e-6, 1e6},
	{"timeout", 0, OPTION_NUMBER, AT(timeout_s), "S", "give up on a batch after S seconds; 0: never", "60", NULL, 0,
	 1e9},
	{"margin", 0, OPTION_NUMBER, AT(margin), "PCT", "differences up to this do not matter", "1", NULL, 0, 1000},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT", "of the intervals, in percent", "95", NULL, 50, 99.999},
	{"seed", 0, OPTION_NUMBER, AT(seed), "N", "of the order of the batches", "a new one", NULL, 0, SEED_MAX},
	{"json", 0, OPTION_MAYBE, AT(json), "FILE",
	 "print the results as JSON instead, times in seconds, or write them to FILE", NULL},
	{"fail-on-slower", 0, OPTION_FLAG, AT(fail_on_slower), NULL, "exit with 1 where another one is slower", NULL},
	{"fail-on-undecided", 0, OPTION_FLAG, AT(fail_on_undecided), NULL, "exit with 4 where one is undecided", NULL},
	OPTIONS_END,
};

const struct option_elsewhere timeit_options_elsewhere[] = {
	{"-p", "time that passes is what is measured here"},
	{"--process", "time that passes is what is measured here"},
	{"-u", "units are chosen by the figures, and --json has seconds"},
	{"--unit", "units are chosen by the figures, and --json has seconds"},
	{NULL, NULL},
};

const struct timeit_args timeit_options_defaults = {
	.warmup = -1,
	.timeout_s = 60,
	.margin = 1,
	.confidence = 95,
	.seed = -1,
};

/* What only a statement can have. */
static const char *first_of_statement(const struct timeit_args *a)
{
	return a->setups.count		? "setup"
	       : a->each		? "each"
	       : a->headers.count	? "include"
	       : a->libraries.count	? "library"
	       : a->library_dirs.count	? "library-dir"
	       : a->standard		? "std"
	       : a->cc			? "cc"
					: NULL;
}

static int check_call(const struct timeit_args *a, size_t count, struct error *err)
{
	const char *other = first_of_statement(a);

	if (!a->call)
		return error_set(err, "--lib: which function? --call SYMBOL names it");
	if (!a->shared.count)
		return error_set(err, "--call %s: of which library? --lib FILE names it",
				 typed_show(a->call, strlen(a->call)).text);
	if (count)
		return error_set(err, "--call measures a function of a library; a statement cannot be given as well");
	if (other)
		return error_set(err, "--%s goes with a statement, not with --call", other);
	if (a->shared.count > 1 && a->others.count)
		return error_set(err, "--compare names another function of one library; with several --lib one "
				      "function of all is compared");
	return 0;
}

int timeit_options_check(const struct timeit_args *a, size_t count, struct error *err)
{
	if (options_whole("number", a->number, err) < 0 || options_whole("repeat", a->repeat, err) < 0 ||
	    options_whole("warmup", a->warmup, err) < 0 || options_whole("seed", a->seed, err) < 0)
		return -1;
	if (a->others.count + a->shared.count >= TRIAL_SIDES_MAX)
		return error_set(err, "--compare: at most %d snippets can be compared", TRIAL_SIDES_MAX);
	if (a->max_time > 0 && (a->number > 0 || a->repeat > 0))
		return error_set(err, "--max-time chooses the batches; --number and --repeat cannot be given as well");
	if (a->max_time > 0 && (a->others.count || a->shared.count > 1))
		return error_set(err, "--max-time is for one snippet: batches that differ in size make no pairs");
	if (a->call || a->shared.count)
		return check_call(a, count, err);
	if (count == 0)
		return error_set(err, "no statement given; usage: assay timeit [options] 'STATEMENT'");
	if (count > 1)
		return error_set(err,
				 "%zu statements given: one is measured, --compare 'OTHER' compares it with another",
				 count);
	return 0;
}
