/* lock_chain SECONDS: two threads that hand one lock to each other, each computing for some milliseconds while it has
 * it: one runs at a time, and the other waits. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "planted.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handed = PTHREAD_COND_INITIALIZER;
static intptr_t turn;
static double end;

static void compute(double seconds)
{
	double until = seconds_now() + seconds;
	uint64_t x = 1;

	while (seconds_now() < until)
		x = churn(x);
	keep(x);
}

static void *take_turns(void *argument)
{
	intptr_t me = (intptr_t)argument;

	pthread_mutex_lock(&lock);
	while (seconds_now() < end) {
		while (turn != me)
			pthread_cond_wait(&handed, &lock);
		compute(0.005);
		turn = !me;
		pthread_cond_signal(&handed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	end = seconds_now() + (argc > 1 ? atof(argv[1]) : 2);
	if (pthread_create(&other, NULL, take_turns, (void *)1) != 0) {
		fprintf(stderr, "lock_chain: a thread could not be made\n");
		return 1;
	}
	take_turns((void *)0);
	pthread_join(other, NULL);
	return 0;
}
