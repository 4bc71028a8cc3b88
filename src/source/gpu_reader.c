#include "source/gpu_reader.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "source/source.h"

#define FREE_PATIENCE_NS (2 * NS_PER_S)
#define PROCESSES_EVERY_NS NS_PER_S /* the list is by far the dearest question */
/* The thread that reads PCIe rests for so many times the CPU time that it used, but no longer than a second. */
#define PCIE_REST 250
#define PCIE_REST_MAX_NS NS_PER_S

/* Of the threads alone, but for `name`, which is set before the reader is handed out. */
struct gpu {
	nvml_device device; /* NULL: it gave no handle */
	char name[NVML_NAME_SIZE];
	bool refused[NVML_QUESTIONS]; /* each by the one thread that asks it */
	bool processes_refused;
	int64_t processes_at;
	bool lost; /* under the lock: both threads ask */
};

struct gpu_reader {
	struct nvml nvml;
	struct gpu gpus[GPUS_MAX];
	struct gpu_reading scratch[GPUS_MAX]; /* of the quick thread */
	size_t count;

	pthread_mutex_t lock; /* of all below, and of gpu.lost */
	pthread_cond_t wake;  /* for the threads: something is asked, or stop */
	pthread_cond_t news;  /* for the owner: started, read, finished */
	struct gpu_reading latest[GPUS_MAX];
	bool fresh;
	bool started, initialised;
	int start_result;
	struct error why_not;
	bool stop;
	uint64_t asked, answered;
	int64_t asked_at; /* when the first question came that is not answered yet */
	int64_t cost;
	unsigned working; /* threads that may still call the library */
	bool finished;
	unsigned holders; /* threads and owner: the last one frees */
};

static void set_deadline(struct timespec *at, int64_t wait_ns)
{
	int64_t then = clock_mono_ns() + wait_ns;

	*at = (struct timespec){.tv_sec = then / NS_PER_S, .tv_nsec = then % NS_PER_S};
}

static void drop(struct gpu_reader *r)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	last = --r->holders == 0;
	pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	pthread_cond_destroy(&r->wake);
	pthread_cond_destroy(&r->news);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* The end of a thread; the last one closes the library. */
static void leave(struct gpu_reader *r)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	last = --r->working == 0;
	pthread_mutex_unlock(&r->lock);
	if (last && r->initialised)
		r->nvml.shutdown();
	if (last) {
		pthread_mutex_lock(&r->lock);
		r->finished = true;
		pthread_cond_broadcast(&r->news);
		pthread_mutex_unlock(&r->lock);
	}
	drop(r);
}

static bool is_lost(struct gpu_reader *r, const struct gpu *gpu)
{
	bool lost;

	pthread_mutex_lock(&r->lock);
	lost = gpu->lost;
	pthread_mutex_unlock(&r->lock);
	return lost;
}

/* Takes a result to heart: what is not supported is not asked again, of a lost GPU nothing is. */
static void heed(struct gpu_reader *r, struct gpu *gpu, const char *what, int result, bool *refused, char trouble[128])
{
	if (result == NVML_SUCCESS)
		return;
	if (result == NVML_NOT_SUPPORTED || result == NVML_NO_PERMISSION || result == NVML_FUNCTION_NOT_FOUND)
		*refused = true;
	if (result == NVML_NOT_SUPPORTED || result == NVML_FUNCTION_NOT_FOUND)
		return;
	if (!*trouble)
		snprintf(trouble, 128, "%s: %s", what, nvml_words(&r->nvml, result));
	if (result == NVML_GPU_IS_LOST) {
		pthread_mutex_lock(&r->lock);
		gpu->lost = true;
		pthread_mutex_unlock(&r->lock);
	}
}

static void reading_clear(struct gpu_reading *reading)
{
	for (size_t i = 0; i < NVML_FIGURES; i++)
		reading->values[i] = NAN;
	reading->process_count = 0;
	reading->has_processes = false;
	reading->trouble[0] = '\0';
}

