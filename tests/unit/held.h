/* A target that is held before its exec, as the helper would hold it, with the test as its subreaper. */
#ifndef ASSAY_TESTS_HELD_H
#define ASSAY_TESTS_HELD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

struct held {
	pid_t pid;
	int go;     /* a byte lets it exec */
	int output; /* its standard output */
};

/* The path of tests/targets/NAME. */
static inline const char *held_target(const char *name)
{
	static char path[512];
	const char *folder = getenv("ASSAY_TEST_TARGETS");

	assert_non_null(folder);
	snprintf(path, sizeof path, "%s/target_%s", folder, name);
	return path;
}

static inline struct held held_start(const char *const argv[])
{
	int go[2], output[2];
	struct held h;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	fflush(NULL);
	h.pid = fork();
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		char c;

		dup2(output[1], 1);
		/* With the test's end of the pipe open here, the test's death would leave this process waiting for
		 * ever. */
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(go[0]);
	close(output[1]);
	h.go = go[1];
	h.output = output[0];
	return h;
}

static inline void held_release(const struct held *h)
{
	assert_int_equal(write(h->go, "x", 1), 1);
}

/* Whether it has ended; *ret_status is then as from wait4. Re-parented descendants that have ended are waited for too.
 */
static inline bool held_ended(const struct held *h, int *ret_status)
{
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == h->pid) {
			*ret_status = status;
			return true;
		}
	return false;
}

static inline void held_close(const struct held *h)
{
	close(h->go);
	close(h->output);
}

#endif
