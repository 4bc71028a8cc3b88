#include "trial/bench_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

static const struct bench_output nothing = {.null = -1, .drain = {-1, -1}, .quit = -1};

int bench_output_init(struct bench_output *o, struct error *err)
{
	*o = nothing;
	o->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return o->null < 0 ? error_set(err, "/dev/null: %s", strerror(errno)) : 0;
}

void bench_output_release(struct bench_output *o)
{
	const int descriptors[] = {o->null, o->drain[0], o->drain[1], o->quit};

	if (o->draining) {
		/* A process that a command has left may hold the pipe open: the end of the file may never come. */
		eventfd_write(o->quit, 1);
		pthread_join(o->thread, NULL);
	}
	for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	*o = nothing;
}

static void *empty_pipe(void *argument)
{
	const struct bench_output *o = argument;
	struct pollfd fds[2] = {{.fd = o->drain[0], .events = POLLIN}, {.fd = o->quit, .events = POLLIN}};
	char bytes[65536];

	while (poll(fds, 2, -1) > 0 && !fds[1].revents)
		if (read(o->drain[0], bytes, sizeof bytes) <= 0)
			break;
	return NULL;
}

static int start_draining(struct bench_output *o, struct error *err)
{
	sigset_t all, before;
	int failed;

	if (o->draining)
		return 0;
	o->quit = o->quit < 0 ? eventfd(0, EFD_CLOEXEC) : o->quit;
	if (o->quit < 0 || (o->drain[0] < 0 && pipe2(o->drain, O_CLOEXEC) < 0))
		return error_set(err, "--output pipe: %s", strerror(errno));
	sigfillset(&all); /* a Ctrl-C has to reach the thread that waits for the command */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&o->thread, NULL, empty_pipe, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return error_set(err, "--output pipe: no thread can be started: %s", strerror(failed));
	o->draining = true;
	return 0;
}

static int choose_output(struct bench_output *o, const char *where, struct bench_descriptors *d, struct error *err)
{
	d->out = d->err = o->null;
	if (!where || strcmp(where, "null") == 0)
		return 0;
	if (strcmp(where, "inherit") == 0) {
		d->out = STDOUT_FILENO;
		d->err = STDERR_FILENO;
		return 0;
	}
	if (strcmp(where, "pipe") == 0) {
		if (start_draining(o, err) < 0)
			return -1;
		d->out = o->drain[1];
		return 0;
	}
	d->out = open(where, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (d->out < 0)
		return error_set(err, "--output: %s: %s", where, strerror(errno));
	d->own_out = true;
	return 0;
}

int bench_output_open(struct bench_output *o, const char *where, const char *input, struct bench_descriptors *ret,
		      struct error *err)
{
	struct bench_descriptors d = {.in = o->null};

	if (input) {
		d.in = open(input, O_RDONLY | O_CLOEXEC);
		if (d.in < 0)
			return error_set(err, "--input: %s: %s", input, strerror(errno));
		d.own_in = true;
	}
	if (choose_output(o, where, &d, err) < 0) {
		bench_output_close(&d);
		return -1;
	}
	*ret = d;
	return 0;
}

void bench_output_close(struct bench_descriptors *d)
{
	if (d->own_in)
		close(d->in);
	if (d->own_out)
		close(d->out);
	d->own_in = d->own_out = false;
}
