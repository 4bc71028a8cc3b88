#include "record/perf_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "record/id_map.h"

/* Fewer periods than these may pass without a sample, or with less than half of them, by chance; less time is not worth
 * a line. */
#define PERIODS_WITHOUT 12
#define PERIODS_HALF 60
#define TIME_AT_LEAST (20 * NS_PER_MS)

struct account {
	int pid;
	int64_t start_ticks; /* -1: only samples told of it so far */
	int64_t used;        /* CPU time that could have been sampled; ns */
	uint64_t weight;
	bool looked, gained; /* its program was looked at; running it gives privileges */
	char name[64];
};

struct perf_account {
	struct id_map by_pid;
	int64_t period;
	bool kernel;
};

struct perf_account *perf_account_new(int64_t period, bool kernel)
{
	struct perf_account *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	id_map_init(&a->by_pid);
	a->period = period;
	a->kernel = kernel;
	return a;
}

void perf_account_free(struct perf_account *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->by_pid.room; i++)
		free(a->by_pid.slots[i].value);
	id_map_release(&a->by_pid);
	free(a);
}

static struct account *account_of(struct perf_account *a, int pid)
{
	struct account *found = id_map_find(&a->by_pid, pid);

	if (found)
		return found;
	found = calloc(1, sizeof *found);
	if (!found)
		return NULL;
	found->pid = pid;
	found->start_ticks = -1;
	if (!id_map_set(&a->by_pid, pid, found)) {
		free(found);
		return NULL;
	}
	return found;
}

void perf_account_sampled(struct perf_account *a, int pid, uint32_t weight)
{
	struct account *of = account_of(a, pid);

	if (of)
		of->weight += weight;
}

/* CPU time without samples, where that is so much that it cannot be chance; else 0. */
static int64_t missing(const struct perf_account *a, const struct account *of)
{
	int64_t sampled = (int64_t)of->weight * a->period, lacks = of->used - sampled;

	if (lacks < TIME_AT_LEAST || lacks < PERIODS_WITHOUT * a->period)
		return 0;
	return !of->weight || (lacks > of->used / 2 && of->used > PERIODS_HALF * a->period) ? lacks : 0;
}

static void tell(struct perf_account *a, const struct account *of, struct samples_writer *writer)
{
	int64_t lacks = missing(a, of);

	if (lacks)
		samples_writer_unsampled(writer, of->pid, lacks, of->name,
					 of->gained ? "it runs a set-user-id or set-group-id program, at whose exec "
						      "the kernel ends perf's sampling"
						    : "the kernel gave no samples of it, or they were lost");
}

static void look_at_program(struct account *of)
{
	char path[64];
	struct stat program;

	snprintf(path, sizeof path, "%s/%d/exe", procfs_root(), of->pid);
	of->looked = stat(path, &program) == 0;
	of->gained = of->looked && program.st_mode & (S_ISUID | S_ISGID);
}

static void update_one(struct perf_account *a, const struct process *p, struct samples_writer *writer)
{
	struct account *of = account_of(a, p->pid);
	int64_t used = 0;

	if (!of)
		return;
	if (of->start_ticks >= 0 && of->start_ticks != p->start_ticks) { /* the pid is used again */
		tell(a, of, writer);
		*of = (struct account){.pid = p->pid};
	}
	of->start_ticks = p->start_ticks;
	if (p->user_ns > 0)
		used = p->user_ns;
	if (a->kernel && p->system_ns > 0)
		used += p->system_ns;
	if (used > of->used)
		of->used = used;
	snprintf(of->name, sizeof of->name, "%s", p->comm);
	if (p->alive && !of->looked && missing(a, of))
		look_at_program(of);
}

void perf_account_update(struct perf_account *a, const struct process_table *table, struct samples_writer *writer)
{
	for (size_t i = 0; i < table->count; i++)
		update_one(a, &table->items[i], writer);
}

void perf_account_finish(struct perf_account *a, struct samples_writer *writer)
{
	for (size_t i = 0; i < a->by_pid.room; i++)
		if (a->by_pid.slots[i].value)
			tell(a, a->by_pid.slots[i].value, writer);
}
