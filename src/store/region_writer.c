/* Writing layout 2: gathers the calls of each column into chunks, which threads of its own compress and write; then it
 * reads them once more for the statistics of each region, since only then it knows whose they are. */
#include "store/region_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/replace.h"
#include "store/hdf5_plugin.h"
#include "store/region_plugin.h"
#include "store/region_source.h"
#include "store/region_summaries.h"

#define WORKERS_MAX 8u
#define BUFFERS_MAX (REGION_COLUMNS + 2 * WORKERS_MAX)

struct job {
	enum region_column column;
	uint64_t index;
	int64_t *rows;
};

struct region_writer {
	struct replacement file;
	const struct region_plugin *plugin;
	struct region_h5_out *out;
	unsigned columns;
	uint64_t rows; /* of each column, so far */
	int64_t *filling[REGION_COLUMNS];
	/* Between the caller and the threads. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job jobs[BUFFERS_MAX];
	size_t job_count, busy;
	int64_t *free_buffers[BUFFERS_MAX];
	size_t free_count, buffer_count;
	bool ending, failed;
	struct error trouble; /* of the first chunk that failed */
	pthread_t threads[WORKERS_MAX];
	unsigned thread_count;
};

/* Writes a chunk and gives its buffer back. The lock is held before and after, not meanwhile. */
static void do_job(struct region_writer *w)
{
	struct job job = w->jobs[0];
	struct size_signal size_signal;
	struct error err;
	int result = 0;

	memmove(w->jobs, w->jobs + 1, --w->job_count * sizeof *w->jobs);
	w->busy++;
	if (!w->failed) {
		pthread_mutex_unlock(&w->lock);
		size_signal_hold(&size_signal);
		result = w->plugin->write(w->out, job.column, job.index, job.rows, &err);
		size_signal_release(&size_signal);
		pthread_mutex_lock(&w->lock);
	}
	if (result < 0 && !w->failed) {
		w->failed = true;
		w->trouble = err;
	}
	w->busy--;
	w->free_buffers[w->free_count++] = job.rows;
	pthread_cond_broadcast(&w->changed);
}

