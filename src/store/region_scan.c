/* Going through the calls of a file by windows, several threads at once. It knows neither the formats nor what is done
 * with the calls. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "store/region_parts.h"
#include "store/region_source.h"

#define WORKERS_MAX 16u

unsigned region_file_workers(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return count < 1 ? 1 : (unsigned)count < WORKERS_MAX ? (unsigned)count : WORKERS_MAX;
}

/* What all workers share. */
struct shared {
	struct region_source *source;
	const struct region_scan *scan;
	unsigned columns;
	_Atomic uint64_t next; /* window */
	uint64_t end;          /* behind the last window */
	atomic_bool stop;
	pthread_mutex_t lock;
	struct error *err; /* of the first that failed; under the lock */
	bool failed;
};

struct worker {
	struct shared *shared;
	unsigned number;
	struct region_reader *reader;
	int64_t *rows[REGION_COLUMNS];
	pthread_t thread;
	bool started;
};

static bool is_wanted(const struct region_scan *scan, size_t part)
{
	return !scan->wanted || scan->wanted[part];
}

/* The span of wanted calls in [from, to): what the worker must read at all. */
static bool wanted_span(const struct shared *s, uint64_t from, uint64_t to, uint64_t *ret_first, uint64_t *ret_end)
{
	const struct regions *r = s->source->regions;
	bool any = false;

	for (size_t i = region_part_at(r, from); i < r->part_count && r->parts[i].first < to; i++) {
		uint64_t first = r->parts[i].first, end = first + r->parts[i].count;

		if (!r->parts[i].count || !is_wanted(s->scan, i))
			continue;
		if (!any)
			*ret_first = first > from ? first : from;
		*ret_end = end < to ? end : to;
		any = true;
	}
	return any;
}

static int give_blocks(struct worker *w, uint64_t from, uint64_t to, struct error *err)
{
	const struct shared *s = w->shared;
	const struct regions *r = s->source->regions;

	for (size_t i = region_part_at(r, from); i < r->part_count && r->parts[i].first < to; i++) {
		uint64_t first = r->parts[i].first, end = first + r->parts[i].count;
		struct region_block block = {.part = i};

		if (!r->parts[i].count || !is_wanted(s->scan, i))
			continue;
		block.first = first > from ? first : from;
		block.n = (size_t)((end < to ? end : to) - block.first);
		for (unsigned c = 0; c < REGION_COLUMNS; c++)
			block.columns[c] = w->rows[c] ? w->rows[c] + (block.first - from) : NULL;
		if (s->scan->block(s->scan->context, w->number, &block, err) < 0)
			return -1;
	}
	return 0;
}

static int scan_window(struct worker *w, uint64_t index, struct error *err)
{
	const struct shared *s = w->shared;
	uint64_t window = s->source->window, from = index * window, all = s->source->regions->call_count;
	uint64_t to = all - from < window ? all : from + window, first = 0, end = 0;

	if (!wanted_span(s, from, to, &first, &end))
		return 0;
	for (unsigned c = 0; c < REGION_COLUMNS; c++)
		if (w->rows[c] && region_source_read(w->reader, (enum region_column)c, first, end - first,
						     w->rows[c], err) < 0)
			return -1;
	return give_blocks(w, first, end, err);
}

static int work(struct worker *w, struct error *err)
{
	struct shared *s = w->shared;

	if (region_source_reader(s->source, &w->reader, err) < 0)
		return -1;
	for (unsigned c = 0; c < REGION_COLUMNS; c++) {
		if (!(s->columns & 1u << c))
			continue;
		w->rows[c] = malloc(s->source->window * sizeof *w->rows[c]);
		if (!w->rows[c])
			return error_set(err, "out of memory for %" PRIu64 " calls", s->source->window);
	}
	while (!atomic_load(&s->stop)) {
		uint64_t index = atomic_fetch_add(&s->next, 1);

		if (index >= s->end)
			break;
		if (scan_window(w, index, err) < 0)
			return -1;
	}
	return 0;
}

static void *run_worker(void *context)
{
	struct worker *w = context;
	struct shared *s = w->shared;
	struct error err = {{0}};

	if (work(w, &err) < 0) {
		atomic_store(&s->stop, true);
		pthread_mutex_lock(&s->lock);
		if (!s->failed)
			error_set(s->err, "%s", err.text);
		s->failed = true;
		pthread_mutex_unlock(&s->lock);
	}
	for (unsigned c = 0; c < REGION_COLUMNS; c++)
		free(w->rows[c]);
	region_source_reader_free(w->reader);
	return NULL;
}

/* Signals are the first thread's business. Where a thread cannot be started, those that run do its work. */
static void start_workers(struct worker *workers, unsigned count)
{
	sigset_t all, mask;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	for (unsigned i = 1; i < count; i++)
		workers[i].started = pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* From the first to the last window with wanted calls: whoever goes from rank to rank does not see all parts for each.
 * False: there are none. */
static bool find_windows(const struct region_source *source, const struct region_scan *scan, uint64_t *ret_from,
			 uint64_t *ret_end)
{
	const struct region_part *parts = source->regions->parts;
	size_t first = 0, end = source->regions->part_count;

	while (first < end && (!is_wanted(scan, first) || !parts[first].count))
		first++;
	while (end > first && (!is_wanted(scan, end - 1) || !parts[end - 1].count))
		end--;
	if (first == end)
		return false;
	*ret_from = parts[first].first / source->window;
	*ret_end = (parts[end - 1].first + parts[end - 1].count - 1) / source->window + 1;
	return true;
}

int region_source_scan(struct region_source *source, const struct region_scan *scan, struct error *err)
{
	struct shared s = {.source = source, .scan = scan, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err};
	struct worker workers[WORKERS_MAX] = {{0}};
	unsigned count = scan->workers < 1 ? 1 : scan->workers < WORKERS_MAX ? scan->workers : WORKERS_MAX;
	uint64_t from;

	if (!find_windows(source, scan, &from, &s.end))
		return 0;
	s.columns = scan->columns | 1u << REGION_START | 1u << REGION_END;
	atomic_init(&s.next, from);
	count = s.end - from < count ? (unsigned)(s.end - from) : count;
	for (unsigned i = 0; i < count; i++)
		workers[i] = (struct worker){.shared = &s, .number = i};
	start_workers(workers, count);
	run_worker(&workers[0]);
	for (unsigned i = 1; i < count; i++)
		if (workers[i].started)
			pthread_join(workers[i].thread, NULL);
	return s.failed ? -1 : 0;
}
