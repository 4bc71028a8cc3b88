/* assay timeit: how long a C statement takes, or a function of a shared library. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cmd/interrupt.h"
#include "cmd/terminal.h"
#include "cmd/timeit_options.h"
#include "report/timing_report.h"
#include "trial/bench_words.h"
#include "trial/timeit.h"

#define CFLAGS "-O2"
/* GCC reckons cos(0.5) while it compiles, unless the mode of rounding may be another one when the program runs. */
#define CFLAGS_GCC "-frounding-math"

/* What is behind one call, for as long as it measures. */
struct session {
	const struct timeit_args *args;
	struct timed *timed;
	struct snippet_shop shop;
	struct timeit t;
	char *setup;          /* all of them, a line each; NULL: none */
	char **cc, **cflags;
	struct buf messages;  /* of the compiler */
	int64_t shown;        /* when the progress was, ns; 0: not yet */
};

static void session_release(struct session *s)
{
	timeit_release(&s->t);
	snippet_shop_close(&s->shop);
	timed_free(s->timed);
	free(s->setup);
	bench_words_free(s->cc);
	bench_words_free(s->cflags);
	buf_release(&s->messages);
}

static int read_words(struct session *s, struct error *err)
{
	const char *environment = getenv("CC"), *cflags = s->args->cflags ? s->args->cflags : CFLAGS;
	const char *cc = s->args->cc ? s->args->cc : environment && *environment ? environment : "cc";
	CLEANUP(buf_release) struct buf setup;

	buf_init(&setup);
	if (bench_words_split(cc, &s->cc, err) < 0)
		return error_prefix(err, s->args->cc ? "--cc" : "$CC");
	if (cflags[strspn(cflags, " \t\n")] && bench_words_split(cflags, &s->cflags, err) < 0)
		return error_prefix(err, "--cflags");
	for (size_t i = 0; i < s->args->setups.count; i++)
		buf_printf(&setup, "%s%s", i ? "\n" : "", s->args->setups.items[i]);
	if (setup.failed)
		return error_set(err, "out of memory for --setup");
	s->setup = s->args->setups.count ? buf_detach(&setup) : NULL;
	return 0;
}

static int compile_one(struct session *s, const struct snippet_compiler *c, const char *statement, struct error *err)
{
	const struct snippet_text text = {statement, s->setup, s->args->each};
	char **words = NULL;
	int got = snippet_compile(&s->shop, c, &text, &words, &s->messages, err);

	if (got == SNIPPET_BAD)
		error_prefix(err, "'%s'", typed_show(statement, strlen(statement)).text);
	return got ? got : timeit_add(&s->t, statement, words, err);
}

static int compile_all(struct session *s, const char *statement, struct error *err)
{
	const struct timeit_args *a = s->args;
	const struct snippet_compiler c = {
		.cc = s->cc,
		.flags = s->cflags,
		.gcc_flag = a->cflags ? NULL : CFLAGS_GCC,
		.standard = a->standard,
		.headers = a->headers.items,
		.libraries = a->libraries.items,
		.library_dirs = a->library_dirs.items,
	};
	int got = snippet_compile_runner(&s->shop, &c, &s->messages, err);

	if (got == 0)
		got = compile_one(s, &c, statement, err);
	for (size_t i = 0; got == 0 && i < a->others.count; i++)
		got = compile_one(s, &c, a->others.items[i], err);
	return got;
}

static int add_call(struct session *s, const char *library, const char *symbol, bool several, struct error *err)
{
	CLEANUP(buf_release) struct buf label;
	char **words = NULL;

	buf_init(&label);
	buf_printf(&label, "%s%s%s", symbol, several ? " of " : "", several ? library : "");
	if (label.failed)
		return error_set(err, "out of memory for the name of a function");
	if (snippet_library(library, symbol, &words, err) < 0)
		return -1;
	return timeit_add(&s->t, label.text, words, err);
}

