/* threads_clone COUNT MS [leave]: COUNT threads that each keep a CPU busy for MS milliseconds of its time. With "leave"
 * the first thread ends before them, so that the process goes on without it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long wanted_ms;

static void *keep_busy(void *unused)
{
	struct timespec used;

	(void)unused;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < wanted_ms);
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 4;
	pthread_t *threads = calloc(count > 0 ? (size_t)count : 1, sizeof *threads);

	wanted_ms = argc > 2 ? atol(argv[2]) : 100;
	for (long i = 0; threads && i < count; i++)
		if (pthread_create(&threads[i], NULL, keep_busy, NULL) != 0) {
			fprintf(stderr, "threads_clone: a thread could not be made\n");
			return 1;
		}
	if (argc > 3)
		pthread_exit(NULL);
	for (long i = 0; threads && i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}
