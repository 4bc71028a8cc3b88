#include "exec/bandwidth.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/touch.h"
#include "base/units.h"
#include "exec/bandwidth_reader.h"
#include "exec/memory_room.h"

#define MIB (1024.0 * 1024.0)
#define CACHES 4	       /* a buffer is so many times the last-level cache: reading on finds little of it there */
#define CACHES_LEAST 2	       /* where memory is short */
#define LEAST_BYTES (256 * MIB)
#define TOO_SMALL_BYTES (64 * MIB)
#define ROOM_SHARE 8
#define DEADLINE_NS (5 * NS_PER_S)
#define POLL_NS (5 * NS_PER_MS)
#define LOOKS_MAX 16
#define CPUS_MAX 65536 /* more than any kernel is built for, so that asking for the mask cannot fail for want of room */
#define SATURATED 0.9  /* more of the pages than this, and the rate is only "at least" */

static void cpus_cleanup(cpu_set_t **cpus)
{
	CPU_FREE(*cpus);
}

static void board_cleanup(struct reader_board **board)
{
	if (*board)
		munmap(*board, sizeof **board);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the values, of which there are some. */
static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Sets the sizes of the buffers; `room` is what they may take together. */
static int size_buffers(const struct last_cache *cache, double room, struct reader_plan *plan, struct error *err)
{
	const double whole = 2 * MIB;
	double each = fmax(CACHES * cache->all, LEAST_BYTES) / plan->threads;
	/* Alone, a thread has a whole last-level cache to itself. */
	double first = fmax(each, cache->largest > 0 ? CACHES * cache->largest : LEAST_BYTES);
	double share = fmin(1, room / (first + each * (plan->threads - 1)));

	if (room < fmax(TOO_SMALL_BYTES, CACHES_LEAST * cache->all))
		return error_set(err,
				 "buffers may take an eighth of what is available, and %s are too little",
				 units_bytes(room).text);
	plan->first_bytes = (size_t)(ceil(share * first / whole) * whole);
	plan->bytes = (size_t)(ceil(share * each / whole) * whole);
	return 0;
}

/* The child: it must not outlive its parent, and is the first to go where memory runs out. */
static _Noreturn void become_reader(const struct reader_plan *plan, struct reader_board *board, pid_t parent)
{
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_NAME, "assay-bandwidth");
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fs_write_all(fd, "1000", 4);
		close(fd);
	}
	reader_run(plan, board);
	_exit(0);
}

/* Sums over looks: a single one finds more or less by where the readers were when it began, so that only the mean tells
 * their rate. */
struct looks {
	double touched, resident, seconds;
	int count;
	bool impossible;
};

/* What memory.touched would see of the child. Where it cannot be seen, the measurement goes on without. */
static void look(struct looks *l, pid_t child)
{
	struct touch t;

	if (l->impossible || l->count == LOOKS_MAX)
		return;
	if (touch_clear(child, &t, NULL) < 0 || touch_read(child, &t, NULL) < 0 || t.seen_at <= t.cleared_at) {
		l->impossible = true;
		return;
	}
	l->touched += t.touched;
	l->resident += t.resident;
	l->seconds += (double)(t.seen_at - t.cleared_at) / (double)NS_PER_S;
	l->count++;
}

