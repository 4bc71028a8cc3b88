/* truth_workers SECONDS: eight threads named worker-1 to worker-8 that share so many CPU seconds; the last one gets
 * twice as much as each of the others. Tells it by thread. */
#include <pthread.h>
#include <stdlib.h>

#include "truth.h"

#define WORKERS 8

static int64_t unit_ns;

struct worker {
	char name[16];
	int64_t share, burnt_ns;
	int tid;
};

static APART void do_work(struct worker *w)
{
	BURN(unit_ns * w->share, &w->burnt_ns);
}

static void *start(void *of)
{
	struct worker *w = of;

	pthread_setname_np(pthread_self(), w->name);
	w->tid = gettid();
	do_work(w);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[WORKERS] = {0};
	pthread_t threads[WORKERS];

	unit_ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9 / (WORKERS + 1));
	for (int i = 0; i < WORKERS; i++) {
		snprintf(workers[i].name, sizeof workers[i].name, "worker-%d", i + 1);
		workers[i].share = i == WORKERS - 1 ? 2 : 1;
		if (pthread_create(&threads[i], NULL, start, &workers[i]) != 0)
			return 3;
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WORKERS; i++) {
		tell(workers[i].name, workers[i].burnt_ns);
		printf("%s has the tid %d\n", workers[i].name, workers[i].tid);
	}
	return 0;
}
