#include "lib/spy_helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/last_error.h"

#define PROGRAM "assay-spy"
/* GPUs take seconds to be found where their driver's state was not kept. */
#define START_PATIENCE_NS (15 * NS_PER_S)
/* What a last reading of a hundred gigabytes' shares can take. */
#define STOP_PATIENCE_NS (5 * NS_PER_S)
#define END_PATIENCE_NS NS_PER_S
/* Numbers above those that the program finds its own at, so that none is overwritten on the way there. */
#define DESCRIPTOR_FROM 10

static bool exists(const char *path)
{
	return access(path, X_OK) == 0;
}

/* Beside the library, as built; below its folder, where it was installed, also when all was moved; as configured. */
static int find_program(char ret[PATH_MAX])
{
	const char *named = secure_getenv("ASSAY_SPY_HELPER");
	Dl_info self;
	int folder = 0;

	if (named && *named) {
		snprintf(ret, PATH_MAX, "%s", named);
		return exists(ret) ? 0
				   : last_error_set("assay_spy_start: %s: %s; ASSAY_SPY_HELPER is to name the program "
						    "%s of this installation",
						    named, strerror(errno), PROGRAM);
	}
	if (dladdr(find_program, &self) && self.dli_fname && strrchr(self.dli_fname, '/'))
		folder = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
	snprintf(ret, PATH_MAX, "%.*s/%s", folder, folder ? self.dli_fname : "", PROGRAM);
	if (folder && exists(ret))
		return 0;
	snprintf(ret, PATH_MAX, "%.*s/assay/%s", folder, folder ? self.dli_fname : "", PROGRAM);
	if (folder && exists(ret))
		return 0;
	snprintf(ret, PATH_MAX, "%s/%s", ASSAY_PLUGIN_DIR, PROGRAM);
	if (exists(ret))
		return 0;
	return last_error_set("assay_spy_start: the program %s was not found: neither beside %.*s nor in %s; "
			      "ASSAY_SPY_HELPER may name it",
			      PROGRAM, folder, folder ? self.dli_fname : "", ASSAY_PLUGIN_DIR);
}

/* Moves a descriptor up; closes the old one. */
static int move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_FROM);

	if (fd >= 0)
		close(fd);
	if (moved < 0 && errno == EINVAL) /* the limit is below that number */
		errno = EMFILE;
	return moved;
}

/* What is open while a helper is started; -1: not. */
struct start {
	int ours, theirs, memory;
	struct spy_wire_page *page; /* NULL: not mapped */
};

static void start_release(struct start *s)
{
	int fds[] = {s->ours, s->theirs, s->memory};

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (s->page)
		munmap(s->page, sizeof *s->page);
}

/* Where the limit on file sizes is lower, a signal would end the host. */
static bool may_have(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || size <= limit.rlim_cur;
}

static int share(struct start *s)
{
	int pair[2] = {-1, -1};
	void *page;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		s->ours = move_up(pair[0]);
		s->theirs = move_up(pair[1]);
	}
	if (s->ours < 0 || s->theirs < 0)
		return last_error_set("assay_spy_start: sockets to the spy: %s", strerror(errno));
	if (!may_have(sizeof *s->page))
		return last_error_set("assay_spy_start: memory that is shared with the spy: it counts as a file of %zu "
				      "bytes, which the limit on the size of files (ulimit -f) does not allow",
				      sizeof *s->page);
	s->memory = move_up(memfd_create("assay-spy", MFD_CLOEXEC));
	if (s->memory < 0 || ftruncate(s->memory, sizeof *s->page) < 0)
		return last_error_set("assay_spy_start: memory that is shared with the spy: %s", strerror(errno));
	page = mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, s->memory, 0);
	if (page == MAP_FAILED)
		return last_error_set("assay_spy_start: memory that is shared with the spy: %s", strerror(errno));
	s->page = page;
	s->page->version = SPY_WIRE_VERSION;
	return 0;
}

/* In a session of its own, which no terminal sends signals to; with no signal blocked or ignored. */
static int set_up(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *actions, const struct start *s)
{
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	failed = posix_spawnattr_setsigmask(attributes, &none);
	if (!failed)
		failed = posix_spawnattr_setsigdefault(attributes, &all);
	if (!failed)
		failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
								      POSIX_SPAWN_SETSID);
	if (!failed)
		failed = posix_spawn_file_actions_adddup2(actions, s->theirs, SPY_WIRE_SOCKET);
	if (!failed)
		failed = posix_spawn_file_actions_adddup2(actions, s->memory, SPY_WIRE_PAGE);
	return failed;
}

/* The host's environment is for the host: a library that is put before its own would watch the spy, too. The driver's
 * library may be where only LD_LIBRARY_PATH says. */
