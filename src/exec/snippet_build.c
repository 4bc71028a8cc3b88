#include "exec/snippet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* More of what a compiler says is not read. */
#define SAID_MAX (1 << 20)
#define SAID "compiler.txt"
#define RUNNER "runner.o"

extern char **environ;

/* Words that are put together for a command: the pointers and what was made for them. */
struct words {
	char **items; /* ends with NULL */
	size_t count, room;
	bool failed;
};

void snippet_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

static void words_release(struct words *w)
{
	snippet_words_free(w->items);
	*w = (struct words){0};
}

/* "BEFORE" and "WORD" as one word. */
static void add(struct words *w, const char *before, const char *word)
{
	if (w->count + 2 > w->room) {
		size_t room = w->room ? 2 * w->room : 32;
		char **items = reallocarray(w->items, room, sizeof *items);

		if (!items) {
			w->failed = true;
			return;
		}
		w->items = items;
		w->room = room;
	}
	if (asprintf(&w->items[w->count], "%s%s", before, word) < 0) {
		w->items[w->count] = NULL;
		w->failed = true;
		return;
	}
	w->items[++w->count] = NULL;
}

static void add_all(struct words *w, const char *before, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		add(w, before, list[i]);
}

static void add_in(struct words *w, const struct snippet_shop *shop, const char *name)
{
	CLEANUP(free_cleanup) char *path = fs_join(shop->folder, name);

	if (path)
		add(w, "", path);
	else
		w->failed = true;
}

/* The user's environment, but messages in English: they are read here. */
static void add_environment(struct words *w)
{
	for (size_t i = 0; environ[i]; i++)
		if (strncmp(environ[i], "LC_ALL=", 7) != 0)
			add(w, "", environ[i]);
	add(w, "", "LC_ALL=C");
}

/* The first of it, where it is very much. */
static int read_said(const char *path, struct buf *said, struct error *err)
{
	CLEANUP(free_cleanup) char *text = malloc(SAID_MAX + 1);
	CLEANUP(fd_cleanup) int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t got;

	if (!text)
		return error_set(err, "out of memory for what the compiler says");
	if (fd < 0 || (got = read(fd, text, SAID_MAX)) < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	text[got] = '\0';
	buf_puts(said, text);
	return said->failed ? error_set(err, "out of memory for what the compiler says") : 0;
}

/* Runs it with its words going to a file in the folder. *ret_status: as from wait4. */
static int run_compiler(const struct snippet_shop *shop, const struct words *words, int *ret_status, struct buf *said,
			struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(shop->folder, SAID);
	CLEANUP(words_release) struct words environment = {0};
	CLEANUP(fd_cleanup) int in = -1;
	CLEANUP(fd_cleanup) int out = -1;
	struct timed_options o = {.argv = words->items};
	struct timed_result result;
	int got;

	add_environment(&environment);
	if (!path || words->failed || environment.failed)
		return error_set(err, "out of memory for the compiler's command line");
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (in < 0 || out < 0)
		return error_set(err, "%s: %s", in < 0 ? "/dev/null" : path, strerror(errno));
	o.environment = environment.items;
	o.in = in;
	o.out = o.err = out;
	got = timed_run(shop->timed, &o, shop->stop, &result, err);
	if (got == 127)
		return error_set(err,
				 "there is no compiler '%s': install one (Debian: apt install gcc), or name another "
				 "with --cc",
				 words->items[0]);
	if (got != 0)
		return got == 1 ? 1 : -1;
	if (shop->stop && *shop->stop)
		return 1;
	*ret_status = result.status;
	return read_said(path, said, err);
}

static int explain_end(const struct words *words, int status, struct error *err)
{
	const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

	if (WIFSIGNALED(status))
		return error_set(err, "the compiler '%s' was ended by signal %d (SIG%s)", words->items[0],
				 WTERMSIG(status), name ? name : "?");
	return 0;
}

/* Lines of source are shown by snippet_messages; a tab is one column there. */
static void add_quiet(struct words *w, const struct snippet_shop *shop)
{
	if (!shop->quiet)
		return;
	add(w, "", shop->quiet);
	add(w, "", "-ftabstop=1");
}

static int compile_runner(const struct snippet_shop *shop, const struct snippet_compiler *c, int *ret_status,
			  struct buf *said, struct error *err)
{
	CLEANUP(words_release) struct words w = {0};
	int got;

	add_all(&w, "", (const char *const *)c->cc);
	add_all(&w, "", (const char *const *)c->flags);
	/* Behind the user's flags, so that a -std or a -Werror among them is no matter of the runner. */
	add_all(&w, "", (const char *const[]){"-D_GNU_SOURCE", "-DSNIPPET_WITH_MAIN", "-x", "c", "-std=gnu17", "-w",
					      "-c", NULL});
	add_quiet(&w, shop);
	add_in(&w, shop, "runner.c");
	add(&w, "", "-o");
	add_in(&w, shop, RUNNER);
	got = run_compiler(shop, &w, ret_status, said, err);
	return got == 0 ? explain_end(&w, *ret_status, err) : got;
}

int snippet_compile_runner(struct snippet_shop *shop, const struct snippet_compiler *c, struct buf *messages,
			   struct error *err)
{
	/* GCC's name of it, which clang refuses; clang's, and none. */
	static const char *const quiet[] = {"-fno-diagnostics-show-caret", "-fno-caret-diagnostics", NULL};
	static const struct snippet_text none = {.statement = ""};
	CLEANUP(buf_release) struct buf said;
	int status = 0;

	buf_init(&said);
	for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
		int got;

		buf_clear(&said);
		shop->quiet = quiet[i];
		shop->is_gcc = i == 0;
		got = compile_runner(shop, c, &status, &said, err);
		if (got != 0 || status == 0)
			return got;
	}
	snippet_messages(&none, shop->folder, said.text, messages);
	error_set(err, "the compiler '%s' does not work with these options", c->cc[0]);
	return SNIPPET_BAD;
}

