/* A program with regions, for runs that record it:
 *
 *   target_marked nest CALLS THREADS   in each thread CALLS times "outer", in it "inner" twice
 *   target_marked wrong                an end without a begin, and regions that are open at the end
 *   target_marked kill                 ends 10 calls of "inner" within "outer", then kills itself
 *   target_marked linger FILE          10 calls of "outer"; a child goes on when FILE is there: 5 more
 *   target_marked phases               "early" in phase load, "late" in phase solve
 *   target_marked none                 uses no region */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assay.h"

static struct assay_region outer = ASSAY_REGION("outer");
static struct assay_region inner = ASSAY_REGION_TAGGED("inner", "kind=leaf");

static void call(struct assay_region *region)
{
	assay_region_begin(region);
	assay_region_end(region);
}

static void *nest(void *calls)
{
	for (long i = 0; i < *(const long *)calls; i++) {
		assay_region_begin(&outer);
		call(&inner);
		call(&inner);
		assay_region_end(&outer);
	}
	return NULL;
}

static int in_threads(long calls, int count)
{
	pthread_t threads[64];
	int started = 0;

	while (started < count && started < 64 && pthread_create(&threads[started], NULL, nest, &calls) == 0)
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return started == count ? 0 : 1;
}

static int linger(const char *file)
{
	for (int i = 0; i < 10; i++)
		call(&outer);
	if (fork() != 0)
		return 0;
	/* Or assay would wait for what it writes. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while (access(file, F_OK) < 0)
		usleep(10000);
	for (int i = 0; i < 5; i++)
		call(&outer);
	return 0;
}

static void wait_a_little(struct assay_region *region)
{
	assay_region_begin(region);
	usleep(50000);
	assay_region_end(region);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "none";

	if (strcmp(what, "nest") == 0 && argc == 4)
		return in_threads(atol(argv[2]), atoi(argv[3]));
	if (strcmp(what, "linger") == 0 && argc == 3)
		return linger(argv[2]);
	if (strcmp(what, "wrong") == 0) {
		assay_region_end(&outer);
		assay_region_begin(&inner);
	}
	if (strcmp(what, "kill") == 0) {
		assay_region_begin(&outer);
		for (int i = 0; i < 10; i++)
			call(&inner);
		kill(getpid(), SIGKILL);
	}
	if (strcmp(what, "phases") == 0) {
		static struct assay_region early = ASSAY_REGION("early"), late = ASSAY_REGION("late");

		assay_mark("load");
		wait_a_little(&early);
		assay_mark("solve");
		wait_a_little(&late);
	}
	return 0;
}