static int add_calls(struct session *s, struct error *err)
{
	const struct timeit_args *a = s->args;
	int got = 0;

	for (size_t i = 0; got == 0 && i < a->shared.count; i++)
		got = add_call(s, a->shared.items[i], a->call, a->shared.count > 1, err);
	for (size_t i = 0; got == 0 && i < a->others.count; i++)
		got = add_call(s, a->shared.items[0], a->others.items[i], false, err);
	return got;
}

static void show_progress(void *context, size_t at, size_t of, size_t side)
{
	struct session *s = context;
	int64_t now = clock_mono_ns();

	(void)side;
	if (s->shown && now - s->shown < 250 * NS_PER_MS) /* seldom enough not to be measured along */
		return;
	s->shown = now;
	if (s->t.by_time)
		fprintf(stderr, "\r\033[Kbatch %zu", at + 1);
	else
		fprintf(stderr, "\r\033[Kbatch %zu of %zu", at + 1, of);
	fflush(stderr);
}

static int measure(struct session *s, struct error *err)
{
	const struct timeit_args *a = s->args;
	const struct timeit_execution x = {
		.shop = &s->shop,
		.number = (uint64_t)a->number,
		.repeat = (uint64_t)a->repeat,
		.warmup = (int64_t)a->warmup,
		.max_time = a->max_time,
		.timeout_ns = (int64_t)(a->timeout_s * 1e9),
		.progress = isatty(STDERR_FILENO) ? show_progress : NULL,
		.context = s,
	};
	int got;

	s->t.each = a->each != NULL;
	s->t.confidence = a->confidence / 100;
	s->t.margin = a->margin / 100;
	s->t.seed = options_seed(a->seed);
	got = timeit_execute(&s->t, &x, err);
	if (s->shown)
		fputs("\r\033[K", stderr);
	return got;
}

/* A file is replaced whole, or left. */
static int put_json(const char *path, const struct timing_report *r, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = timing_json(r);
	CLEANUP(free_cleanup) char *printed = root ? json_print(root) : NULL;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	buf_printf(&text, "%s\n", printed ? printed : "");
	if (!printed || text.failed)
		return error_set(err, "--json: out of memory");
	if (!*path)
		fwrite(text.text, 1, text.length, stdout);
	else if (fs_write_file(path, text.text, text.length, err) < 0)
		return error_prefix(err, "--json");
	return 0;
}

static int put_answer(const struct session *s, const struct timeit_answer *answer, struct error *err)
{
	CLEANUP(free_cleanup) struct timing_item *items = calloc(s->t.count, sizeof *items);
	CLEANUP(buf_release) struct buf text;
	int got = 0;
	const struct timing_report r = {
		.items = items,
		.count = s->t.count,
		.setup = s->setup,
		.each = s->args->each,
		.calls = s->args->call != NULL,
		.by_time = s->t.by_time,
		.bench = &answer->bench,
		.comparisons = &answer->comparisons,
	};

	buf_init(&text);
	if (!items)
		return error_set(err, "out of memory for the answer");
	for (size_t i = 0; i < s->t.count; i++)
		items[i] = (struct timing_item){s->t.sides[i].label, &answer->timings[i], s->t.sides[i].warmup_s};
	if (s->args->json)
		got = put_json(s->args->json, &r, err);
	if (s->args->json && !*s->args->json)
		return got;
	timing_text(&r, terminal_has_colour(STDOUT_FILENO), &text);
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, stdout);
	return got;
}

static int status_of(const struct timeit_args *a, const struct bench_answer *answer)
{
	if (a->fail_on_slower && bench_has_slower(answer))
		return EXIT_DIFFERENT;
	return a->fail_on_undecided && bench_has_undecided(answer) ? EXIT_UNDECIDED : EXIT_DONE;
}