/* A library found by -L is found again when the program starts. */
static void add_library_dirs(struct words *w, const struct snippet_compiler *c)
{
	for (size_t i = 0; c->library_dirs && c->library_dirs[i]; i++) {
		CLEANUP(free_cleanup) char *path = fs_absolute(c->library_dirs[i]);

		add(w, "-L", c->library_dirs[i]);
		/* -Wl would take a name with a comma apart. */
		add_all(w, "", (const char *const[]){"-Xlinker", "-rpath", "-Xlinker", NULL});
		add(w, "", path ? path : c->library_dirs[i]);
	}
}

/* -I takes a header; a folder is what compilers take there. */
static void add_header_dirs(struct words *w, const struct snippet_compiler *c)
{
	for (size_t i = 0; c->headers && c->headers[i]; i++)
		if (fs_is_dir(c->headers[i]))
			add(w, "-I", c->headers[i]);
}

static void compile_words(const struct snippet_shop *shop, const struct snippet_compiler *c, const char *source,
			  const char *program, struct words *w)
{
	add_all(w, "", (const char *const *)c->cc);
	add_all(w, "", (const char *const *)c->flags);
	if (c->gcc_flag && shop->is_gcc)
		add(w, "", c->gcc_flag);
	if (c->standard)
		add(w, "-std=", c->standard);
	add_quiet(w, shop);
	add_header_dirs(w, c);
	add_in(w, shop, source);
	add_in(w, shop, RUNNER);
	add(w, "", "-o");
	add_in(w, shop, program);
	add_library_dirs(w, c);
	add_all(w, "-l", c->libraries);
}

static int put_source(const struct snippet_shop *shop, const struct snippet_compiler *c,
		      const struct snippet_text *text, const char *name, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(shop->folder, name);
	CLEANUP(buf_release) struct buf source;

	buf_init(&source);
	snippet_source(text, c->headers, shop->folder, &source);
	if (!path || source.failed)
		return error_set(err, "out of memory for the snippet's text");
	return fs_write_file(path, source.text, source.length, err);
}

int snippet_compile(struct snippet_shop *shop, const struct snippet_compiler *c, const struct snippet_text *text,
		    char ***ret_words, struct buf *messages, struct error *err)
{
	CLEANUP(words_release) struct words w = {0};
	CLEANUP(words_release) struct words start = {0};
	CLEANUP(buf_release) struct buf said;
	const char *cc;
	char source[32], program[32];
	int status, got;

	buf_init(&said);
	/* Names of one length: the length of a program's name moves its stack. */
	for (cc = c->cc[0]; cc[0] && cc[1] && cc[2]; cc++)
		;
	snprintf(source, sizeof source, "%04zu.%s", shop->programs % 10000, strcmp(cc, "++") == 0 ? "cc" : "c");
	snprintf(program, sizeof program, "%04zu", shop->programs % 10000);
	shop->programs++;
	if (put_source(shop, c, text, source, err) < 0)
		return -1;
	compile_words(shop, c, source, program, &w);
	got = run_compiler(shop, &w, &status, &said, err);
	if (got != 0)
		return got;
	if (explain_end(&w, status, err) < 0)
		return -1;
	if (snippet_messages(text, shop->folder, said.text, messages) == 0 && status != 0)
		buf_puts(messages, "it does not fit into a function: is there a bracket or a brace without its other "
				   "half?\n");
	if (status != 0) {
		error_set(err, "the compiler '%s' refuses it", c->cc[0]);
		return SNIPPET_BAD;
	}
	add_in(&start, shop, program);
	if (start.failed)
		return error_set(err, "out of memory for the snippet's name");
	if (!fs_exists(start.items[0])) {
		error_set(err, "the compiler '%s' made no program of it, and did not say why", c->cc[0]);
		return SNIPPET_BAD;
	}
	*ret_words = start.items;
	start = (struct words){0};
	return 0;
}

int snippet_library(const char *library, const char *symbol, char ***ret_words, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_exists(library) ? fs_absolute(library) : strdup(library);
	CLEANUP(free_cleanup) char *runner = fs_find_companion("assay-call");
	CLEANUP(words_release) struct words w = {0};

	if (!runner)
		return error_set(err, "assay-call is neither beside assay nor installed with it");
	add(&w, "", runner);
	add(&w, "", path ? path : "");
	add(&w, "", symbol);
	if (!path || w.failed)
		return error_set(err, "out of memory for the words of a command");
	*ret_words = w.items;
	w = (struct words){0};
	return 0;
}
