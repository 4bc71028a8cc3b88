#include "exec/snippet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/units.h"
#include "base/utf8.h"

#define WORDS_MAX 16
#define SAID "said.txt"    /* what the program wrote to its standard error */
#define SAID_TAIL 4096
#define SAID_COLUMNS 160

/* What the program said last, for the end of a sentence: "" or ", after saying: ...". */
static void last_words(const struct snippet_shop *shop, char *text, size_t size)
{
	CLEANUP(free_cleanup) char *path = fs_join(shop->folder, SAID);
	CLEANUP(fd_cleanup) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	CLEANUP(buf_release) struct buf line;
	char tail[SAID_TAIL + 1];
	off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	ssize_t got = fd >= 0 ? pread(fd, tail, SAID_TAIL, end > SAID_TAIL ? end - SAID_TAIL : 0) : 0;
	char *at;

	buf_init(&line);
	*text = '\0';
	while (got > 0 && strchr(" \n", tail[got - 1]))
		got--;
	if (got <= 0)
		return;
	tail[got] = '\0';
	at = strrchr(tail, '\n');
	utf8_append_line(&line, at ? at + 1 : tail, SAID_COLUMNS);
	snprintf(text, size, "; its last words: %s", line.text);
}

static int explain(const struct snippet_shop *shop, const struct snippet_request *request,
		   const struct timed_result *result, struct error *err)
{
	int status = result->status;
	char words[4 * SAID_COLUMNS + 32];

	last_words(shop, words, sizeof words);
	if (result->timed_out)
		return error_set(err, "no end in sight after %s; an endless loop? --timeout S waits longer%s",
				 units_seconds((double)request->timeout_ns / 1e9).text, words);
	if (WIFSTOPPED(status))
		return error_set(err, "its process stopped itself (SIG%s)%s", sigabbrev_np(WSTOPSIG(status)), words);
	if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));

		return error_set(err, "its process was ended by signal %d (SIG%s)%s", WTERMSIG(status),
				 name ? name : "?", words);
	}
	return error_set(err, "its process ended with status %d before the last execution: exit() or _exit() in it?%s",
			 WEXITSTATUS(status), words);
}

/* Returns false where there is no whole reply. */
static bool read_reply(const char *path, struct snippet_reply *ret)
{
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, ret, sizeof *ret) == (ssize_t)sizeof *ret && ret->magic == SNIPPET_MAGIC;
}

static int judge_reply(const struct snippet_reply *reply, struct error *err)
{
	CLEANUP(buf_release) struct buf why;

	buf_init(&why);
	switch (reply->outcome) {
	case SNIPPET_MEASURED:
		return 0;
	case SNIPPET_LEFT:
		return error_set(err,
				 "it left its own loop with %" PRIu64 " of %" PRIu64
				 " executions to go: by break, return or goto?",
				 reply->left, reply->number);
	case SNIPPET_STRAY:
		return error_set(err, "a process that it made went on with the loop: _exit() in the statement ends it");
	default:
		utf8_append_line(&why, reply->text, sizeof reply->text);
		error_set(err, "%.400s", why.text);
		return SNIPPET_BAD;
	}
}

static int run_words(const struct snippet_shop *shop, char *const *words, const struct snippet_request *request,
		     struct timed_result *ret, struct error *err)
{
	CLEANUP(free_cleanup) char *said = fs_join(shop->folder, SAID);
	CLEANUP(fd_cleanup) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	CLEANUP(fd_cleanup)
	int out = said ? open(said, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600) : -1;
	struct timed_options o = {
		.argv = words, .in = null, .out = null, .err = out, .timeout_ns = request->timeout_ns};
	int got;

	if (null < 0 || out < 0)
		return error_set(err, "%s: %s", null < 0 ? "/dev/null" : SAID, strerror(errno));
	got = timed_run(shop->timed, &o, shop->stop, ret, err);
	if (got == 126)
		return error_set(err, "%s cannot be run: does its file system forbid programs (noexec)? TMPDIR names "
				      "another place", words[0]);
	return got == 0 || got == 1 ? got : -1;
}

int snippet_run(const struct snippet_shop *shop, char *const *words, const struct snippet_request *request,
		struct snippet_reply *ret, struct error *err)
{
	char path[PATH_MAX], number[24], warmup[24], target[24];
	char *all[WORDS_MAX + SNIPPET_ARGUMENTS];
	struct timed_result result;
	struct snippet_reply reply;
	size_t n = 0;
	int got;

	snprintf(path, sizeof path, "%s/reply", shop->folder);
	snprintf(number, sizeof number, "%" PRIu64, request->number);
	snprintf(warmup, sizeof warmup, "%" PRIu64, request->warmup);
	snprintf(target, sizeof target, "%" PRId64, request->target_ns);
	while (n < WORDS_MAX && words[n]) {
		all[n] = words[n];
		n++;
	}
	memcpy(all + n, (char *[]){path, number, warmup, target, (char[]){request->each ? '1' : '0', '\0'}, NULL},
	       SNIPPET_ARGUMENTS * sizeof *all);
	unlink(path);
	got = run_words(shop, all, request, &result, err);
	if (got != 0)
		return got;
	/* A Ctrl-C between its start and its own process group has ended it as well. */
	if (shop->stop && *shop->stop)
		return 1;
	if (result.timed_out || result.status != 0 || !read_reply(path, &reply))
		return explain(shop, request, &result, err);
	got = judge_reply(&reply, err);
	if (got == 0)
		*ret = reply;
	return got;
}
