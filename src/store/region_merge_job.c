/* Where a merge finds its recordings, and which rank each process is of. */
#include "store/region_merging.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define RANK_FOLDER_PREFIX "rank-"
#define RUN_FOLDER "segments/regions" /* where a run directory has them */
#define PARENTS_MAX 1000              /* forks of forks that are followed to learn a rank */

/* The folder itself, and where a run directory has its recordings. */
static int search(struct region_job *j, const char *folder, struct error *err)
{
	CLEANUP(free_cleanup) char *below = fs_join(folder, RUN_FOLDER);

	if (!below)
		return error_set(err, "%s: out of memory", folder);
	if (region_job_add_folder(j, folder, err) < 0)
		return -1;
	return fs_is_dir(below) ? region_job_add_folder(j, below, err) : 0;
}

static int search_ranks(struct region_job *j, const char *folder, struct error *err)
{
	DIR *open = opendir(folder);
	struct dirent *entry;
	int failed = 0;

	if (!open)
		return error_set(err, "%s: %s", folder, strerror(errno));
	while (failed == 0 && (entry = readdir(open))) {
		CLEANUP(free_cleanup) char *below = NULL;

		if (strncmp(entry->d_name, RANK_FOLDER_PREFIX, strlen(RANK_FOLDER_PREFIX)) != 0)
			continue;
		below = fs_join(folder, entry->d_name);
		if (!below)
			failed = error_set(err, "%s: out of memory", folder);
		else if (fs_is_dir(below))
			failed = search(j, below, err);
	}
	closedir(open);
	return failed;
}

/* The job's processes by number, for finding parents. */
static int by_pid(const void *a, const void *b)
{
	const struct region_process *one = &(*(const struct region_log *const *)a)->process;
	const struct region_process *other = &(*(const struct region_log *const *)b)->process;
	int boots = strcmp(one->boot_id, other->boot_id);

	if (boots)
		return boots;
	if (one->pid != other->pid)
		return (one->pid > other->pid) - (one->pid < other->pid);
	return (one->mono_ns > other->mono_ns) - (one->mono_ns < other->mono_ns);
}

/* The last process of the parent's number that began no later: numbers come again. A program that executes another one
 * keeps its number, so it is the parent of what it becomes. NULL: it recorded nothing. */
static const struct region_log *parent_of(const struct region_log *const *sorted, size_t count,
					  const struct region_log *l, bool same)
{
	struct region_log key = {.process = l->process};
	const struct region_log *sought = &key;
	size_t low = 0, high = count;

	if (!same)
		key.process.pid = l->process.ppid;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_pid(&sorted[middle], &sought) < (same ? 0 : 1))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	sought = sorted[low - 1];
	return sought != l && sought->process.pid == key.process.pid &&
			       strcmp(sought->process.boot_id, key.process.boot_id) == 0
		       ? sought
		       : NULL;
}

/* What the program said counts most, also that which a process was forked from; then the environment. */
static uint32_t rank_of(const struct region_log *const *sorted, size_t count, const struct region_log *l)
{
	const struct region_log *at = l, *environment = NULL;

	for (int i = 0; at && i < PARENTS_MAX; i++) {
		const struct region_log *before = parent_of(sorted, count, at, true);

		if (at->ranked && at->rank.source == 2)
			return at->rank.rank < 0 ? 0 : (uint32_t)at->rank.rank;
		if (at->ranked && at->rank.source == 1 && !environment)
			environment = at;
		at = before ? before : parent_of(sorted, count, at, false);
	}
	return environment && environment->rank.rank >= 0 ? (uint32_t)environment->rank.rank : 0;
}

static int by_rank(const void *a, const void *b, void *context)
{
	const struct merging *m = context;
	size_t one = *(const size_t *)a, other = *(const size_t *)b;

	if (m->ranks[one] != m->ranks[other])
		return (m->ranks[one] > m->ranks[other]) - (m->ranks[one] < m->ranks[other]);
	return (one > other) - (one < other); /* the job is in the order of starts */
}

int merge_find_ranks(struct merging *m, struct error *err)
{
	size_t count = m->job.count;
	CLEANUP(free_cleanup) const struct region_log **sorted = calloc(count, sizeof *sorted);

	m->ranks = calloc(count, sizeof *m->ranks);
	m->order = calloc(count, sizeof *m->order);
	if (!sorted || !m->ranks || !m->order)
		return error_set(err, "out of memory for %zu processes", count);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &m->job.logs[i];
	qsort(sorted, count, sizeof *sorted, by_pid);
	for (size_t i = 0; i < count; i++) {
		m->ranks[i] = rank_of(sorted, count, &m->job.logs[i]);
		m->order[i] = i;
	}
	qsort_r(m->order, count, sizeof *m->order, by_rank, m);
	return region_machines_find(&m->job, &m->job.logs[m->order[0]], &m->machines, err);
}

/* How much work there is, for progress: each event is read twice, and its row written. Files that cannot be opened have
 * their note later. */
static void measure(struct merging *m)
{
	for (size_t i = 0; i < m->job.count; i++) {
		const struct region_log *l = &m->job.logs[i];

		for (size_t k = 0; k < l->file_count; k++) {
			CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
			CLEANUP(free_cleanup) char *path = region_log_file_path(l, l->files[k]);

			if (path && region_calls_open(path, &c, NULL) == 0)
				m->all += 3 * region_calls_facts(c)->events;
		}
	}
}

int merge_find_processes(struct merging *m, struct error *err)
{
	const struct region_merge_options *o = m->options;

	for (size_t i = 0; i < o->folder_count; i++)
		if (search(&m->job, o->folders[i], err) < 0 || search_ranks(&m->job, o->folders[i], err) < 0)
			return -1;
	region_job_finish(&m->job);
	measure(m);
	return 0;
}