static void read_processes(struct gpu_reader *r, struct gpu *gpu, struct gpu_reading *into)
{
	int64_t now = clock_mono_ns();
	int result;

	if (gpu->processes_refused || (gpu->processes_at && now - gpu->processes_at < PROCESSES_EVERY_NS))
		return;
	gpu->processes_at = now;
	result = nvml_ask_processes(&r->nvml, gpu->device, into->processes, &into->process_count);
	into->has_processes = result == NVML_SUCCESS;
	/* Too many to list is no trouble of the device's. */
	if (result != NVML_INSUFFICIENT_SIZE)
		heed(r, gpu, "processes", result, &gpu->processes_refused, into->trouble);
}

static void read_gpu(struct gpu_reader *r, struct gpu *gpu, struct gpu_reading *into)
{
	reading_clear(into);
	for (int q = 0; q < NVML_ASK_PCIE_RX && gpu->device && !is_lost(r, gpu); q++)
		if (!gpu->refused[q])
			heed(r, gpu, nvml_question_name((enum nvml_question)q),
			     nvml_ask(&r->nvml, gpu->device, (enum nvml_question)q, into->values), &gpu->refused[q],
			     into->trouble);
	if (gpu->device && !is_lost(r, gpu))
		read_processes(r, gpu, into);
}

/* Adds what is new to what was not taken yet. Under the lock. */
static void merge(struct gpu_reading *to, const struct gpu_reading *from)
{
	for (size_t i = 0; i < NVML_FIGURES; i++)
		if (!isnan(from->values[i]))
			to->values[i] = from->values[i];
	if (from->has_processes) {
		memcpy(to->processes, from->processes, from->process_count * sizeof *from->processes);
		to->process_count = from->process_count;
		to->has_processes = true;
	}
	if (*from->trouble && !*to->trouble)
		memcpy(to->trouble, from->trouble, sizeof to->trouble);
}

static void read_quick(struct gpu_reader *r, uint64_t question)
{
	struct timespec before, after;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	for (size_t i = 0; i < r->count; i++)
		read_gpu(r, &r->gpus[i], &r->scratch[i]);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->count; i++)
		merge(&r->latest[i], &r->scratch[i]);
	r->cost = (after.tv_sec - before.tv_sec) * NS_PER_S + after.tv_nsec - before.tv_nsec;
	r->fresh = true;
	r->answered = question;
	r->asked_at = clock_mono_ns();
	pthread_cond_broadcast(&r->news);
	pthread_mutex_unlock(&r->lock);
}

/* One direction of one GPU, for 20 ms. */
static void read_pcie(struct gpu_reader *r, struct gpu *gpu, struct gpu_reading *into, enum nvml_question question)
{
	struct gpu_reading got; /* its list of processes stays unused and unset */

	if (!gpu->device || gpu->refused[question] || is_lost(r, gpu))
		return;
	reading_clear(&got);
	heed(r, gpu, nvml_question_name(question), nvml_ask(&r->nvml, gpu->device, question, got.values),
	     &gpu->refused[question], got.trouble);
	pthread_mutex_lock(&r->lock);
	merge(into, &got);
	r->fresh = true;
	pthread_mutex_unlock(&r->lock);
}

static bool stopping(struct gpu_reader *r)
{
	bool stop;

	pthread_mutex_lock(&r->lock);
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return stop;
}

/* The next question after `last`, or 0: stop. */
static uint64_t wait_for_question(struct gpu_reader *r, uint64_t last)
{
	uint64_t question;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && r->asked == last)
		pthread_cond_wait(&r->wake, &r->lock);
	question = r->stop ? 0 : r->asked;
	pthread_mutex_unlock(&r->lock);
	return question;
}