/* Waits for the child, and looks at it when its time has come. 0 when it has ended by itself; the child is reaped. */
static int watch(pid_t child, struct reader_board *board, const volatile int *stop, struct looks *l, struct error *err)
{
	int64_t deadline = clock_mono_ns() + DEADLINE_NS;
	int status = 0, stage, failed = 0;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		if (stop && *stop)
			failed = error_set(err, "the measurement of the memory's speed was interrupted");
		else if (clock_mono_ns() > deadline)
			failed = error_set(err, "the measurement of the memory's speed did not end within 5 s");
		if (failed) {
			kill(child, SIGKILL);
			while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
				;
			return -1;
		}
		stage = atomic_load(&board->stage);
		if (stage == READER_IS_LOOKED_AT)
			look(l, child);
		clock_sleep_ns(POLL_NS);
	}
	if (ended < 0)
		return error_set(err, "the process that measures the memory's speed cannot be waited for: %s",
				 strerror(errno));
	if (WIFSIGNALED(status))
		return error_set(err, "the process that measures the memory's speed was ended by signal %d",
				 WTERMSIG(status));
	if (atomic_load(&board->failed))
		return error_set(err, "the reading process failed: %s",
				 strerror(atomic_load(&board->failed)));
	if (atomic_load(&board->stage) != READER_DONE)
		return error_set(err, "the process that measures the memory's speed ended early, with status %d",
				 WEXITSTATUS(status));
	return 0;
}

/* Median and spread of bytes per second. */
static void sum_up(double *rates, int count, double *ret_median, double *ret_spread)
{
	*ret_median = median(rates, count);
	*ret_spread = *ret_median > 0 ? (rates[count - 1] - rates[0]) / *ret_median : 0;
}

static void take_results(const struct reader_board *board, const struct looks *l, struct bandwidth *ret)
{
	const double seconds = (double)READER_WINDOW_NS / (double)NS_PER_S;
	double one[READER_ONE], all[READER_ALL] = {0};

	for (int w = 0; w < READER_ONE; w++)
		one[w] = (double)board->one[READER_WARM + w] / seconds;
	for (int w = 0; w < READER_ALL; w++)
		for (int i = 0; i < READER_THREADS_MAX; i++)
			all[w] += (double)board->all[i][READER_WARM + w] / seconds;
	sum_up(one, READER_ONE, &ret->one, &ret->one_spread);
	sum_up(all, READER_ALL, &ret->all, &ret->all_spread);
	ret->threads = atomic_load(&board->threads);
	/* Looks that find nearly all pages touched cannot tell this machine from a faster one. */
	ret->touched = l->count > 0 && l->touched < SATURATED * l->resident ? l->touched / l->seconds : NAN;
}

int bandwidth_measure(const volatile int *stop, struct bandwidth *ret, struct error *err)
{
	CLEANUP(cpus_cleanup) cpu_set_t *cpus = CPU_ALLOC(CPUS_MAX);
	CLEANUP(board_cleanup) struct reader_board *board = NULL;
	struct reader_plan plan = {.cpus = cpus, .cpus_size = CPU_ALLOC_SIZE(CPUS_MAX)};
	struct last_cache cache;
	struct looks looks = {.count = 0};
	int64_t began = clock_mono_ns(), wall = clock_wall_ns();
	pid_t parent = getpid(), child;
	double room = memory_room_read() / ROOM_SHARE;
	void *shared;

	if (!cpus || sched_getaffinity(0, plan.cpus_size, cpus) < 0)
		return error_set(err, "the CPUs that may be used are not known: %s", strerror(cpus ? errno : ENOMEM));
	if (isnan(room))
		return error_set(err, "how much memory is available is not known");
	plan.threads = CPU_COUNT_S(plan.cpus_size, cpus);
	if (plan.threads > READER_THREADS_MAX)
		plan.threads = READER_THREADS_MAX;
	last_cache_read(&cache);
	if (size_buffers(&cache, room, &plan, err) < 0)
		return -1;
	shared = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return error_set(err, "no memory to share with the reading process: %s", strerror(errno));
	board = shared;
	child = fork();
	if (child < 0)
		return error_set(err, "fork: %s", strerror(errno));
	if (child == 0)
		become_reader(&plan, board, parent);
	if (watch(child, board, stop, &looks, err) < 0)
		return -1;
	*ret = (struct bandwidth){.cache_bytes = cache.all, .wall_ns = wall};
	take_results(board, &looks, ret);
	ret->took_s = (double)(clock_mono_ns() - began) / (double)NS_PER_S;
	return 0;
}
