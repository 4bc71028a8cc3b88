/* assay_spy_start and assay_spy_stop: memory over time, seen by another process.
 *
 * Each spy is a program of its own, a pair of sockets and a page of shared memory (spy_helper.h); this file knows which
 * there are, and turns what the page says into the public result. */
#include <assay.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/spy_helper.h"

#define DELAY_DEFAULT 0.01
#define DELAY_LEAST 0.0001
#define DELAY_MOST 86400.0
#define FLAGS_KNOWN (ASSAY_SPY_GPU | ASSAY_SPY_TREE | ASSAY_SPY_PSS)

_Static_assert(ASSAY_SPY_GPU == (int)SPY_WIRE_GPU && ASSAY_SPY_TREE == (int)SPY_WIRE_TREE &&
		       ASSAY_SPY_PSS == (int)SPY_WIRE_PSS && ASSAY_SPY_GPUS == SPY_WIRE_GPUS,
	       "public and shared names are the same");

struct assay_spy {
	struct spy_helper helper;
	pid_t owner;
	struct assay_spy *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those that were started and not stopped, of the parent too in its forks; under the lock. */
static struct assay_spy *spies;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* A spy ends with the process that started it: the child must not hold its socket open. */
static void in_child(void)
{
	int saved = errno;

	for (struct assay_spy *s = spies; s; s = s->next)
		spy_helper_forget(&s->helper);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static int check(int pid, double delay, unsigned flags)
{
	if (pid < 0)
		return last_error_set("assay_spy_start: %d is no process id", pid);
	if (!(delay >= DELAY_LEAST && delay <= DELAY_MOST))
		return last_error_set("assay_spy_start: a delay of %g s is outside %g to %g s", delay, DELAY_LEAST,
				      DELAY_MOST);
	if (flags & ~(unsigned)FLAGS_KNOWN)
		return last_error_set("assay_spy_start: unknown flags 0x%x", flags & ~(unsigned)FLAGS_KNOWN);
	return 0;
}

/* False: there is none. What the pointer points to is not looked at, for it may have been freed. */
static bool unlink_spy(const struct assay_spy *spy)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct assay_spy **at = &spies; *at && !found; at = found ? at : &(*at)->next) {
		found = *at == spy;
		if (found)
			*at = (*at)->next;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Forks of other threads wait until it is known. */
static int spawn(struct assay_spy *s, pid_t pid, int64_t delay_ns, unsigned flags)
{
	int failed;

	pthread_mutex_lock(&lock);
	failed = spy_helper_spawn(pid, delay_ns, flags, &s->helper);
	if (!failed) {
		s->next = spies;
		spies = s;
	}
	pthread_mutex_unlock(&lock);
	return failed;
}

static struct assay_spy *start(int pid, double delay, unsigned flags)
{
	struct assay_spy *s;

	if (check(pid, delay, flags) < 0)
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s) {
		last_error_set("assay_spy_start: out of memory");
		return NULL;
	}
	s->owner = getpid();
	pthread_once(&once, watch_forks);
	if (spawn(s, pid ? pid : s->owner, (int64_t)(delay * 1e9 + 0.5), flags) < 0) {
		free(s);
		return NULL;
	}
	if (spy_helper_await(&s->helper) < 0) {
		(void)unlink_spy(s);
		spy_helper_forget(&s->helper);
		spy_helper_release(&s->helper);
		free(s);
		return NULL;
	}
	return s;
}

ASSAY_EXPORT struct assay_spy *assay_spy_start(int pid, double delay, unsigned flags)
{
	struct assay_spy *s;
	int saved = errno, cancel;

	/* What is open on the way would be lost. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	s = start(pid, delay == 0 ? DELAY_DEFAULT : delay, flags);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return s;
}

static struct assay_monitor public_monitor(const struct spy_wire_monitor *m)
{
	return (struct assay_monitor){
		.begin = m->begin,
		.end = m->end,
		.peak = m->peak,
		.average = m->average,
		.n = m->n,
		.peak_at = (double)m->peak_at / 1e9,
	};
}

/* What the page says; nothing but "not known" where there is none. */
static void fill(const struct spy_wire_page *page, struct assay_spy_result *ret)
{
	static const struct spy_wire_monitor none = {.begin = -1, .end = -1, .peak = -1, .average = NAN};
	struct assay_monitor *const places[SPY_WIRE_RESOURCES] = {&ret->rss, &ret->anon, &ret->file, &ret->swap,
								  &ret->pss};
	uint32_t slot = page ? __atomic_load_n(&page->current, __ATOMIC_ACQUIRE) : 0;
	const struct spy_wire_figures *f = slot == 1 || slot == 2 ? &page->slots[slot - 1] : NULL;

	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; i < SPY_WIRE_RESOURCES; i++)
		*places[i] = public_monitor(f ? &f->resources[i] : &none);
	ret->high_water_begin = f ? f->high_water_begin : -1;
	ret->high_water_end = f ? f->high_water_end : -1;
	ret->peak = f ? f->peak : -1;
	ret->peak_above = f ? f->peak_above : -1;
	if (!f)
		return;
	ret->gpu_count = f->gpu_count < ASSAY_SPY_GPUS ? (size_t)f->gpu_count : ASSAY_SPY_GPUS;
	for (size_t i = 0; i < ret->gpu_count; i++)
		ret->gpus[i] = public_monitor(&f->gpus[i]);
	ret->peak_exact = f->exact != 0;
	ret->gone = f->gone != 0;
	ret->seconds = (double)f->seconds_ns / 1e9;
}

/* Says what went wrong. */
static int explain(enum spy_helper_end end, pid_t helper)
{
	switch (end) {
	case SPY_HELPER_DONE:
		return 0;
	case SPY_HELPER_DEAD:
		return last_error_set(
			"assay_spy_stop: the spy (process %d) was killed; the figures are those until then",
			(int)helper);
	case SPY_HELPER_SILENT:
		return last_error_set(
			"assay_spy_stop: the spy (process %d) did not answer and was killed; the figures are "
			"those until then",
			(int)helper);
	default:
		return last_error_set("assay_spy_stop: the program has closed the spy's descriptor, which ended it; "
				      "the figures are those until then");
	}
}

static int stop(struct assay_spy *spy, struct assay_spy_result *result)
{
	int status;

	if (!unlink_spy(spy)) {
		fill(NULL, result);
		return last_error_set("assay_spy_stop: there is no such spy: it has been stopped before");
	}
	if (spy->owner == getpid()) {
		status = explain(spy_helper_stop(&spy->helper), spy->helper.pid);
		fill(spy->helper.page, result);
		if (status < 0) {
			result->partial = 1;
			/* Nothing tells what came after the spy's end. */
			result->peak_exact = 0;
			result->peak_above = -1;
		}
	} else {
		status = last_error_set("assay_spy_stop: process %d started this spy, and this is a fork of it",
					(int)spy->owner);
		fill(NULL, result);
	}
	spy_helper_release(&spy->helper);
	free(spy);
	return status;
}

ASSAY_EXPORT int assay_spy_stop(struct assay_spy *spy, struct assay_spy_result *result)
{
	struct assay_spy_result unwanted;
	int saved = errno, status, cancel;

	if (!spy) {
		fill(NULL, result ? result : &unwanted);
		return last_error_set("assay_spy_stop: there is no spy: assay_spy_start has failed, and said why");
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	status = stop(spy, result ? result : &unwanted);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return status;
}

ASSAY_EXPORT double assay_spy_in(int64_t bytes, double unit)
{
	return bytes < 0 ? NAN : (double)bytes / unit;
}
