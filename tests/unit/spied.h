/* A child that uses memory as it is told, one step at a time. */
#ifndef ASSAY_TESTS_SPIED_H
#define ASSAY_TESTS_SPIED_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPIED_MIB (INT64_C(1) << 20)

/* What the child does before it answers. */
enum spied_step {
	SPIED_GROW = 'g',   /* touches so many MiB more */
	SPIED_DROP = 'd',   /* gives them back */
	SPIED_SPIKE = 's',  /* both, between two readings */
	SPIED_FORK = 'f',   /* forks so many children that read all it has, and live until it ends */
	SPIED_SHORT = 'q',  /* forks so many that end at once, and waits for them */
	SPIED_EXEC = 'x',   /* becomes a small program, which takes no more steps */
	SPIED_THREAD = 't', /* its first thread ends, another goes on with the steps */
};

struct spied {
	pid_t pid;
	int steps, answers;
};

struct spied_memory {
	char *at;
	size_t size;
};

static inline void spied_touch(struct spied_memory *m, size_t mib)
{
	m->size = mib << 20;
	m->at = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->at == MAP_FAILED)
		_exit(3);
	madvise(m->at, m->size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < m->size; i += 4096)
		m->at[i] = 1;
}

static inline void spied_fork(const struct spied_memory *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pid_t parent = getpid();

		if (fork() != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t at = 0; at < m->size; at += 4096)
			((volatile char *)m->at)[at];
		if (getppid() == parent)
			pause();
		_exit(0);
	}
}

static inline void *spied_loop(void *ends)
{
	const int *fds = ends;
	struct spied_memory memory = {NULL, 0};
	unsigned char step[2];

	while (read(fds[0], step, 2) == 2) {
		if (step[0] == SPIED_GROW || step[0] == SPIED_SPIKE)
			spied_touch(&memory, step[1]);
		if (step[0] == SPIED_DROP || step[0] == SPIED_SPIKE)
			munmap(memory.at, memory.size);
		if (step[0] == SPIED_FORK)
			spied_fork(&memory, step[1]);
		for (unsigned i = 0; step[0] == SPIED_SHORT && i < step[1]; i++)
			if (fork() == 0)
				_exit(0);
		while (step[0] == SPIED_SHORT && wait(NULL) > 0)
			;
		if (step[0] == SPIED_EXEC) {
			dup2(fds[0], 0);
			dup2(fds[1], 1);
			execl("/bin/sh", "sh", "-c", "echo; read x", (char *)NULL);
			_exit(127);
		}
		if (step[0] == SPIED_THREAD) {
			pthread_t other;

			step[0] = 0;
			if (pthread_create(&other, NULL, spied_loop, ends) == 0 && write(fds[1], "", 1) == 1)
				pthread_exit(NULL);
		}
		if (write(fds[1], "", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static inline struct spied spied_start(void)
{
	static int ends[2];
	int steps[2], answers[2];
	struct spied s;

	assert_int_equal(pipe2(steps, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	fflush(NULL);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0) {
		close(steps[1]);
		close(answers[0]);
		ends[0] = steps[0];
		ends[1] = answers[1];
		spied_loop(ends);
	}
	close(steps[0]);
	close(answers[1]);
	s.steps = steps[1];
	s.answers = answers[0];
	return s;
}

static inline void spied_do(const struct spied *s, enum spied_step step, unsigned count)
{
	unsigned char bytes[2] = {(unsigned char)step, (unsigned char)count};
	char answer;

	assert_int_equal(write(s->steps, bytes, 2), 2);
	assert_int_equal(read(s->answers, &answer, 1), 1);
}

/* Its first thread's process ends; it stays a zombie. */
static inline void spied_end(struct spied *s)
{
	siginfo_t info;

	close(s->steps);
	s->steps = -1;
	assert_int_equal(waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOWAIT), 0);
}

/* Returns its peak as its parent learns it. */
static inline int64_t spied_reap(struct spied *s)
{
	struct rusage usage;

	if (s->steps >= 0)
		close(s->steps);
	close(s->answers);
	assert_int_equal(wait4(s->pid, NULL, 0, &usage), s->pid);
	return 1024 * (int64_t)usage.ru_maxrss;
}

#endif
