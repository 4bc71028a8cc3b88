/* assay spy: how much memory a process uses over time, watched from outside. */
#include "cmd/command.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/procfs.h"
#include "cmd/interrupt.h"
#include "cmd/spy_command.h"
#include "cmd/spy_outputs.h"
#include "cmd/terminal.h"
#include "record/spy.h"

#define USAGE "usage: assay spy [options] PID, or assay spy [options] -- COMMAND [ARG...]"

struct spy_args {
	bool tree, no_tree, gpu, pss, live, exit_zero, quiet;
	double delay_s, until_s;
	const char *plot, *csv, *json;
};

#define AT(member) offsetof(struct spy_args, member)

static const struct option options[] = {
	{"tree", 't', OPTION_FLAG, AT(tree), NULL,
	 "the sum over the process and its descendants; a COMMAND's are in anyway", NULL},
	{"no-tree", 0, OPTION_FLAG, AT(no_tree), NULL, "of a COMMAND, its own process only"},
	{"delay", 'd', OPTION_NUMBER, AT(delay_s), "S", "seconds between two readings", "0.01", NULL, 0.0001, 3600},
	{"until", 'u', OPTION_NUMBER, AT(until_s), "S", "watch for so many seconds; a COMMAND goes on",
	 "the process's end, or Ctrl-C", NULL, 0.001, 1e9},
	{"pss", 0, OPTION_FLAG, AT(pss), NULL,
	 "also PSS, where shared pages are divided among their users; read seldom, since it is dear", NULL},
	{"gpu", 0, OPTION_FLAG, AT(gpu), NULL, "also the memory of each NVIDIA GPU, used by all programs on it"},
	{"plot", 'p', OPTION_TEXT, AT(plot), "FILE", "draw it over time to FILE.svg, FILE.pdf or FILE.png", NULL},
	{"csv", 0, OPTION_TEXT, AT(csv), "FILE", "write every reading to FILE, in bytes", NULL},
	{"json", 0, OPTION_MAYBE, AT(json), "FILE",
	 "print the figures as JSON on standard output, or write them to FILE", NULL},
	{"live", 'l', OPTION_FLAG, AT(live), NULL, "for a COMMAND too: show what is used now, on a terminal"},
	{"exit-zero", 0, OPTION_FLAG, AT(exit_zero), NULL, "exit with 0 whatever the COMMAND's status was"},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "print no summary, and show nothing live"},
	OPTIONS_END,
};

/* A watch, of either kind. */
struct watch {
	const struct spy_args *args;
	struct spy_outputs outputs;
	struct spy_result result;
	struct spy_subject subject;
	struct error unwatched; /* why something that was asked for is not watched; "": nothing */
	char name[4096];
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay spy: %s\n", err->text);
	return status;
}

static void watch_init(struct watch *w, const struct spy_args *args)
{
	w->args = args;
	spy_outputs_init(&w->outputs);
	spy_result_init(&w->result);
	w->outputs.csv = args->csv;
	w->outputs.plot = args->plot;
	w->outputs.json = args->json && *args->json ? args->json : NULL;
	w->outputs.delay_ns = llround(args->delay_s * 1e9);
	w->subject = (struct spy_subject){.name = w->name, .delay_ns = w->outputs.delay_ns, .status = -1};
	w->name[0] = w->unwatched.text[0] = '\0';
}

static void watch_release(struct watch *w)
{
	spy_outputs_release(&w->outputs);
	spy_result_release(&w->result);
}

static int begin(struct watch *w, pid_t reaper, bool gpu, struct spy **ret, struct error *err)
{
	const struct spy_options o = {
		.pid = w->subject.pid,
		.reaper = reaper,
		.tree = w->subject.tree,
		.gpu = gpu,
		.pss = w->args->pss,
		.delay_ns = w->subject.delay_ns,
		.sample = spy_outputs_sample,
		.context = &w->outputs,
	};

	return spy_new(&o, ret, err);
}

static int64_t until(const struct spy_args *a)
{
	return a->until_s > 0 ? clock_mono_ns() + llround(a->until_s * 1e9) : 0;
}

static int print_json(const struct watch *w, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = spy_json(&w->result, &w->subject);
	CLEANUP(free_cleanup) char *text = root ? json_print(root) : NULL;

	if (!text)
		return error_set(err, "out of memory");
	printf("%s\n", text); /* main() looks whether it was really written */
	return 0;
}