static int spawn(const char *program, char *const *arguments, const struct start *s, pid_t *ret)
{
	const char *libraries = secure_getenv("LD_LIBRARY_PATH");
	char path[PATH_MAX + 32], *environment[] = {NULL, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int failed;

	if (libraries && strlen(libraries) < PATH_MAX) {
		snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", libraries);
		environment[0] = path;
	}
	failed = posix_spawnattr_init(&attributes);
	if (failed)
		return failed;
	failed = posix_spawn_file_actions_init(&actions);
	if (!failed) {
		failed = set_up(&attributes, &actions, s);
		if (!failed)
			failed = posix_spawn(ret, program, &actions, &attributes, arguments, environment);
		posix_spawn_file_actions_destroy(&actions);
	}
	posix_spawnattr_destroy(&attributes);
	return failed;
}

/* 1: a message; 0: the other end is closed; -1: nothing came in time. */
static int receive(int fd, int64_t patience_ns, struct spy_wire_message *ret)
{
	int64_t end = clock_mono_ns() + patience_ns, rest;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while ((rest = end - clock_mono_ns()) > 0) {
		ssize_t length;

		if (poll(&p, 1, (int)(rest / NS_PER_MS) + 1) <= 0)
			continue;
		length = recv(fd, ret, sizeof *ret, MSG_DONTWAIT);
		if (length == (ssize_t)sizeof *ret)
			return 1;
		if (length >= 0 || (errno != EAGAIN && errno != EINTR))
			return 0;
	}
	return -1;
}

/* Waits for a child if it is one of this process; bounded. Where the host ignores SIGCHLD, or has it reaped by a
 * handler of its own, there is none any more. */
static void reap(pid_t pid, int64_t patience_ns)
{
	int64_t end = clock_mono_ns() + patience_ns;
	int status;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
		if (clock_mono_ns() > end)
			return;
		clock_sleep_ns(NS_PER_MS / 5);
	}
}

/* Waits for the program's end, which closes its end of the socket. A host that adopts orphans (init, a subreaper) has
 * become its parent. */
static void see_off(int socket, pid_t pid)
{
	struct pollfd p = {.fd = socket};
	int64_t end = clock_mono_ns() + END_PATIENCE_NS;

	while (poll(&p, 1, 100) <= 0 && clock_mono_ns() < end)
		;
	reap(pid, END_PATIENCE_NS);
}

/* The first reading. */
static int await_ready(struct spy_helper *h)
{
	struct spy_wire_message message;
	int got = receive(h->socket, START_PATIENCE_NS, &message);

	if (got == 0)
		return last_error_set("assay_spy_start: the spy ended at once; was it killed?");
	if (got < 0)
		return last_error_set("assay_spy_start: the spy did not begin within %d s",
				      (int)(START_PATIENCE_NS / NS_PER_S));
	message.text[sizeof message.text - 1] = '\0';
	if (message.news != SPY_WIRE_READY) {
		see_off(h->socket, (pid_t)message.pid);
		return last_error_set("assay_spy_start: %s", message.text);
	}
	h->pid = (pid_t)message.pid;
	return 0;
}

static int run(const char *program, pid_t pid, int64_t delay_ns, unsigned flags, const struct start *s, pid_t *ret)
{
	char words[5][24];
	char *arguments[] = {(char[]){PROGRAM}, words[0], words[1], words[2], words[3], words[4], NULL};
	int failed;

	snprintf(words[0], sizeof words[0], "%d", SPY_WIRE_VERSION);
	snprintf(words[1], sizeof words[1], "%d", (int)pid);
	snprintf(words[2], sizeof words[2], "%lld", (long long)delay_ns);
	snprintf(words[3], sizeof words[3], "%u", flags);
	snprintf(words[4], sizeof words[4], "%d", (int)getpid());
	failed = spawn(program, arguments, s, ret);
	return failed ? last_error_set("assay_spy_start: %s: %s", program, strerror(failed)) : 0;
}

int spy_helper_spawn(pid_t pid, int64_t delay_ns, unsigned flags, struct spy_helper *ret)
{
	struct start s = {-1, -1, -1, NULL};
	char program[PATH_MAX];
	struct stat st = {0};
	pid_t first = 0;

	if (find_program(program) < 0)
		return -1;
	if (share(&s) < 0 || fstat(s.ours, &st) < 0 || run(program, pid, delay_ns, flags, &s, &first) < 0) {
		start_release(&s);
		return -1;
	}
	*ret = (struct spy_helper){.socket = s.ours, .inode = st.st_ino, .pid = first, .page = s.page};
	s.ours = -1;
	s.page = NULL;
	start_release(&s);
	return 0;
}

int spy_helper_await(struct spy_helper *h)
{
	/* It only makes the one that watches, which is nobody's child then. */
	reap(h->pid, START_PATIENCE_NS);
	return await_ready(h);
}

static bool is_ours(const struct spy_helper *h)
{
	struct stat st;

	return h->socket >= 0 && fstat(h->socket, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == h->inode;
}

/* Its end of the socket is open, so it lives, and its pid is its own. */
static bool lives(const struct spy_helper *h)
{
	struct pollfd p = {.fd = h->socket};

	return poll(&p, 1, 0) == 0;
}

enum spy_helper_end spy_helper_stop(struct spy_helper *h)
{
	struct spy_wire_message message;
	enum spy_helper_end end = SPY_HELPER_DEAD;
	int got;

	if (!is_ours(h)) {
		h->socket = -1;
		reap(h->pid, END_PATIENCE_NS); /* as see_off() does, without a socket to tell of the end */
		return SPY_HELPER_LOST;
	}
	(void)send(h->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	got = receive(h->socket, STOP_PATIENCE_NS, &message);
	if (got > 0 && message.news == SPY_WIRE_DONE)
		end = SPY_HELPER_DONE;
	else if (got < 0)
		end = SPY_HELPER_SILENT;
	if (end == SPY_HELPER_SILENT && lives(h))
		kill(h->pid, SIGKILL);
	see_off(h->socket, h->pid);
	spy_helper_forget(h);
	return end;
}

void spy_helper_forget(struct spy_helper *h)
{
	if (is_ours(h))
		close(h->socket);
	h->socket = -1;
}

void spy_helper_release(struct spy_helper *h)
{
	if (h->page)
		munmap((void *)h->page, sizeof *h->page);
	h->page = NULL;
}
