/* A parallel program with regions, whose argument says how it goes on: "good" to its end; "abort", "leave" and "kill":
 * rank 1 ends by MPI_Abort, by exit without MPI_Finalize, or by SIGKILL; "threads" with regions and messages of several
 * threads at once; "small": at the end rank 0 may write no file of more than 1,000 bytes; "late" begins to record by
 * itself, after MPI_Init; "named" names its ranks itself. */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <assay.h>

#define STEPS 10
#define THREADS 4
#define WORDS 1000

static int rank, size;

static void step(void)
{
	int out[WORDS], in[WORDS];
	ASSAY_SCOPE("step");

	for (int i = 0; i < WORDS; i++)
		out[i] = rank;
	MPI_Sendrecv(out, WORDS, MPI_INT, (rank + 1) % size, 0, in, WORDS, MPI_INT, (rank + size - 1) % size, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (in[WORDS - 1] != (rank + size - 1) % size)
		MPI_Abort(MPI_COMM_WORLD, 9);
}

/* What is in "before" ends on every rank before "after" begins on any. */
static void order(void)
{
	{
		ASSAY_SCOPE("before");
		usleep(1000 * (unsigned)(rank % 4));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	{
		ASSAY_SCOPE("after");
		usleep(1000);
	}
}

static void *talk(void *number)
{
	int tag = 10 + (int)(intptr_t)number, got = -1;

	for (int i = 0; i < STEPS; i++) {
		ASSAY_SCOPE("talk");
		MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, tag, &got, 1, MPI_INT, (rank + size - 1) % size, tag,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return NULL;
}

static void talk_in_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, talk, (void *)(intptr_t)i) != 0)
			MPI_Abort(MPI_COMM_WORLD, 8);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static int begin(int *argc, char ***argv, const char *how)
{
	int provided = 0;

	if (strcmp(how, "threads") != 0)
		return MPI_Init(argc, argv);
	if (MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
		return -1;
	return provided == MPI_THREAD_MULTIPLE ? MPI_SUCCESS : -1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "good";
	struct assay_options options = {.dir = argc > 2 ? argv[2] : NULL, .mode = ASSAY_TRACE};

	if (begin(&argc, &argv, how) != MPI_SUCCESS)
		return 7;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(how, "late") == 0 && assay_init(&options) < 0)
		return 6;
	if (strcmp(how, "named") == 0)
		assay_set_rank(100 + rank, 0);
	order();
	for (int i = 0; i < STEPS; i++)
		step();
	if (strcmp(how, "threads") == 0)
		talk_in_threads();
	if (strcmp(how, "kill") == 0 && rank == 1)
		raise(SIGKILL);
	if (strcmp(how, "abort") == 0 && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (strcmp(how, "leave") == 0 && rank == 1)
		return 5;
	if (strcmp(how, "small") == 0 && rank == 0)
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
	MPI_Finalize();
	printf("rank %d of %d done\n", rank, size);
	return 0;
}