/* Everything that is shown and kept of a watch. Returns how much of it failed. */
static int answer(struct watch *w, FILE *out)
{
	CLEANUP(buf_release) struct buf text;
	bool json_printed = w->args->json && !*w->args->json;
	struct error err;
	int failed;

	buf_init(&text);
	spy_outputs_clear(&w->outputs);
	if (!w->args->quiet && !(json_printed && out == stdout)) {
		spy_text(&w->result, &w->subject, terminal_has_colour(fileno(out)), terminal_columns(fileno(out)),
			 &text);
		fwrite(text.text, 1, text.length, out);
	}
	failed = spy_outputs_finish(&w->outputs, &w->result, &w->subject);
	if (json_printed && print_json(w, &err) < 0) {
		fprintf(stderr, "assay spy: --json: %s\n", err.text);
		failed++;
	}
	return failed;
}

/* INT, TERM and HUP, unless the caller ignores them, are read instead of ending us. */
static int open_stops(struct error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction before;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return error_set(err, "signals cannot be read: signalfd: %m");
	sigprocmask(SIG_BLOCK, &set, NULL);
	return fd;
}

/* The signal that ended the watch; 0: none did. From here on the next one ends the program. */
static int take_stop(int fd)
{
	struct signalfd_siginfo info;
	int signo = 0;
	sigset_t set;

	while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
		signo = signo ? signo : (int)info.ssi_signo;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return signo;
}

static void name_process(struct watch *w)
{
	ssize_t length = procfs_read_file(w->name, sizeof w->name, "%d/comm", (int)w->subject.pid);

	w->name[length > 0 ? strcspn(w->name, "\n") : 0] = '\0';
}

