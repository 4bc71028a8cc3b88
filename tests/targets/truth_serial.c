/* truth_serial SECONDS: alternates between a function that the first thread runs alone and a loop that two threads
 * share evenly; each takes about half of so many seconds of wall time where there are two free CPUs. The CPU time of
 * the loop is then twice that of the function that holds up the run. */
#include <pthread.h>
#include <stdlib.h>

#include "truth.h"

static int64_t serial_ns, parallel_ns;
static int64_t piece;
static pthread_barrier_t begin, end;
static int over;

static APART void prepare_alone(int64_t ns)
{
	BURN(ns, &serial_ns);
}

static APART void loop_together(int64_t ns)
{
	BURN(ns, &parallel_ns);
}

static void *second(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return NULL;
		loop_together(piece);
		pthread_barrier_wait(&end);
	}
}

int main(int argc, char **argv)
{
	int64_t all_ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9);
	uint64_t seed = 1;
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	if (pthread_create(&thread, NULL, second, NULL) != 0)
		return 3;
	for (int64_t until = cpu_ns() + all_ns; cpu_ns() < until;) {
		piece = piece_ns(&seed);
		prepare_alone(piece);
		pthread_barrier_wait(&begin);
		loop_together(piece);
		pthread_barrier_wait(&end);
	}
	over = 1;
	pthread_barrier_wait(&begin);
	pthread_join(thread, NULL);
	tell("prepare_alone", serial_ns);
	tell("loop_together", parallel_ns);
	return 0;
}