/* What was measured is shown, whatever ended it. */
static int report(const struct session *s, int *ret_status, struct error *err)
{
	CLEANUP(timeit_answer_release) struct timeit_answer answer = {0};

	for (size_t i = 0; i < s->t.count; i++)
		if (s->t.sides[i].count == 0)
			return 0;
	if (timeit_judge(&s->t, &answer, err) < 0 || put_answer(s, &answer, err) < 0)
		return -1;
	*ret_status = status_of(s->args, &answer.comparisons);
	return 0;
}

static int prepare(struct session *s, const char *statement, struct error *err)
{
	int got;

	if (read_words(s, err) < 0)
		return SNIPPET_BAD;
	if (snippet_shop_open(&s->shop, s->timed, &interrupted_by, err) < 0)
		return -1;
	got = s->args->call ? add_calls(s, err) : compile_all(s, statement, err);
	if (got != 0 || s->messages.length)
		fwrite(s->messages.text, 1, s->messages.length, stderr);
	return got;
}

static int run_with(const struct timeit_args *a, const char *statement)
{
	CLEANUP(session_release) struct session s = {.args = a};
	int got, status = EXIT_DONE;
	struct error err, own;

	buf_init(&s.messages);
	s.timed = timed_new(&err); /* the starter comes first, while this process is small */
	interrupt_catch(0);
	got = s.timed ? prepare(&s, statement, &err) : -1;
	if (got == 0)
		got = measure(&s, &err);
	if (s.t.count && report(&s, &status, &own) < 0) {
		fprintf(stderr, "assay timeit: %s\n", own.text);
		status = EXIT_TROUBLE;
	}
	fflush(stdout); /* so that the reason stands behind the figures */
	if (got < 0)
		fprintf(stderr, "assay timeit: %s\n", err.text);
	if (got > 0)
		fprintf(stderr, "assay timeit: interrupted\n");
	return got == SNIPPET_BAD ? EXIT_USAGE : got < 0 ? EXIT_TROUBLE : got > 0 ? 128 + interrupted_by : status;
}

static int run(int argc, char **argv)
{
	struct timeit_args args = timeit_options_defaults;
	struct error err;
	int rest, status;

	status = options_parse(&cmd_timeit, argc, argv, &args, &rest, &err);
	if (status > 0)
		return EXIT_DONE;
	if (status == 0)
		status = timeit_options_check(&args, (size_t)(argc - rest), &err);
	if (status < 0)
		fprintf(stderr, "assay timeit: %s\n", err.text);
	status = status < 0 ? EXIT_USAGE : run_with(&args, argv[rest]);
	options_release(&cmd_timeit, &args);
	return status;
}

const struct command cmd_timeit = {
	.name = "timeit",
	.summary = "how long a C statement takes, or a function of a library",
	.usage = "[options] 'STATEMENT'",
	.description = "Compiles the STATEMENT into a program and measures it: batches of so many\n"
		       "executions that the clock is no matter, each in a fresh process, what an empty\n"
		       "loop takes subtracted. ASSAY_KEEP(x) keeps the compiler from removing what\n"
		       "nobody uses, ASSAY_HIDE(x) hides from it what x is, ASSAY_CLOBBER() has it write\n"
		       "and read memory. With --compare the snippets are programs that take turns, and\n"
		       "each is judged against the first.",
	.options = timeit_options,
	.mixed = true,
	.elsewhere = timeit_options_elsewhere,
	.examples = "# a function of the C library\n"
		    "assay timeit -I math.h -l m 'ASSAY_KEEP(cos(0.5))'\n"
		    "# which is faster?\n"
		    "assay timeit -I string.h -s 'char a[4096], b[4096]; ASSAY_KEEP(a); ASSAY_KEEP(b)' \\\n"
		    "    'memcpy(b, a, 4096); ASSAY_CLOBBER()' --compare 'memmove(b, a, 4096); ASSAY_CLOBBER()'\n"
		    "# the same function in two builds of a library\n"
		    "assay timeit --lib old/libfoo.so --lib new/libfoo.so --call foo_test\n",
	.run = run,
};