static void *work(void *context)
{
	struct region_writer *w = context;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->job_count && !w->ending)
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->job_count)
			break;
		do_job(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* With the first chunk that is full: a short file needs none. Signals are not for these
 * threads. Where none can be started, the caller writes. */
static void start_threads(struct region_writer *w)
{
	unsigned count = region_file_workers();
	sigset_t all, mask;

	count = count < WORKERS_MAX ? count : WORKERS_MAX;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	while (w->thread_count < count && pthread_create(&w->threads[w->thread_count], NULL, work, w) == 0)
		w->thread_count++;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void stop_threads(struct region_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->thread_count; i++)
		pthread_join(w->threads[i], NULL);
	w->thread_count = 0;
}

/* A buffer for a chunk; waits for one where the threads have all. NULL where there is no memory. */
static int64_t *take_buffer(struct region_writer *w)
{
	int64_t *buffer = NULL;

	pthread_mutex_lock(&w->lock);
	while (!w->free_count && w->buffer_count == BUFFERS_MAX) {
		if (w->thread_count == 0 && w->job_count)
			do_job(w);
		else
			pthread_cond_wait(&w->changed, &w->lock);
	}
	if (w->free_count)
		buffer = w->free_buffers[--w->free_count];
	else
		w->buffer_count++;
	pthread_mutex_unlock(&w->lock);
	return buffer ? buffer : malloc(w->plugin->chunk * sizeof *buffer);
}

static void submit(struct region_writer *w, enum region_column column, uint64_t index)
{
	pthread_mutex_lock(&w->lock);
	w->jobs[w->job_count++] = (struct job){column, index, w->filling[column]};
	w->filling[column] = NULL;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Ends when all chunks are written: those that nobody has taken, by this thread. */
static int drain(struct region_writer *w, struct error *err)
{
	pthread_mutex_lock(&w->lock);
	while (w->job_count || w->busy) {
		if (w->job_count)
			do_job(w);
		else
			pthread_cond_wait(&w->changed, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return w->failed ? error_set(err, "%s", w->trouble.text) : 0;
}

static const struct region_plugin *load(char *version, size_t size, struct error *err)
{
	const struct region_plugin *plugin = hdf5_plugin_table(REGION_PLUGIN_SYMBOL, REGION_PLUGIN_VERSION, err);

	return plugin && plugin->start(version, size, err) == 0 ? plugin : NULL;
}

int region_writer_available(char *version, size_t size, struct error *err)
{
	return load(version, size, err) ? 0 : -1;
}

static int open_out(struct region_writer *w, const char *path, struct error *err)
{
	struct size_signal size_signal;
	char version[64];
	int result;

	w->plugin = load(version, sizeof version, err);
	if (!w->plugin || replacement_open(&w->file, path, err) < 0)
		return -1;
	if (!w->file.beside)
		return error_set(err, "%s: a file of regions cannot be written to what is no regular file", path);
	size_signal_hold(&size_signal);
	result = w->plugin->create(w->file.beside, w->columns, &w->out, err);
	size_signal_release(&size_signal);
	return result < 0 ? error_prefix(err, "%.250s", path) : 0;
}

int region_writer_new(const char *path, unsigned columns, struct region_writer **ret, struct error *err)
{
	CLEANUP(region_writer_cleanup) struct region_writer *w = calloc(1, sizeof *w);

	if (!w)
		return error_set(err, "%s: out of memory", path);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	replacement_init(&w->file);
	w->columns = (columns & ((1u << REGION_COLUMNS) - 1)) | 1u << REGION_START | 1u << REGION_END;
	if (open_out(w, path, err) < 0)
		return -1;
	*ret = w;
	w = NULL;
	return 0;
}

void region_writer_free(struct region_writer *w)
{
	struct size_signal size_signal;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->failed = true; /* what waits need not be written */
	pthread_mutex_unlock(&w->lock);
	stop_threads(w);
	size_signal_hold(&size_signal);
	if (w->out)
		w->plugin->abandon(w->out);
	size_signal_release(&size_signal);
	while (w->job_count)
		free(w->jobs[--w->job_count].rows);
	while (w->free_count)
		free(w->free_buffers[--w->free_count]);
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		free(w->filling[i]);
	replacement_release(&w->file);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void region_writer_cleanup(struct region_writer **w)
{
	region_writer_free(*w);
}

static int add_some(struct region_writer *w, const int64_t *const columns[REGION_COLUMNS], size_t at, size_t n,
		    struct error *err)
{
	size_t chunk = w->plugin->chunk, filled = w->rows % chunk;

	for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
		if (!(w->columns & 1u << c))
			continue;
		if (!w->filling[c])
			w->filling[c] = take_buffer(w);
		if (!w->filling[c])
			return error_set(err, "%.250s: out of memory for %zu calls", w->file.path, chunk);
		memcpy(w->filling[c] + filled, columns[c] + at, n * sizeof *columns[c]);
		if (filled + n == chunk)
			submit(w, c, w->rows / chunk);
	}
	w->rows += n;
	return 0;
}

int region_writer_add(struct region_writer *w, const int64_t *const columns[REGION_COLUMNS], size_t n,
		      struct error *err)
{
	bool failed;

	for (size_t at = 0; at < n;) {
		size_t left = w->plugin->chunk - w->rows % w->plugin->chunk, step = n - at < left ? n - at : left;

		if (step == left && w->thread_count == 0)
			start_threads(w);
		if (add_some(w, columns, at, step, err) < 0)
			return -1;
		at += step;
	}
	pthread_mutex_lock(&w->lock);
	failed = w->failed;
	pthread_mutex_unlock(&w->lock);
	return failed ? error_set(err, "%.250s: %s", w->file.path, w->trouble.text) : 0;
}

/* The last chunk of each column, with zeros behind its end. */
static int write_rest(struct region_writer *w, struct error *err)
{
	size_t chunk = w->plugin->chunk, filled = w->rows % chunk;

	for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
		if (!w->filling[c])
			continue;
		memset(w->filling[c] + filled, 0, (chunk - filled) * sizeof *w->filling[c]);
		submit(w, c, w->rows / chunk);
	}
	return drain(w, err);
}

static int check_parts(const struct region_writer *w, const struct regions *r, struct error *err)
{
	uint64_t next = 0;

	for (size_t i = 0; i < r->part_count; i++) {
		if (r->parts[i].first != next || r->parts[i].region >= r->name_count)
			return error_set(err, "part %zu begins at call %" PRIu64
					      ", and the one before it ends at %" PRIu64, i, r->parts[i].first, next);
		next += r->parts[i].count;
	}
	return next == w->rows ? 0
			       : error_set(err, "%" PRIu64 " calls were written, and the parts have %" PRIu64, w->rows,
					   next);
}

static uint64_t count_summarised(const struct regions *r)
{
	uint64_t count = 0;

	for (size_t i = 0; i < r->part_count; i++)
		count += r->parts[i].summarised;
	return count;
}

/* What those who read it would refuse is not written. */
static int check_limits(const struct regions *r, struct error *err)
{
	uint64_t summarised = count_summarised(r);
	const struct {
		const char *what;
		uint64_t count, limit;
	} limits[] = {
		{"names of regions", r->name_count, REGION_NAMES_MAX},
		{"ranks", r->rank_count, REGION_ROWS_MAX},
		{"notes", r->note_count, REGION_ROWS_MAX},
		{"kinds of wrong use of ranks", r->trouble_count, REGION_ROWS_MAX},
		{"regions of ranks whose calls were only added up", summarised, REGION_SUMMARISED_MAX},
		{"facts about the run", r->fact_count, REGION_FACTS_MAX},
	};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].count > limits[i].limit)
			return error_set(err, "%" PRIu64 " %s are more than the %" PRIu64 " that a file can hold",
					 limits[i].count, limits[i].what, limits[i].limit);
	return 0;
}

/* Reads what was written: past the library, which has it open. */
static int read_written(struct region_writer *w, struct region_source *source, struct region_summary **ret,
			struct error *err)
{
	if (w->plugin->written(w->out, w->rows, &source->stored, err) < 0)
		return -1;
	if (region_stored_needs_fence(&source->stored, source->regions))
		return error_set(err, "what was written does not lie in it as it should");
	source->window = w->plugin->chunk;
	source->fd = open(w->file.beside, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0)
		return error_set(err, "what was written cannot be read: %s", strerror(errno));
	return region_summaries(source, ret, err);
}

static int summarise(struct region_writer *w, const struct regions *r, struct region_summary **ret, struct error *err)
{
	struct regions view = *r; /* of what was added, where its caller has not said so */
	struct region_source source;
	int result;

	view.layout = 2;
	view.call_count = w->rows;
	view.columns = w->columns;
	region_source_init(&source, &view);
	result = read_written(w, &source, ret, err);
	region_source_release(&source);
	return result;
}

static int commit(struct region_writer *w, const struct regions *r, struct error *err)
{
	CLEANUP(free_cleanup) struct region_summary *summaries = NULL;
	struct region_h5_out *out;

	if (check_parts(w, r, err) < 0 || check_limits(r, err) < 0 || write_rest(w, err) < 0 ||
	    summarise(w, r, &summaries, err) < 0)
		return -1;
	out = w->out;
	w->out = NULL;
	if (w->plugin->finish(out, r, summaries, err) < 0)
		return -1;
	/* Renamed only when it is on the disk: a crash must not leave half a file under the name of a good one. */
	return fsync(fileno(w->file.out)) < 0 ? error_set(err, "it cannot be written: %s", strerror(errno)) : 0;
}

int region_writer_commit(struct region_writer *w, const struct regions *r, struct error *err)
{
	struct size_signal size_signal;
	int result;

	size_signal_hold(&size_signal);
	result = commit(w, r, err);
	size_signal_release(&size_signal);
	if (result < 0)
		return error_prefix(err, "%.250s", w->file.path);
	return replacement_commit(&w->file, err);
}
