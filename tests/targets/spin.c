/* spin THREADS SECONDS [ON_MS OFF_MS]: threads of integer arithmetic in registers, the first one included, for so long.
 * With ON_MS and OFF_MS they all work for ON_MS, sleep for OFF_MS, and so on. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planted.h"

static double end, on_s, off_s;

static void *spin(void *unused)
{
	uint64_t x = 1;

	(void)unused;
	for (double began = seconds_now(), now = began; now < end; now = seconds_now()) {
		x = churn(x);
		if (off_s > 0 && now - began >= on_s) {
			usleep((useconds_t)(off_s * 1e6));
			began = seconds_now();
		}
	}
	keep(x);
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	pthread_t *threads = calloc(count > 0 ? (size_t)count : 1, sizeof *threads);

	end = seconds_now() + (argc > 2 ? atof(argv[2]) : 2);
	on_s = argc > 4 ? atof(argv[3]) / 1e3 : 0;
	off_s = argc > 4 ? atof(argv[4]) / 1e3 : 0;
	for (long i = 1; threads && i < count; i++)
		if (pthread_create(&threads[i], NULL, spin, NULL) != 0) {
			fprintf(stderr, "spin: a thread could not be made\n");
			return 1;
		}
	spin(NULL);
	for (long i = 1; threads && i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}