static void rest(struct gpu_reader *r, int64_t ns)
{
	struct timespec until;

	set_deadline(&until, ns < PCIE_REST_MAX_NS ? ns : PCIE_REST_MAX_NS);
	pthread_mutex_lock(&r->lock);
	while (!r->stop && pthread_cond_timedwait(&r->wake, &r->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&r->lock);
}

static void *pcie_thread(void *reader)
{
	struct gpu_reader *r = reader;
	uint64_t question = 0;

	while ((question = wait_for_question(r, question))) {
		struct timespec before, after;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
		for (size_t i = 0; i < r->count && !stopping(r); i++) {
			read_pcie(r, &r->gpus[i], &r->latest[i], NVML_ASK_PCIE_RX);
			read_pcie(r, &r->gpus[i], &r->latest[i], NVML_ASK_PCIE_TX);
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
		rest(r, PCIE_REST * ((after.tv_sec - before.tv_sec) * NS_PER_S + after.tv_nsec - before.tv_nsec));
	}
	leave(r);
	return NULL;
}

static int explain(const struct gpu_reader *r, const char *step, int result, struct error *why_not)
{
	bool absent =
		result == NVML_DRIVER_NOT_LOADED || result == NVML_LIBRARY_NOT_FOUND || result == NVML_GPU_NOT_FOUND;

	error_set(why_not, "%s: %s: %s (%d)", NVML_LIBRARY, step, nvml_words(&r->nvml, result), result);
	return absent ? SOURCE_ABSENT : -1;
}

static int find_gpus(struct gpu_reader *r, struct error *why_not)
{
	unsigned count = 0;
	size_t usable = 0;
	int result = r->nvml.count(&count), failed = NVML_SUCCESS;

	if (result != NVML_SUCCESS)
		return explain(r, "nvmlDeviceGetCount_v2", result, why_not);
	r->count = count < GPUS_MAX ? count : GPUS_MAX;
	if (r->count == 0) {
		error_set(why_not, "%s knows of no GPU that this user may see", NVML_LIBRARY);
		return SOURCE_ABSENT;
	}
	for (size_t i = 0; i < r->count; i++) {
		struct gpu *gpu = &r->gpus[i];

		reading_clear(&r->latest[i]);
		result = r->nvml.handle((unsigned)i, &gpu->device);
		if (result != NVML_SUCCESS) {
			gpu->device = NULL;
			failed = result;
			snprintf(r->latest[i].trouble, sizeof r->latest[i].trouble, "handle: %s",
				 nvml_words(&r->nvml, result));
			continue;
		}
		usable++;
		if (r->nvml.name(gpu->device, gpu->name, sizeof gpu->name) != NVML_SUCCESS)
			snprintf(gpu->name, sizeof gpu->name, "unknown");
		gpu->name[sizeof gpu->name - 1] = '\0';
	}
	return usable ? 0 : explain(r, "nvmlDeviceGetHandleByIndex_v2", failed, why_not);
}

static int start(struct gpu_reader *r, struct error *why_not)
{
	int result = nvml_load(&r->nvml, why_not);

	/* A driver without its library is common in containers that were not given the GPUs. */
	if (result < 0)
		return result == NVML_NO_LIBRARY ? SOURCE_ABSENT : -1;
	result = r->nvml.init();
	if (result != NVML_SUCCESS)
		return explain(r, "nvmlInit_v2", result, why_not);
	r->initialised = true;
	return find_gpus(r, why_not);
}

static int spawn(struct gpu_reader *r, void *(*body)(void *reader), struct error *why_not);

static void *quick_thread(void *reader)
{
	struct gpu_reader *r = reader;
	struct error why_not = {""};
	int result = start(r, &why_not);
	uint64_t question = 0;

	if (result == 0)
		read_quick(r, 0);
	if (result == 0 && spawn(r, pcie_thread, &why_not) < 0)
		result = -1;
	pthread_mutex_lock(&r->lock);
	r->start_result = result;
	r->why_not = why_not;
	r->started = true;
	pthread_cond_broadcast(&r->news);
	pthread_mutex_unlock(&r->lock);
	while (result == 0 && (question = wait_for_question(r, question)))
		read_quick(r, question);
	leave(r);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static int spawn(struct gpu_reader *r, void *(*body)(void *reader), struct error *why_not)
{
	sigset_t all, before;
	pthread_t thread;
	int failed;

	pthread_mutex_lock(&r->lock);
	r->working++;
	r->holders++;
	pthread_mutex_unlock(&r->lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, NULL, body, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed) {
		pthread_detach(thread);
		return 0;
	}
	pthread_mutex_lock(&r->lock);
	r->working--;
	r->holders--;
	pthread_mutex_unlock(&r->lock);
	return error_set(why_not, "a thread for the GPUs could not be started: %s", strerror(failed));
}

static struct gpu_reader *make(void)
{
	struct gpu_reader *r = calloc(1, sizeof *r);
	pthread_condattr_t monotonic;

	if (!r)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, &monotonic);
	pthread_cond_init(&r->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r->holders = 1;
	return r;
}

/* Until `*done`, or so long. Under the lock. */
static bool wait_for(struct gpu_reader *r, const bool *done, int64_t wait_ns)
{
	struct timespec until;

	set_deadline(&until, wait_ns);
	while (!*done && pthread_cond_timedwait(&r->news, &r->lock, &until) != ETIMEDOUT)
		;
	return *done;
}

static void stop(struct gpu_reader *r)
{
	r->stop = true;
	pthread_cond_broadcast(&r->wake);
}

int gpu_reader_new(int64_t patience_ns, struct gpu_reader **ret, struct error *why_not)
{
	struct gpu_reader *r = make();
	int result = -1;

	if (!r)
		return error_set(why_not, "out of memory");
	if (spawn(r, quick_thread, why_not) < 0) {
		drop(r);
		return -1;
	}
	pthread_mutex_lock(&r->lock);
	if (!wait_for(r, &r->started, patience_ns)) {
		error_set(why_not,
			  "%s did not answer within %.3g s; `nvidia-smi` tells whether the driver hangs or only starts "
			  "slowly, which its persistence mode spares",
			  NVML_LIBRARY, (double)patience_ns / 1e9);
	} else {
		result = r->start_result;
		if (result < 0)
			error_set(why_not, "%s", r->why_not.text);
	}
	if (result < 0)
		stop(r);
	pthread_mutex_unlock(&r->lock);
	if (result < 0)
		drop(r);
	else
		*ret = r;
	return result;
}

void gpu_reader_free(struct gpu_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	stop(r);
	wait_for(r, &r->finished, FREE_PATIENCE_NS);
	pthread_mutex_unlock(&r->lock);
	drop(r);
}

size_t gpu_reader_count(const struct gpu_reader *r)
{
	return r->count;
}

const char *gpu_reader_name(const struct gpu_reader *r, size_t gpu)
{
	return r->gpus[gpu].name;
}

void gpu_reader_ask(struct gpu_reader *r, int64_t wait_ns)
{
	struct timespec until;
	uint64_t question;

	set_deadline(&until, wait_ns);
	pthread_mutex_lock(&r->lock);
	if (r->asked == r->answered)
		r->asked_at = clock_mono_ns();
	question = ++r->asked;
	pthread_cond_broadcast(&r->wake);
	while (wait_ns > 0 && r->answered < question && pthread_cond_timedwait(&r->news, &r->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&r->lock);
}

bool gpu_reader_take(struct gpu_reader *r, struct gpu_reading *ret)
{
	bool fresh;

	pthread_mutex_lock(&r->lock);
	fresh = r->fresh;
	for (size_t i = 0; i < r->count && fresh; i++) {
		reading_clear(&ret[i]);
		merge(&ret[i], &r->latest[i]);
		reading_clear(&r->latest[i]);
	}
	r->fresh = false;
	pthread_mutex_unlock(&r->lock);
	return fresh;
}

int64_t gpu_reader_cost_ns(struct gpu_reader *r)
{
	int64_t cost;

	pthread_mutex_lock(&r->lock);
	cost = r->cost;
	pthread_mutex_unlock(&r->lock);
	return cost;
}

int64_t gpu_reader_silent_ns(struct gpu_reader *r)
{
	int64_t silent;

	pthread_mutex_lock(&r->lock);
	silent = r->asked == r->answered ? 0 : clock_mono_ns() - r->asked_at;
	pthread_mutex_unlock(&r->lock);
	return silent;
}
