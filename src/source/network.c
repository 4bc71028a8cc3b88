/* Network interfaces as the command sees them, from its /proc/PID/net/dev: bytes each way, and the link's speed.
 *
 * Loopback is left out, since its bytes never leave the machine, and so is what has had no traffic since the start.
 * Interfaces made of others (bridges, bonds, tunnels) count the bytes of those below them once more. */
#include "source/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/reading.h"

#define SHOWN_MAX 16   /* with series */
#define LINES_MAX 1024 /* interfaces that are looked at */
#define NAME_SIZE 16   /* of an interface, by the kernel's IFNAMSIZ */
#define BUFFER (192 * 1024)
/* Asking for it takes a lock that all changes to the network take, and may reach down to the device. */
#define SPEED_EVERY_NS (10 * NS_PER_S)
#define FOLLOW_EVERY_NS NS_PER_S
#define SETTLING_NS (2 * NS_PER_S) /* starters of containers change the namespace within this */
#define SPEED_UNKNOWN UINT32_MAX   /* what some drivers say in place of -1 */

enum { RX_BYTES, TX_BYTES, FIGURES };

static const char *const figures[FIGURES] = {[RX_BYTES] = "rx_bytes", [TX_BYTES] = "tx_bytes"};

struct interface {
	char name[NAME_SIZE];
	double first[FIGURES]; /* at the start; 0 where it was made later */
	bool met, shown;       /* met: `first` is of the namespace that is read */
	int series[FIGURES], speed; /* -1: not defined */
	struct running running[FIGURES];
	int64_t speed_next;
};

struct network_state {
	int fd;          /* of a namespace; it can be read even when no process is left there */
	struct stat at;  /* of that file: each namespace has its own */
	struct stat own; /* of this process's, whose interfaces /sys shows */
	struct interface *interfaces; /* LINES_MAX of them */
	size_t count, shown;
	bool begun; /* this namespace has been read */
	int64_t settled_at, follow_next; /* settled_at 0: not known yet */
	struct pace pace;
	char text[BUFFER];
};

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The name as part of a series' name: the kernel allows any bytes but blanks, / and colons. */
static void printable(const char *name, char *text, size_t size)
{
	size_t length = 0;

	for (; *name && length + 5 < size; name++)
		if (*name > ' ' && *name < 0x7f && *name != '\\')
			text[length++] = *name;
		else
			length += (size_t)snprintf(text + length, size - length, "\\x%02x", (unsigned char)*name);
	text[length] = '\0';
}

static int define(struct source_context *c, const struct interface *i, const char *figure, const char *unit,
		  enum series_kind kind)
{
	char printed[4 * NAME_SIZE + 8], scope[sizeof printed + 16], name[sizeof printed + 16];

	printable(i->name, printed, sizeof printed);
	snprintf(scope, sizeof scope, "network %s", printed);
	snprintf(name, sizeof name, "net.%s.%s", printed, figure);
	return series_define(c, &(struct series_desc){name, unit, "network", scope, kind});
}

/* /sys has Mbit/s, and nothing or -1 for what is wireless, virtual or not connected. */
static void read_speed(struct source_context *c, struct interface *i, int64_t now)
{
	char text[32];
	const char *at = text;
	ssize_t length = sysfs_read_file(text, sizeof text, "class/net/%s/speed", i->name);
	uint64_t mbit;

	i->speed_next = now + SPEED_EVERY_NS;
	if (length <= 0 || !scan_u64(&at, text + length, &mbit) || mbit == 0 || mbit >= SPEED_UNKNOWN)
		return;
	if (i->speed < 0)
		i->speed = define(c, i, "speed", "bytes/s", SERIES_GAUGE);
	timeline_put(c->timeline, i->speed, now, (double)mbit * 1e6 / 8);
}

static struct interface *interface_on_line(struct network_state *s, size_t line, const char *name)
{
	struct interface *i;

	if (line < s->count && strcmp(s->interfaces[line].name, name) == 0)
		return &s->interfaces[line];
	for (size_t k = 0; k < s->count; k++)
		if (strcmp(s->interfaces[k].name, name) == 0)
			return &s->interfaces[k];
	if (s->count == LINES_MAX)
		return NULL;
	i = &s->interfaces[s->count++];
	*i = (struct interface){.series = {-1, -1}, .speed = -1};
	snprintf(i->name, sizeof i->name, "%s", name);
	return i;
}

/* Where there is traffic by now. The first point is what there was before it, so that none of it is lost; the next
 * reading has the rest. */
static void show(struct network_state *s, struct source_context *c, struct interface *i, const double values[FIGURES],
		 int64_t now)
{
	if (s->shown == SHOWN_MAX || memcmp(i->first, values, sizeof i->first) == 0)
		return;
	i->shown = true;
	s->shown++;
	for (size_t k = 0; k < FIGURES; k++) {
		i->series[k] = define(c, i, figures[k], "bytes", SERIES_COUNTER);
		timeline_put(c->timeline, i->series[k], now, running_total(&i->running[k], i->first[k]));
	}
}

