/* sweep HOW THREADS MIB SECONDS: fills MIB of memory (phase "fill"), then goes over it again and again (phase "sweep"),
 * each of its threads over a part of its own. HOW is one of
 *   stream   every byte, one after another, as wide as the compiler can: bound by the memory's bandwidth
 *   gather   eight bytes somewhere, which say where to go next: bound by the memory's latency
 *   compute  every byte, one after another, with much arithmetic for each: bound by the CPU
 * Prints how many bytes per second it used. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "planted.h"

typedef uint64_t wide __attribute__((vector_size(64)));

/* Compiled for several processors; the one at hand is picked when the program starts. */
#ifdef __x86_64__
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

struct part {
	pthread_t thread;
	wide *memory;
	size_t count; /* of wides */
	uint64_t state;
	double bytes;
};

static double end;

/* Each works through a piece of the memory from *at on and returns the bytes that it used. */
WIDEST static size_t stream(struct part *p, size_t *at)
{
	wide a = {0}, b = {0}, c = {0}, d = {0};
	size_t from = *at, to = from + 65536 < p->count ? from + 65536 : p->count;

	for (size_t i = from; i + 4 <= to; i += 4) {
		a ^= p->memory[i];
		b ^= p->memory[i + 1];
		c ^= p->memory[i + 2];
		d ^= p->memory[i + 3];
	}
	a ^= b ^ c ^ d;
	p->state ^= a[0] ^ a[3] ^ a[7];
	*at = to < p->count ? to : 0;
	return (to - from) * sizeof(wide);
}

static size_t gather(struct part *p, size_t *at)
{
	const uint64_t *words = (const uint64_t *)p->memory;
	size_t steps = 65536, count = p->count * (sizeof(wide) / sizeof *words);
	uint64_t x = p->state;

	(void)at;
	for (size_t i = 0; i < steps; i++)
		x = (x ^ words[(x >> 20) % count]) * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	p->state = x;
	return steps * sizeof *words;
}

static size_t compute(struct part *p, size_t *at)
{
	const uint64_t *words = (const uint64_t *)(p->memory + *at);
	size_t wides = 1024 < p->count - *at ? 1024 : p->count - *at, count = wides * (sizeof(wide) / sizeof *words);
	uint64_t x = p->state;

	for (size_t i = 0; i < count; i++) {
		x ^= words[i];
		for (int round = 0; round < 32; round++)
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	}
	p->state = x;
	*at = *at + wides < p->count ? *at + wides : 0;
	return wides * sizeof(wide);
}

typedef size_t piece(struct part *p, size_t *at);

static piece *go_on;
static pthread_barrier_t filled;

static piece *piece_of(const char *how)
{
	if (strcmp(how, "stream") == 0)
		return stream;
	if (strcmp(how, "gather") == 0)
		return gather;
	return strcmp(how, "compute") == 0 ? compute : NULL;
}

static void *work(void *argument)
{
	struct part *p = argument;
	uint64_t *words = (uint64_t *)p->memory;
	size_t at = 0;

	for (size_t i = 0; i < p->count * (sizeof(wide) / sizeof *words); i++)
		words[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	pthread_barrier_wait(&filled);
	pthread_barrier_wait(&filled);
	while (seconds_now() < end)
		p->bytes += (double)go_on(p, &at);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc == 5 ? atol(argv[2]) : 0;
	size_t size = argc == 5 ? (size_t)atol(argv[3]) << 20 : 0;
	double seconds = argc == 5 ? atof(argv[4]) : 0, bytes = 0;
	char *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct part *parts = calloc(threads > 0 ? (size_t)threads : 1, sizeof *parts);

	go_on = argc == 5 ? piece_of(argv[1]) : NULL;
	if (!go_on || threads <= 0 || size == 0 || memory == MAP_FAILED || !parts) {
		fprintf(stderr, "sweep: stream|gather|compute THREADS MIB SECONDS, and that much memory\n");
		return 2;
	}
	phase("fill");
	pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
	for (long i = 0; i < threads; i++) {
		parts[i].count = size / sizeof(wide) / (size_t)threads;
		parts[i].memory = (wide *)(void *)memory + (size_t)i * parts[i].count;
		parts[i].state = (uint64_t)i;
		if (pthread_create(&parts[i].thread, NULL, work, &parts[i]) != 0) {
			fprintf(stderr, "sweep: a thread could not be made\n");
			return 1;
		}
	}
	pthread_barrier_wait(&filled);
	phase("sweep");
	end = seconds_now() + seconds;
	pthread_barrier_wait(&filled);
	for (long i = 0; i < threads; i++) {
		pthread_join(parts[i].thread, NULL);
		bytes += parts[i].bytes;
		keep(parts[i].state);
	}
	phase("end");
	printf("%.0f\n", bytes / seconds);
	free(parts);
	munmap(memory, size);
	return 0;
}
