/* How far each machine's CLOCK_MONOTONIC is from that of rank 0. Ranks of one boot share a clock; of any other boot one
 * rank asks rank 0 for the time, often, and takes the answer that came back fastest: it is right within half of its
 * round trip. (Leaving a barrier at the same time is no measure: ranks leave it hundreds of microseconds apart.) */
#include "mpi/tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <assay.h>

#define ROUNDS 100 /* a quiet moment comes soon; on a network of 2 us a round it is over in a blink */
#define UNKNOWN (-1)

struct offset {
	int64_t offset_ns, bound_ns;
	int known;
};

static int leader = UNKNOWN; /* the rank that asks for those of this boot; 0: the clock is that of rank 0 */
static MPI_Comm mates = MPI_COMM_NULL; /* the ranks of this boot, the leader first */
static int *leaders;          /* on rank 0: all but itself, in the order of their ranks */
static int leader_count;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* They are zero behind their text. */
static bool is_same(const struct tool_boot *a, const struct tool_boot *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* Fills found[rank] with the first rank of the same boot; of those whose boot is not known, with UNKNOWN. */
static void find_leaders(const struct tool_boot *boots, int *found)
{
	leader_count = 0;
	for (int rank = 0; rank < tool.size; rank++) {
		found[rank] = UNKNOWN;
		if (!*boots[rank].id)
			continue;
		/* Ranks are mostly dealt out machine by machine: look at the neighbour first. */
		if (rank > 0 && is_same(&boots[rank], &boots[rank - 1])) {
			found[rank] = found[rank - 1];
			continue;
		}
		if (is_same(&boots[rank], &boots[0]))
			found[rank] = 0;
		for (int i = 0; found[rank] == UNKNOWN && i < leader_count; i++)
			if (is_same(&boots[rank], &boots[leaders[i]]))
				found[rank] = leaders[i];
		if (found[rank] != UNKNOWN)
			continue;
		found[rank] = rank;
		leaders[leader_count++] = rank;
	}
}

void clocks_begin(void)
{
	struct tool_boot boot, *boots = NULL;
	int *found = NULL;
	int enough = 1;

	tool_boot_read(&boot);
	if (tool.rank == 0) {
		boots = calloc((size_t)tool.size, sizeof *boots);
		found = calloc((size_t)tool.size, sizeof *found);
		leaders = calloc((size_t)tool.size, sizeof *leaders);
		enough = boots && found && leaders;
	}
	PMPI_Bcast(&enough, 1, MPI_INT, 0, tool.comm);
	if (enough) {
		PMPI_Gather(&boot, (int)sizeof boot, MPI_BYTE, boots, (int)sizeof boot, MPI_BYTE, 0, tool.comm);
		if (tool.rank == 0)
			find_leaders(boots, found);
		PMPI_Scatter(found, 1, MPI_INT, &leader, 1, MPI_INT, 0, tool.comm);
		PMPI_Comm_split(tool.comm, leader == UNKNOWN ? MPI_UNDEFINED : leader, tool.rank, &mates);
		if (mates != MPI_COMM_NULL)
			PMPI_Comm_set_errhandler(mates, MPI_ERRORS_RETURN);
	}
	free(boots);
	free(found);
}

static void answer(int rank)
{
	for (int i = 0; i < ROUNDS; i++) {
		int64_t now;

		if (PMPI_Recv(NULL, 0, MPI_BYTE, rank, TOOL_TAG, tool.comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return;
		now = now_ns();
		PMPI_Send(&now, 1, MPI_INT64_T, rank, TOOL_TAG, tool.comm);
	}
}

static void ask(struct offset *ret)
{
	int64_t shortest = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t sent = now_ns(), there, back;

		if (PMPI_Send(NULL, 0, MPI_BYTE, 0, TOOL_TAG, tool.comm) != MPI_SUCCESS ||
		    PMPI_Recv(&there, 1, MPI_INT64_T, 0, TOOL_TAG, tool.comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return;
		back = now_ns();
		if (back - sent >= shortest)
			continue;
		shortest = back - sent;
		*ret = (struct offset){there - (sent + shortest / 2), shortest / 2 + 1, 1};
	}
}

void clocks_measure(void)
{
	struct offset offset = {.known = leader == 0};

	if (tool.rank == 0)
		for (int i = 0; i < leader_count; i++)
			answer(leaders[i]);
	else if (leader == tool.rank)
		ask(&offset);
	if (mates == MPI_COMM_NULL || (leader != 0 && PMPI_Bcast(&offset, (int)sizeof offset, MPI_BYTE, 0, mates)))
		return;
	if (offset.known)
		assay_set_clock_offset(offset.offset_ns, offset.bound_ns);
}

void clocks_end(void)
{
	if (mates != MPI_COMM_NULL)
		PMPI_Comm_free(&mates);
	free(leaders);
	leaders = NULL;
	leader_count = 0;
	leader = UNKNOWN;
}
