#include "exec/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "model/mask.h"

#define COMMAND_READ 4096 /* of the command line, */
#define COMMAND_MAX 512   /* of which so much is kept */
#define STAT_TEXT 512

int scan_init(struct scan *s, int helper, struct process_table *table, struct error *err)
{
	int fd = procfs_open(".");

	if (fd < 0)
		return error_set(err, "%s: %s", procfs_root(), strerror(-fd));
	*s = (struct scan){.proc_fd = fd, .helper = helper, .table = table};
	pidset_init(&s->present);
	pidset_init(&s->judged);
	pidset_init(&s->ended);
	return 0;
}

void scan_release(struct scan *s)
{
	close(s->proc_fd);
	pidset_release(&s->present);
	pidset_release(&s->judged);
	pidset_release(&s->ended);
	free(s->undecided);
}

int scan_open_stat(int pid, char *text, struct proc_stat *ret)
{
	int fd = procfs_open("%d/stat", pid);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = procfs_read_record(fd, text, STAT_TEXT);
	if (length > 0 && proc_stat_scan(text, (size_t)length, ret))
		return fd;
	close(fd);
	return -1;
}

/* The words of a command line, which end with a zero each (text[length] is one more). NULL: out of memory. */
static char **split_words(char *text, size_t length)
{
	size_t count = 0;
	char **words;

	for (size_t at = 0; at < length; at += strlen(text + at) + 1)
		count++;
	words = calloc(count + 1, sizeof *words);
	count = 0;
	for (size_t at = 0; words && at < length; at += strlen(text + at) + 1)
		words[count++] = text + at;
	return words;
}

/* One word is perhaps a title that the process gave itself, of several words: no quotes are put around it. */
static void mask_words(struct buf *out, char **words)
{
	if (words[0] && !words[1])
		mask_text(out, words[0]);
	else
		mask_command(out, words);
}

void scan_read_command(struct process *p)
{
	char text[COMMAND_READ + 1];
	ssize_t length = procfs_read_file(text, sizeof text, "%d/cmdline", p->pid);
	CLEANUP(buf_release) struct buf masked;
	char **words;

	buf_init(&masked);
	p->command_stale = false;
	/* Of a secret that was cut short nothing tells that it is one. */
	if (length == COMMAND_READ)
		while (length > 0 && !strchr(" \t\n", text[length - 1]))
			length--;
	while (length > 0 && text[length - 1] == '\0')
		length--;
	if (length <= 0)
		return;
	text[length] = '\0';
	words = split_words(text, (size_t)length);
	if (words)
		mask_words(&masked, words);
	for (size_t i = 0; i < masked.length; i++)
		if ((unsigned char)masked.text[i] < ' ' || masked.text[i] == 0x7f)
			masked.text[i] = '?';
	/* Without memory it stays unknown, as it does where it cannot be read. */
	if (words && !masked.failed) {
		free(p->command);
		p->command = strndup(masked.text, utf8_cut(masked.text, masked.length, COMMAND_MAX));
	}
	free(words);
}

struct process *scan_add(struct scan *s, int pid, int ppid, const struct proc_stat *stat, int fd, int64_t now)
{
	struct process *p = process_add(s->table, pid, ppid, (int64_t)stat->start_ticks, now);
	size_t length = stat->comm_length;

	if (!p) {
		s->failed = true;
		close(fd);
		return NULL;
	}
	if (length >= sizeof p->comm)
		length = sizeof p->comm - 1;
	memcpy(p->comm, stat->comm, length);
	process_keep(s->table, &p->stat_fd, fd);
	scan_read_command(p);
	return p;
}

static bool look_again(const struct process *p, struct proc_stat *ret)
{
	char text[STAT_TEXT];
	ssize_t length;
	int fd;

	if (p->stat_fd >= 0) {
		length = procfs_read_record(p->stat_fd, text, sizeof text);
		return length > 0 && proc_stat_scan(text, (size_t)length, ret);
	}
	fd = scan_open_stat(p->pid, text, ret);
	if (fd < 0)
		return false;
	close(fd);
	return (int64_t)ret->start_ticks == p->start_ticks;
}

