/* MPI calls of known sizes, among them those whose arguments mean nothing in some ranks, and one that fails: it says
 * so where anything that MPI answers is not what it should be. Meant for an even number of ranks. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static int rank, size, wrong;

static void expect(int is, int should, const char *what)
{
	if (is == should)
		return;
	fprintf(stderr, "rank %d: %s is %d, not %d\n", rank, what, is, should);
	wrong = 1;
}

/* 400 bytes each way: rank 2k sends to 2k + 1 and hears from it, and offers more room than it needs. */
static void between_two(void)
{
	int data[200] = {rank}, peer = rank ^ 1, count = 0;
	MPI_Request requests[2];
	MPI_Status status;

	if (rank % 2 == 0) {
		MPI_Send(data, 100, MPI_INT, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(data, 200, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect(data[0], peer, "what was received");
	} else {
		MPI_Recv(data, 150, MPI_INT, peer, 1, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_INT, &count);
		expect(count, 100, "the count");
		data[0] = rank;
		MPI_Send(data, 100, MPI_INT, peer, 2, MPI_COMM_WORLD);
	}
	MPI_Irecv(data, 50, MPI_INT, peer, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(data + 50, 50, MPI_INT, peer, 3, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void among_all(void)
{
	double numbers[10] = {0};
	char *places = calloc((size_t)size, 16);
	int *counts = malloc((size_t)size * sizeof *counts), *at = malloc((size_t)size * sizeof *at);

	if (!places || !counts || !at)
		MPI_Abort(MPI_COMM_WORLD, 4);
	for (int i = 0; i < size; i++) {
		counts[i] = 1 + i % 2;
		at[i] = 2 * i;
	}
	MPI_Bcast(numbers, 10, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	/* Only rank 0's receiving side means anything, and its sending side is in place. */
	if (rank == 0)
		MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, places, 8, MPI_CHAR, 0, MPI_COMM_WORLD);
	else
		MPI_Gather(places, 8, MPI_CHAR, NULL, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Scatter(places, 4, MPI_CHAR, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	else
		MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, places, 4, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Alltoall(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, places, 2, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Allgatherv(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, places, counts, at, MPI_CHAR, MPI_COMM_WORLD);
	free(places);
	free(counts);
	free(at);
}

/* Those who share the root's group only watch. */
static void between_groups(void)
{
	MPI_Comm half, both;
	char data[16] = {0};
	int first = rank < size / 2, root = !first ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;

	MPI_Comm_split(MPI_COMM_WORLD, first, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? size / 2 : 0, 5, &both);
	MPI_Bcast(data, 16, MPI_CHAR, root, both);
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

static void a_failure(void)
{
	int data = 0, class = 0, code;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	code = MPI_Send(&data, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
	MPI_Error_class(code, &class);
	expect(class, MPI_ERR_RANK, "the error's class");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
		return 7;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	between_two();
	among_all();
	between_groups();
	a_failure();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return wrong;
}
