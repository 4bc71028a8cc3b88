#include "source/resident.h"

#include <unistd.h>

#include "base/procfs.h"
#include "source/reading.h"

/* Pages in use, and how many of them belong to files or shared memory. */
static bool scan_statm(const char *text, size_t length, uint64_t *ret_resident, uint64_t *ret_shared)
{
	const char *at = text, *end = text + length;

	return scan_words(&at, end, 1) && scan_u64(&at, end, ret_resident) && scan_u64(&at, end, ret_shared) &&
	       at < end;
}

/* A search for a thread that still has the process's memory. */
struct thread_search {
	int pid, fd, tries;
};

static bool try_thread(void *context, int tid)
{
	struct thread_search *search = context;
	char text[128];
	uint64_t resident, shared;
	ssize_t length;

	search->fd = procfs_open("%d/task/%d/statm", search->pid, tid);
	if (search->fd < 0)
		return --search->tries > 0;
	length = procfs_read_record(search->fd, text, sizeof text);
	if (length > 0 && scan_statm(text, (size_t)length, &resident, &shared) && resident > 0)
		return false;
	close(search->fd);
	search->fd = -1;
	return --search->tries > 0;
}

void resident_through_a_thread(struct source_context *c, struct process *p)
{
	struct thread_search search = {.pid = p->pid, .fd = -1, .tries = 8};
	int task = procfs_open("%d/task", p->pid);

	if (task < 0)
		return;
	if (procfs_each_pid(task, try_thread, &search) < 0 && search.fd >= 0) {
		close(search.fd);
		search.fd = -1;
	}
	close(task);
	if (search.fd >= 0)
		process_keep(c->processes, &p->statm_fd, search.fd);
}

static bool to_bytes(uint64_t pages, int64_t page, int64_t *ret)
{
	return pages <= INT64_MAX && !__builtin_mul_overflow((int64_t)pages, page, ret);
}

enum resident resident_read(struct source_context *c, struct process *p, int64_t page, int64_t now)
{
	char text[128];
	uint64_t resident, shared;
	int64_t rss, anon;
	ssize_t length = living_read(c, p, &p->statm_fd, "statm", text, sizeof text);

	if (length < 0 || (length > 0 && !scan_statm(text, (size_t)length, &resident, &shared)))
		return RESIDENT_UNREAD;
	if (length == 0) {
		living_gone(c, p, now);
		return RESIDENT_GONE;
	}
	if (resident == 0)
		return RESIDENT_NONE;
	if (!to_bytes(resident, page, &rss) || !to_bytes(resident > shared ? resident - shared : 0, page, &anon))
		return RESIDENT_UNREAD;
	p->rss = rss;
	p->anon = anon;
	if (rss > p->rss_peak)
		p->rss_peak = rss;
	if (anon > p->anon_peak)
		p->anon_peak = anon;
	p->statm_read_at = now;
	return RESIDENT_READ;
}