bool scan_is_there(const struct process *p)
{
	struct proc_stat stat;

	return look_again(p, &stat);
}

bool scan_runs(const struct process *p)
{
	struct proc_stat stat;

	return look_again(p, &stat) && !proc_stat_ended(&stat);
}

static bool belongs(struct scan *s, int ppid)
{
	return (s->helper > 0 && ppid == s->helper) || process_find(s->table, ppid);
}

static void add_found(struct scan *s, int pid, const struct proc_stat *stat, int fd)
{
	struct process *p = scan_add(s, pid, stat->ppid, stat, fd, s->now);

	if (p && s->added)
		s->added(s->context, p);
}

static void put_off(struct scan *s, int pid, const struct proc_stat *stat)
{
	if (s->undecided_count == s->undecided_room) {
		size_t room = s->undecided_room ? 2 * s->undecided_room : 256;
		struct undecided *undecided = reallocarray(s->undecided, room, sizeof *undecided);

		if (!undecided) {
			s->failed = true;
			return;
		}
		s->undecided = undecided;
		s->undecided_room = room;
	}
	s->undecided[s->undecided_count++] = (struct undecided){pid, stat->ppid, (int64_t)stat->start_ticks};
}

/* Of a process that is not in the table. */
static void judge(struct scan *s, int pid)
{
	char text[STAT_TEXT];
	struct proc_stat stat;
	bool was_zombie = pidset_has(&s->ended, pid);
	int fd;

	if ((was_zombie || pidset_has(&s->judged, pid)) && !s->rejudge)
		return;
	fd = scan_open_stat(pid, text, &stat);
	if (fd < 0)
		return;
	if (was_zombie && proc_stat_ended(&stat)) {
		close(fd);
		return;
	}
	pidset_remove(&s->ended, pid);
	if (belongs(s, stat.ppid)) {
		pidset_remove(&s->judged, pid);
		add_found(s, pid, &stat, fd);
		return;
	}
	close(fd);
	put_off(s, pid, &stat);
}

static bool visit(void *context, int pid)
{
	struct scan *s = context;

	if (!pidset_add(&s->present, pid))
		s->failed = true;
	if (!process_find(s->table, pid))
		judge(s, pid);
	return true;
}

/* A child may come before its parent, so the rest is gone through until nothing more is found. */
static void decide(struct scan *s)
{
	for (bool found = true; found && s->undecided_count > 0;) {
		size_t left = 0;

		found = false;
		for (size_t i = 0; i < s->undecided_count; i++) {
			struct undecided *u = &s->undecided[i];
			char text[STAT_TEXT];
			struct proc_stat stat;
			int fd;

			if (!belongs(s, u->ppid)) {
				s->undecided[left++] = *u;
				continue;
			}
			fd = scan_open_stat(u->pid, text, &stat);
			if (fd < 0)
				continue;
			if ((int64_t)stat.start_ticks != u->start_ticks) {
				close(fd);
				continue;
			}
			pidset_remove(&s->judged, u->pid);
			add_found(s, u->pid, &stat, fd);
			found = true;
		}
		s->undecided_count = left;
	}
	for (size_t i = 0; i < s->undecided_count; i++)
		pidset_add(&s->judged, s->undecided[i].pid);
	s->undecided_count = 0;
}

void scan_run(struct scan *s, int64_t now, bool rejudge)
{
	size_t known = s->table->count;

	s->now = now;
	s->rejudge = rejudge;
	pidset_clear(&s->present);
	/* A listing that broke off says nothing about who has ended. */
	if (procfs_each_pid(s->proc_fd, visit, s) < 0) {
		s->failed = true;
		return;
	}
	for (size_t i = 0; i < known; i++) {
		struct process *p = &s->table->items[i];

		if (p->alive && !pidset_has(&s->present, p->pid))
			process_died(s->table, p, now);
	}
	decide(s);
	pidset_keep_common(&s->judged, &s->present);
	pidset_keep_common(&s->ended, &s->present);
}
