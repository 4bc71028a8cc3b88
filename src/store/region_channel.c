#include "store/region_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/utf8.h"

#define FLUSH_BYTES ((size_t)256 << 10)
#define TEXT_MAX ((uint64_t)4 << 20) /* three times that of one in a file: invalid bytes become three */
#define LOOK_MS 100
#define IDLE_LOOKS_MAX 600 /* a minute without a word and without work: as good as dead */

void channel_init(struct channel *c, int fd, pid_t child, uint64_t allowance)
{
	*c = (struct channel){.fd = fd, .child = child, .allowance = allowance};
	buf_init(&c->out), buf_init(&c->in);
}

void channel_release(struct channel *c)
{
	buf_release(&c->out);
	buf_release(&c->in);
}

static int ended(struct channel *c, enum channel_end how)
{
	if (c->end == CHANNEL_GOOD)
		c->end = how;
	return -1;
}

int channel_nonsense(struct channel *c)
{
	return ended(c, CHANNEL_NONSENSE);
}

int channel_flush(struct channel *c)
{
	size_t done = 0;

	if (c->out.failed)
		return ended(c, CHANNEL_CLOSED);
	while (c->end == CHANNEL_GOOD && done < c->out.length) {
		ssize_t sent = send(c->fd, c->out.text + done, c->out.length - done, MSG_NOSIGNAL);

		if (sent > 0)
			done += (size_t)sent;
		else if (errno != EINTR)
			return ended(c, CHANNEL_CLOSED);
	}
	buf_clear(&c->out);
	return c->end == CHANNEL_GOOD ? 0 : -1;
}

void channel_put(struct channel *c, const void *bytes, size_t length)
{
	buf_append(&c->out, bytes, length);
	if (c->out.length >= FLUSH_BYTES)
		channel_flush(c);
}

void channel_put_number(struct channel *c, uint64_t number)
{
	channel_put(c, &number, sizeof number);
}

void channel_put_text(struct channel *c, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	channel_put_number(c, length);
	channel_put(c, text, length);
}

static int64_t cpu_ns(pid_t child)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return -1;
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Until something can be read. Looks are counted, not time: while a program is stopped, time goes on. */
static int wait_for(struct channel *c)
{
	int64_t before = -1;

	for (unsigned idle = 0; c->child; idle++) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		int64_t now;

		if (poll(&p, 1, LOOK_MS) > 0)
			return 0;
		now = cpu_ns(c->child);
		if (now != before)
			idle = 0;
		before = now;
		if (idle == IDLE_LOOKS_MAX)
			return ended(c, CHANNEL_STALLED);
	}
	return 0;
}

/* Reads what is there, into *room at most. */
static int receive(struct channel *c, void *room, size_t length, size_t *ret)
{
	ssize_t got = -1;

	if (length > c->allowance)
		length = (size_t)c->allowance;
	if (c->end != CHANNEL_GOOD || length == 0)
		return ended(c, CHANNEL_NONSENSE);
	while (got < 0) {
		if (wait_for(c) < 0)
			return -1;
		got = recv(c->fd, room, length, 0);
		if (got == 0 || (got < 0 && errno != EINTR))
			return ended(c, CHANNEL_CLOSED);
	}
	c->allowance -= (size_t)got;
	*ret = (size_t)got;
	return 0;
}

int channel_take(struct channel *c, void *bytes, size_t length)
{
	char *to = bytes;

	while (length) {
		size_t got = c->in.length - c->taken;

		if (got) {
			got = got < length ? got : length;
			memcpy(to, c->in.text + c->taken, got);
			c->taken += got;
		} else if (length >= FLUSH_BYTES) {
			if (receive(c, to, length, &got) < 0)
				return -1;
		} else {
			buf_clear(&c->in);
			c->taken = 0;
			if (!buf_reserve(&c->in, FLUSH_BYTES))
				return ended(c, CHANNEL_NONSENSE);
			if (receive(c, c->in.text, FLUSH_BYTES, &c->in.length) < 0)
				return -1;
			got = 0;
		}
		to += got;
		length -= got;
	}
	return c->end == CHANNEL_GOOD ? 0 : -1;
}

int channel_take_number(struct channel *c, uint64_t limit, uint64_t *ret)
{
	if (channel_take(c, ret, sizeof *ret) < 0)
		return -1;
	return *ret <= limit ? 0 : channel_nonsense(c);
}

char *channel_take_text(struct channel *c)
{
	uint64_t length;
	char *text;

	if (channel_take_number(c, TEXT_MAX, &length) < 0)
		return NULL;
	text = malloc(length + 1);
	if (!text) {
		channel_nonsense(c);
		return NULL;
	}
	text[length] = '\0';
	if (channel_take(c, text, length) < 0 || strlen(text) != length ||
	    utf8_valid_until(text, 0, length) != length) {
		free(text);
		channel_nonsense(c);
		return NULL;
	}
	return text;
}