/* Ctrl-C is how such a watch ends. */
static int watch_pid(struct watch *w, pid_t pid)
{
	CLEANUP(fd_cleanup) int stops = -1;
	struct spy *spy;
	struct error err;
	int signo;

	w->subject.pid = pid;
	w->subject.tree = w->args->tree;
	w->outputs.live = !w->args->quiet && isatty(STDERR_FILENO);
	name_process(w);
	stops = open_stops(&err);
	if (stops < 0)
		return trouble(&err, EXIT_TROUBLE);
	if (begin(w, 0, w->args->gpu, &spy, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (spy_outputs_open(&w->outputs, &err) < 0) {
		spy_free(spy);
		return trouble(&err, EXIT_TROUBLE);
	}
	spy_watch(spy, stops, until(w->args));
	spy_figures(spy, true, &w->result);
	signo = take_stop(stops);
	spy_free(spy);
	if (answer(w, stdout))
		return EXIT_TROUBLE;
	return signo && signo != SIGINT ? 128 + signo : EXIT_DONE;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) > 0;
}

/* Until the command's end; reads until then, or until --until. */
static void watch_command(struct watch *w, struct spy *spy, struct spy_command *c)
{
	int64_t end = until(w->args);
	bool reading = spy != NULL;

	while (!c->ended) {
		if (reading) {
			spy_watch(spy, c->signals, end);
			if (!is_readable(c->signals, 0)) {
				reading = false;
				spy_figures(spy, true, &w->result);
			}
		} else {
			is_readable(c->signals, -1);
		}
		spy_command_take(c);
	}
	if (reading)
		spy_figures(spy, true, &w->result);
	if (w->result.how == SPY_STOPPED)
		return;
	/* Whatever it used it used during this watch, also where it ended before the first reading. */
	if (w->result.high_water_begin < 0)
		w->result.high_water_begin = 0;
	spy_result_maxrss(&w->result, c->max_rss);
}

static void name_command(struct watch *w, char *const *argv)
{
	size_t at = 0;

	for (; *argv && at < sizeof w->name; argv++)
		at += (size_t)snprintf(w->name + at, sizeof w->name - at, "%s%s", at ? " " : "", *argv);
}

/* What assay could not read or write is told, and the status stays the command's. */
static int finish_command(struct watch *w, const struct spy_command *c)
{
	int status = spy_command_exit_status(c), failed;

	w->subject.status = status;
	failed = answer(w, stderr);
	if (w->args->exit_zero)
		return EXIT_DONE;
	if (c->interrupted && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGINT) {
		fflush(stdout);
		interrupt_die();
	}
	return failed && !status ? EXIT_TROUBLE : status;
}

/* NULL where it has ended already, so that its own end is all that tells of it, or where it cannot be watched. It is
 * not ended for that; without GPUs it is still worth watching. */
static struct spy *begin_command(struct watch *w, struct spy_command *c)
{
	struct spy *spy = NULL;

	w->result.how = SPY_GONE;
	if (begin(w, getpid(), w->args->gpu, &spy, &w->unwatched) == 0)
		return spy;
	spy_command_take(c);
	if (c->ended)
		w->unwatched.text[0] = '\0';
	else if (w->args->gpu && begin(w, getpid(), false, &spy, NULL) < 0)
		return NULL;
	return spy;
}

static int start_and_watch(struct watch *w, struct spy_command *c)
{
	struct spy *spy;
	struct error err;
	int status;

	if (spy_outputs_open(&w->outputs, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	w->result.begin = clock_mono_ns();
	status = spy_command_go(c, &err);
	if (status)
		return trouble(&err, status);
	spy = begin_command(w, c);
	watch_command(w, spy, c);
	spy_free(spy);
	w->result.end = w->result.end ? w->result.end : clock_mono_ns();
	if (*w->unwatched.text)
		warnings_add(&w->result.warnings, "%s", w->unwatched.text);
	return finish_command(w, c);
}

static int run_command(struct watch *w, char *const *argv)
{
	CLEANUP(spy_command_release) struct spy_command c;
	struct error err;

	spy_command_init(&c);
	if (spy_command_make(&c, argv, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	w->subject.pid = c.spawn.pid;
	w->subject.tree = !w->args->no_tree;
	w->outputs.live = w->args->live && !w->args->quiet && isatty(STDERR_FILENO);
	name_command(w, argv);
	return start_and_watch(w, &c);
}

static int read_pid(char *const *words, int64_t *ret, struct error *err)
{
	if (!parse_i64(words[0], ret) || *ret < 1 || *ret > INT_MAX)
		return error_set(err, "'%s' is no process id; to start a command: assay spy -- COMMAND",
				 typed_show(words[0], strlen(words[0])).text);
	return words[1] ? error_set(err, "one process at a time; " USAGE) : 0;
}

static int run_with(const struct spy_args *a, char **argv, int rest)
{
	bool command = rest > 1 && strcmp(argv[rest - 1], "--") == 0;
	CLEANUP(watch_release) struct watch w;
	struct error err;
	int64_t pid = 0;

	watch_init(&w, a);
	if (!argv[rest])
		error_set(&err, "no %s given; " USAGE, command ? "command" : "process");
	else if (!command && read_pid(argv + rest, &pid, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	else if (!command && (a->no_tree || a->exit_zero))
		error_set(&err, "option '--%s' is for a command: assay spy -- COMMAND",
			  a->no_tree ? "no-tree" : "exit-zero");
	else if (a->tree && a->no_tree)
		error_set(&err, "options '--tree' and '--no-tree' exclude each other");
	else if (spy_outputs_check(&w.outputs, &err) == 0)
		return command ? run_command(&w, argv + rest) : watch_pid(&w, (pid_t)pid);
	return trouble(&err, EXIT_USAGE);
}

static int run(int argc, char **argv)
{
	struct spy_args args = {.delay_s = 0.01};
	struct error err;
	int rest, status = options_parse(&cmd_spy, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	status = status < 0 ? trouble(&err, EXIT_USAGE) : run_with(&args, argv, rest);
	options_release(&cmd_spy, &args);
	return status;
}

const struct command cmd_spy = {
	.name = "spy",
	.summary = "how much memory a process uses, and how much at its peak",
	.usage = "[options] PID | -- COMMAND [ARG...]",
	.description = "Reads the memory of a process again and again, from outside: resident (RSS), of\n"
		       "that anonymous and of files, and swap; with --pss and --gpu also these. Tells\n"
		       "for each what it was at the beginning, at the end, at its largest and when, and\n"
		       "on average; and by the kernel's high-water mark what happened between two\n"
		       "readings. A PID is watched until it ends or Ctrl-C is pressed; the status is 0\n"
		       "then. A COMMAND is started, has the terminal to itself and is watched with its\n"
		       "descendants; the summary goes to standard error, and the status is its own.",
	.options = options,
	.examples = "# how much does it need at its peak?\n"
		    "assay spy -- ./program input\n"
		    "# what does a server hold, for a minute, with its workers\n"
		    "assay spy --tree --pss --until 60 --plot memory.svg 1234\n"
		    "# for a script\n"
		    "assay spy --until 5 --json 1234\n",
	.run = run,
	.mixed = true,
};
