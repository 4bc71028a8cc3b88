/* Heat in a square plate by Jacobi's method, on a few threads: a small program with regions and phases of its own.
 *
 *     cc -O2 examples/heat.c $(pkg-config --cflags --libs assay) -pthread -lm -o heat
 *     assay run -- ./heat [SIDE [STEPS [THREADS]]]
 *
 * Without assay it runs the same and records nothing; with -DASSAY_DISABLE the library is not even needed. */
#include <assay.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 64
#define NORM_EVERY 10 /* steps between two looks at how much still changes */

struct plate {
	size_t side, steps, threads;
	double *now, *next;
	double changes[THREADS_MAX]; /* of each thread's rows, squared */
	pthread_barrier_t together;
};

struct worker {
	struct plate *plate;
	size_t number;
	pthread_t thread;
};

static void stencil(const struct plate *p, size_t from, size_t to)
{
	ASSAY_SCOPE("stencil");

	for (size_t y = from; y < to; y++) {
		for (size_t x = 1; x + 1 < p->side; x++) {
			const double *at = &p->now[y * p->side + x];

			p->next[y * p->side + x] = 0.25 * (at[-1] + at[1] + at[-(long)p->side] + at[p->side]);
		}
	}
}

static double norm(const struct plate *p, size_t from, size_t to)
{
	double sum = 0;

	ASSAY_SCOPE("norm");
	for (size_t i = from * p->side; i < to * p->side; i++)
		sum += (p->next[i] - p->now[i]) * (p->next[i] - p->now[i]);
	return sum;
}

/* Until all threads are here: a long one shows that the others had more to do. */
static void meet(struct plate *p)
{
	ASSAY_SCOPE("wait");
	pthread_barrier_wait(&p->together);
}

static void step(struct worker *w, size_t number)
{
	struct plate *p = w->plate;
	size_t rows = p->side - 2, from = 1 + rows * w->number / p->threads, to = 1 + rows * (w->number + 1) / p->threads;

	ASSAY_SCOPE("step");
	stencil(p, from, to);
	if (number % NORM_EVERY == 0)
		p->changes[w->number] = norm(p, from, to);
	meet(p);
	if (w->number == 0) {
		double *old = p->now;

		p->now = p->next;
		p->next = old;
	}
	meet(p);
}

static void *work(void *worker)
{
	struct worker *w = worker;

	for (size_t i = 0; i < w->plate->steps; i++)
		step(w, i);
	return NULL;
}

static int prepare(struct plate *p)
{
	size_t cells = p->side * p->side;

	ASSAY_SCOPE_TAGGED("prepare", "edge=hot");
	p->now = calloc(cells, sizeof *p->now);
	p->next = calloc(cells, sizeof *p->next);
	if (!p->now || !p->next)
		return -1;
	for (size_t x = 0; x < p->side; x++)
		p->now[x] = p->next[x] = 100;
	return pthread_barrier_init(&p->together, NULL, (unsigned)p->threads);
}

/* Returns how many threads ran: fewer could never meet. */
static size_t solve(struct plate *p)
{
	struct worker workers[THREADS_MAX];
	size_t started = 1;

	ASSAY_SCOPE("solve");
	for (size_t i = 0; i < p->threads; i++)
		workers[i] = (struct worker){.plate = p, .number = i};
	while (started < p->threads && pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
		started++;
	if (started < p->threads)
		return started;
	work(&workers[0]);
	for (size_t i = 1; i < p->threads; i++)
		pthread_join(workers[i].thread, NULL);
	return started;
}

static size_t number(int argc, char **argv, int at, size_t otherwise)
{
	long value = argc > at ? strtol(argv[at], NULL, 10) : 0;

	return value > 0 ? (size_t)value : otherwise;
}

int main(int argc, char **argv)
{
	struct plate p = {.side = number(argc, argv, 1, 1000), .steps = number(argc, argv, 2, 1000)};
	double change = 0;

	p.threads = number(argc, argv, 3, 2);
	p.threads = p.threads < THREADS_MAX ? p.threads : THREADS_MAX;
	p.side = p.side > 2 ? p.side : 3;
	assay_mark("load");
	if (prepare(&p) != 0) {
		fprintf(stderr, "heat: no memory for a plate of %zu by %zu cells\n", p.side, p.side);
		return 1;
	}
	assay_mark("solve");
	if (solve(&p) < p.threads) {
		fprintf(stderr, "heat: %zu threads cannot be started\n", p.threads);
		return 1;
	}
	assay_mark("shutdown");
	for (size_t i = 0; i < p.threads; i++)
		change += p.changes[i];
	printf("%zu steps; the last look saw a change of %g\n", p.steps, sqrt(change));
	free(p.now);
	free(p.next);
	return 0;
}