/* "NAME:", then bytes, packets and six more received, the same sent. Old kernels leave no blank behind the colon, and
 * an alias has one in its name, so the last one counts. */
static bool scan_interface(const char *at, const char *end, char name[NAME_SIZE], double values[FIGURES])
{
	const char *colon = memrchr(at, ':', (size_t)(end - at));
	uint64_t received, sent;

	while (at < end && *at == ' ')
		at++;
	if (!colon || colon <= at || colon - at >= NAME_SIZE)
		return false;
	memcpy(name, at, (size_t)(colon - at));
	name[colon - at] = '\0';
	if (strlen(name) != (size_t)(colon - at) || strpbrk(name, " \t/") || strcmp(name, "lo") == 0)
		return false;
	at = colon + 1;
	if (!scan_u64(&at, end, &received) || !scan_words(&at, end, 7) || !scan_u64(&at, end, &sent))
		return false;
	values[RX_BYTES] = (double)received;
	values[TX_BYTES] = (double)sent;
	return true;
}

static void put_interface(struct network_state *s, struct source_context *c, struct interface *i,
			  const double values[FIGURES], int64_t now)
{
	if (!i->met && s->begun)
		memset(i->first, 0, sizeof i->first);
	else if (!i->met)
		memcpy(i->first, values, sizeof i->first);
	i->met = true;
	if (i->shown)
		for (size_t k = 0; k < FIGURES; k++)
			timeline_put(c->timeline, i->series[k], now, running_total(&i->running[k], values[k]));
	else
		show(s, c, i, values, now);
	if (i->shown && now >= i->speed_next && same_file(&s->at, &s->own))
		read_speed(c, i, now);
}

/* The file of that process (0: this one), and which file it is. The descriptor, or -errno. */
static int open_of(pid_t pid, struct stat *ret_at)
{
	int fd = pid > 0 ? procfs_open("%d/net/dev", (int)pid) : procfs_open("self/net/dev");

	if (fd >= 0 && fstat(fd, ret_at) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Opens the command's file anew, since it may have moved to another namespace; where it is gone, its last one stays. */
static void follow(struct network_state *s, const struct source_context *c)
{
	struct stat at;
	int fd = c->command > 0 ? open_of(c->command, &at) : -1;

	if (fd < 0)
		return;
	if (s->fd >= 0 && same_file(&at, &s->at)) {
		close(fd);
		return;
	}
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	s->at = at;
	s->begun = false;
	for (size_t k = 0; k < s->count; k++) {
		s->interfaces[k].met = false;
		s->interfaces[k].running[RX_BYTES].elsewhere = s->interfaces[k].running[TX_BYTES].elsewhere = true;
	}
}

static void network_slow(void *state, struct source_context *c, int64_t now)
{
	struct network_state *s = state;
	const char *line_end;
	size_t number = 0;
	ssize_t length;

	if (!pace_due(&s->pace, c, now))
		return;
	if (s->settled_at == 0)
		s->settled_at = now + SETTLING_NS;
	if (now >= s->follow_next || c->exact) {
		follow(s, c);
		s->follow_next = now < s->settled_at ? now : now + FOLLOW_EVERY_NS;
	}
	length = procfs_read_all(s->fd, s->text, sizeof s->text);
	for (const char *line = s->text; length > 0 && line < s->text + length; line = line_end + 1) {
		double values[FIGURES];
		char name[NAME_SIZE];
		struct interface *i;

		line_end = memchr(line, '\n', (size_t)(s->text + length - line));
		if (!line_end)
			break;
		if (!scan_interface(line, line_end, name, values))
			continue;
		i = interface_on_line(s, number++, name);
		if (i)
			put_interface(s, c, i, values, now);
	}
	s->begun = s->begun || length > 0;
	pace_done(&s->pace, now, PACE_FACTOR);
}

static void network_close(void *state)
{
	struct network_state *s = state;

	close(s->fd);
	free(s->interfaces);
	free(s);
}

static int network_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct network_state *s = calloc(1, sizeof *s);
	int own;

	if (s)
		s->interfaces = calloc(LINES_MAX, sizeof *s->interfaces);
	if (!s || !s->interfaces) {
		free(s);
		return error_set(why_not, "out of memory");
	}
	s->fd = own = open_of(0, &s->own);
	s->at = s->own;
	follow(s, c);
	if (s->fd < 0) {
		free(s->interfaces);
		free(s);
		return error_set(why_not,
				 "%s/self/net/dev: %s; it takes a kernel with networking, and a proc file system that "
				 "is not restricted (subset=pid or masked in a container)",
				 procfs_root(), strerror(-own));
	}
	*ret_state = s;
	return 0;
}

const struct source source_network = {
	.name = "network",
	.summary = "bytes received and sent by each network interface that the command sees",
	.open = network_open,
	.slow = network_slow,
	.close = network_close,
};
