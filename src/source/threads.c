#include "source/threads.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"

#define KNOWN_MAX 65536 /* past so many living threads the sums miss some */

void thread_waits_init(struct thread_waits *w)
{
	*w = (struct thread_waits){0};
}

void thread_waits_release(struct thread_waits *w)
{
	free(w->items);
	thread_waits_init(w);
}

static struct thread_known *slot_of(struct thread_known *items, size_t room, int tid)
{
	size_t at = ((uint32_t)tid * UINT32_C(2654435769) >> 7) & (room - 1);

	while (items[at].tid && items[at].tid != tid)
		at = (at + 1) & (room - 1);
	return &items[at];
}

/* A visit that is spread over several calls may miss a thread when others end meanwhile: it takes two to be sure. */
static bool may_live(const struct thread_known *known, struct process_table *processes)
{
	const struct process *p = known->tid ? process_find(processes, known->pid) : NULL;

	return p && known->visit + 2 > p->waits_visits;
}

/* A new table without those that have ended. */
static int rebuild(struct thread_waits *w, struct process_table *processes)
{
	size_t living = 0, room = 256;
	struct thread_known *items;

	for (size_t i = 0; i < w->room; i++)
		living += may_live(&w->items[i], processes);
	if (living >= KNOWN_MAX)
		return -1;
	while (room < 4 * living)
		room *= 2;
	items = calloc(room, sizeof *items);
	if (!items)
		return -1;
	for (size_t i = 0; i < w->room; i++)
		if (may_live(&w->items[i], processes))
			*slot_of(items, room, w->items[i].tid) = w->items[i];
	free(w->items);
	w->items = items;
	w->room = room;
	w->count = living;
	return 0;
}

/* What all functions below need of a visit to one process. */
struct visit {
	struct thread_waits *w;
	struct process_table *processes;
	const struct process *p;
	int task_fd;
	size_t skip, listed, visited, room; /* threads to pass over; listed, visited so far; visited at most */
};

static void add_reading(struct visit *v, int tid, int64_t wait_ns, int64_t slices)
{
	struct thread_waits *w = v->w;
	struct thread_known *known;

	if (2 * (w->count + 1) >= w->room && rebuild(w, v->processes) < 0)
		return;
	known = slot_of(w->items, w->room, tid);
	w->count += known->tid == 0;
	/* Fewer slices than before, or another process: the thread's id has been used again. */
	if (known->tid == 0 || known->pid != v->p->pid || slices < known->slices)
		*known = (struct thread_known){.tid = tid, .pid = v->p->pid};
	w->wait_ns += wait_ns > known->wait_ns ? wait_ns - known->wait_ns : 0;
	w->slices += slices - known->slices;
	known->wait_ns = wait_ns;
	known->slices = slices;
	known->visit = v->p->waits_visits;
}

static void read_thread(struct visit *v, int tid, int fd)
{
	char text[128];
	ssize_t length = fd < 0 ? fd : procfs_read_record(fd, text, sizeof text);
	const char *at = text;
	uint64_t on_cpu, waited, slices;

	if (fd >= 0)
		close(fd);
	if (length > 0 && scan_u64(&at, text + length, &on_cpu) && scan_u64(&at, text + length, &waited) &&
	    scan_u64(&at, text + length, &slices) && waited <= INT64_MAX && slices <= INT64_MAX)
		add_reading(v, tid, (int64_t)waited, (int64_t)slices);
}

/* "TID/schedstat", without snprintf's cost: there may be hundreds of threads. */
static void schedstat_path(char path[32], int tid)
{
	char digits[12];
	size_t count = 0, length = 0;

	for (; tid > 0; tid /= 10)
		digits[count++] = (char)('0' + tid % 10);
	while (count > 0)
		path[length++] = digits[--count];
	memcpy(path + length, "/schedstat", sizeof "/schedstat");
}

static bool visit_thread(void *context, int tid)
{
	struct visit *v = context;
	char path[32];

	if (v->listed++ < v->skip)
		return true;
	if (v->visited == v->room)
		return false;
	schedstat_path(path, tid);
	read_thread(v, tid, openat(v->task_fd, path, O_RDONLY | O_CLOEXEC));
	v->visited++;
	return true;
}

/* Returns how many threads it has visited; w->thread_at is 0 where these were the last ones. */
static size_t visit_process(struct visit *v)
{
	const struct process *p = v->p;

	v->skip = v->w->thread_at;
	v->w->thread_at = 0;
	if (p->threads == 1) {
		read_thread(v, p->pid, procfs_open("%d/schedstat", p->pid));
		return 1;
	}
	v->task_fd = procfs_open("%d/task", p->pid);
	if (v->task_fd < 0)
		return 1;
	/* Where the folder cannot be listed any more, the process has ended, as its stat will say next. */
	if (procfs_each_pid(v->task_fd, visit_thread, v) == 0 && v->visited == v->room)
		v->w->thread_at = v->skip + v->visited;
	close(v->task_fd);
	return v->visited;
}

void thread_waits_read(struct thread_waits *w, struct process_table *processes)
{
	size_t visited = 0;

	for (size_t turns = 0; turns < processes->count && visited < THREADS_PER_CALL; turns++) {
		struct process *p;

		if (w->process_at >= processes->count) {
			w->process_at = 0;
			w->thread_at = 0;
		}
		p = &processes->items[w->process_at];
		/* A thread that waits is charged when it gets its CPU, so without CPU time nothing has changed. */
		if (p->alive && (p->clock_ns < 0 || p->clock_ns != p->clock_at_waits || w->thread_at > 0)) {
			struct visit v = {.w = w, .processes = processes, .p = p, .room = THREADS_PER_CALL - visited};
			int64_t clock_ns = p->clock_ns;

			visited += visit_process(&v);
			if (w->thread_at > 0)
				return;
			p->clock_at_waits = clock_ns;
			p->waits_visits++;
		}
		w->process_at++;
	}
}
