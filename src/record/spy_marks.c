/* The kernel's own peaks of the resident memory (VmHWM), and the swap: from /proc/PID/status, as seldom as it costs.
 *
 * A mark belongs to one image of a program, and to all of its life. So it tells of the watch only where it rises, or
 * where the image began during the watch. */
#include "record/spy_state.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

/* At most 0.25% of a core, ... */
#define STATUS_FACTOR 400
/* ... and where one process's takes its usual 10 to 30 us, a tenth of what its ticks of 10 ms take. So old can be the
 * last mark of a process that ended by itself. */
#define STATUS_EVERY_NS (100 * NS_PER_MS)
#define SMALL_FALL (1 << 20)

void spy_marks_begin(struct spy *s)
{
	s->marks = (struct spy_marks){.begin = -1, .last = -1, .base = -1, .proven = -1, .status_fd = -1};
}

void spy_marks_end(struct spy *s)
{
	if (s->marks.status_fd >= 0)
		close(s->marks.status_fd);
}

static void read_image(pid_t pid, struct spy_image *ret)
{
	ret->length = procfs_read_file(ret->auxv, sizeof ret->auxv, "%d/auxv", (int)pid);
}

/* Whether the mark began anew: by exec, or because somebody reset it. Where no images can be compared, only a fall
 * tells; a small one is none, for the kernel counts pages a few at a time. */
static bool was_replaced(struct spy *s, int64_t mark, const struct process *p)
{
	const struct spy_image *old = &s->marks.image;
	struct spy_image now;

	if (mark + mark / 50 + SMALL_FALL < s->marks.last)
		return true;
	/* Three system calls: only at the end, where it tells as much. */
	if (old->length <= 0 || !s->context.exact)
		return false;
	read_image(p->pid, &now);
	return now.length > 0 && (now.length != old->length || memcmp(now.auxv, old->auxv, (size_t)now.length) != 0);
}

/* Of a watch of one process: what its mark says. */
static void judge(struct spy *s, const struct process *p, int64_t mark)
{
	struct spy_marks *m = &s->marks;

	if (m->last < 0) {
		m->base = mark;
		read_image(p->pid, &m->image);
	} else if (was_replaced(s, mark, p)) {
		m->replaced = true;
		m->base = 0;
		read_image(p->pid, &m->image);
	}
	if (mark > m->base && mark > m->proven)
		m->proven = mark;
}

void spy_marks_ended(void *context, const struct process *p)
{
	struct spy *s = context;

	s->marks.ended += p->high_water > p->rss_peak ? p->high_water : p->rss_peak > 0 ? p->rss_peak : 0;
}

/* Of the process itself by a kept descriptor, which is half the cost. */
static ssize_t read_text(struct spy *s, const struct process *p, char *text, size_t size)
{
	struct spy_marks *m = &s->marks;

	if (p->pid != s->o.pid)
		return living_read_once(p, "status", text, size);
	if (m->status_fd < 0)
		m->status_fd = procfs_open("%d/status", p->pid);
	return m->status_fd < 0 ? m->status_fd : procfs_read_record(m->status_fd, text, size);
}

enum { SWAP, MARK, KEYS };

static size_t scan(const char *text, ssize_t length, struct scan_key *keys)
{
	return length > 0 ? scan_keys(text, (size_t)length, keys, KEYS) : 0;
}

/* A search for a thread that still has the process's memory. */
struct thread_search {
	struct scan_key *keys;
	int pid, tries;
	bool found;
};

static bool try_thread(void *context, int tid)
{
	struct thread_search *search = context;
	char text[4096];

	search->found = scan(text, procfs_read_file(text, sizeof text, "%d/task/%d/status", search->pid, tid),
			     search->keys) > 0;
	return !search->found && --search->tries > 0;
}

/* Where the first thread has ended, the others tell of the memory that it had, too. */
static bool scan_threads(const struct process *p, struct scan_key *keys)
{
	struct thread_search search = {.keys = keys, .pid = p->pid, .tries = 8};
	int task = procfs_open("%d/task", p->pid);

	if (task < 0)
		return false;
	(void)procfs_each_pid(task, try_thread, &search);
	close(task);
	return search.found;
}

/* Adds its swap to *swap, its mark to *sum. */
static void read_status(struct spy *s, struct process *p, int64_t *swap, int64_t *sum)
{
	struct scan_key keys[KEYS] = {{"VmSwap:"}, {"VmHWM:"}};
	char text[4096];

	/* A process that has ended has a status without these lines. */
	if (scan(text, read_text(s, p, text, sizeof text), keys) == 0 && !scan_threads(p, keys))
		return;
	if (keys[SWAP].found)
		*swap = (*swap < 0 ? 0 : *swap) + 1024 * (int64_t)keys[SWAP].value;
	if (!keys[MARK].found)
		return;
	p->high_water = 1024 * (int64_t)keys[MARK].value;
	*sum = (*sum < 0 ? 0 : *sum) + p->high_water;
	if (s->processes.seen == 1)
		judge(s, p, p->high_water);
}

int64_t spy_marks_read(struct spy *s, int64_t now)
{
	struct spy_marks *m = &s->marks;
	int64_t swap = -1, sum = -1;

	if (!pace_due(&m->pace, &s->context, now))
		return -1;
	for (size_t i = 0; i < s->processes.count; i++)
		if (s->processes.items[i].alive)
			read_status(s, &s->processes.items[i], &swap, &sum);
	pace_done(&m->pace, now, STATUS_FACTOR);
	pace_at_least(&m->pace, now, STATUS_EVERY_NS);
	if (sum < 0)
		return swap;
	if (m->begin < 0)
		m->begin = sum;
	m->last = sum;
	m->read_at = now;
	return swap;
}
