#include "exec/bandwidth_reader.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK ((size_t)256 << 10) /* read between two looks at the clock, 5 to 50 us */

/* 16 bytes is what every x86-64 and arm64 has. Wider loads (AVX2) were 0 to 5% faster on one core of a Zen 5, which is
 * below the spread from window to window, and the same on both. */
typedef uint64_t vector __attribute__((vector_size(16)));

struct crew {
	const struct reader_plan *plan;
	struct reader_board *board;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int arrived;	   /* threads that have filled their buffers, or could not */
	int64_t all_begin; /* when all begin to read, 0: not known yet */
};

struct hand {
	struct crew *crew;
	int number;
	pthread_t thread;
	char *buffer; /* NULL: there was no memory */
	size_t at;    /* where reading goes on */
};

/* Eight sums, so that no addition waits for the one before it; written out, so that they stay in registers. A check of
 * each load by a sanitizer would measure that check. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static uint64_t read_chunk(const char *bytes)
{
	const vector *from = (const vector *)(const void *)bytes, *end = from + CHUNK / sizeof *from;
	vector a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0};

	for (; from < end; from += 8) {
		a += from[0];
		b += from[1];
		c += from[2];
		d += from[3];
		e += from[4];
		f += from[5];
		g += from[6];
		h += from[7];
	}
	a += b + c + d + e + f + g + h;
	return a[0] + a[1];
}

/* Fills windows[0 .. count), the first of which begins at `begin`. */
static void read_windows(struct hand *h, size_t length, int64_t begin, uint64_t *windows, int count)
{
	while (clock_mono_ns() < begin)
		clock_sleep_ns(begin - clock_mono_ns());
	for (;;) {
		uint64_t sum = read_chunk(h->buffer + h->at);
		int64_t window;

		__asm__ volatile("" : : "r"(sum)); /* or the loads would be left out */
		h->at = h->at + 2 * CHUNK > length ? 0 : h->at + CHUNK;
		window = (clock_mono_ns() - begin) / READER_WINDOW_NS;
		if (window >= count)
			return;
		windows[window] += CHUNK;
	}
}

/* The CPU at that place of `threads` spread evenly over the mask, so that all memory controllers take part. */
static void pin(const struct reader_plan *plan, int number)
{
	int wanted = (int)((long)number * CPU_COUNT_S(plan->cpus_size, plan->cpus) / plan->threads);
	cpu_set_t *one = CPU_ALLOC(8 * plan->cpus_size);

	if (!one)
		return;
	CPU_ZERO_S(plan->cpus_size, one);
	for (size_t cpu = 0; cpu < 8 * plan->cpus_size; cpu++)
		if (CPU_ISSET_S(cpu, plan->cpus_size, plan->cpus) && wanted-- == 0) {
			CPU_SET_S(cpu, plan->cpus_size, one);
			break;
		}
	/* Where this fails the scheduler places the thread, which is as good unless it moves it. */
	(void)sched_setaffinity(0, plan->cpus_size, one);
	CPU_FREE(one);
}

/* A buffer in small pages, each touched first by the thread that will read it, so that it lies in that CPU's memory. */
static void fill(struct hand *h, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return;
	(void)madvise(memory, length, MADV_NOHUGEPAGE); /* fails where there are none */
	h->buffer = memory;
	for (size_t at = 0; at < length; at += page)
		h->buffer[at] = 1;
}

static void arrive(struct crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->arrived++;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
}

static int64_t wait_for_all_begin(struct crew *crew)
{
	int64_t begin;

	pthread_mutex_lock(&crew->lock);
	while (!crew->all_begin)
		pthread_cond_wait(&crew->changed, &crew->lock);
	begin = crew->all_begin;
	pthread_mutex_unlock(&crew->lock);
	return begin;
}

static void *work(void *context)
{
	struct hand *h = context;
	struct crew *crew = h->crew;
	int64_t begin;

	pin(crew->plan, h->number);
	fill(h, crew->plan->bytes);
	if (h->buffer)
		atomic_fetch_add(&crew->board->threads, 1);
	arrive(crew);
	begin = wait_for_all_begin(crew);
	if (h->buffer)
		read_windows(h, crew->plan->bytes, begin, crew->board->all[h->number], READER_WINDOWS);
	return NULL;
}

static void wait_for_arrival(struct crew *crew, int count)
{
	pthread_mutex_lock(&crew->lock);
	while (crew->arrived < count)
		pthread_cond_wait(&crew->changed, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

/* The first thread's part: alone, then with the others. */
static void lead(struct hand *h, int others)
{
	struct crew *crew = h->crew;
	struct reader_board *board = crew->board;
	const int counted = READER_WARM + READER_ALL;

	wait_for_arrival(crew, others);
	atomic_store(&board->stage, READER_READS_ONE);
	if (h->buffer)
		read_windows(h, crew->plan->first_bytes, clock_mono_ns(), board->one, READER_WARM + READER_ONE);
	h->at = 0;
	pthread_mutex_lock(&crew->lock);
	crew->all_begin = clock_mono_ns() + NS_PER_MS; /* time to wake up */
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	atomic_store(&board->stage, READER_READS_ALL);
	if (!h->buffer)
		return;
	read_windows(h, crew->plan->bytes, crew->all_begin, board->all[0], counted);
	atomic_store(&board->stage, READER_IS_LOOKED_AT);
	read_windows(h, crew->plan->bytes, crew->all_begin + counted * READER_WINDOW_NS, board->all[0] + counted,
		     READER_LOOKED_AT);
}

void reader_run(const struct reader_plan *plan, struct reader_board *board)
{
	struct crew crew = {plan, board, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
	struct hand hands[READER_THREADS_MAX] = {{.crew = &crew}};
	int others = 0;

	/* The others come first, so that all fill at once. Fewer of them where no more threads are to be had. */
	for (int i = 1; i < plan->threads; i++) {
		hands[i] = (struct hand){.crew = &crew, .number = i};
		if (pthread_create(&hands[i].thread, NULL, work, &hands[i]) != 0)
			break;
		others++;
	}
	pin(plan, 0);
	fill(&hands[0], plan->first_bytes);
	if (hands[0].buffer)
		atomic_fetch_add(&board->threads, 1);
	else
		atomic_store(&board->failed, ENOMEM);
	lead(&hands[0], others);
	for (int i = 1; i <= others; i++)
		pthread_join(hands[i].thread, NULL);
	atomic_store(&board->stage, READER_DONE);
}
