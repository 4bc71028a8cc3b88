/* MPI calls as regions, with the bytes that they move, from the table in calls.def. A wrapper begins the region, asks
 * PMPI, ends the region, and passes on what PMPI answered. What the calls of one function moved is added up per rank:
 * a region has a time for each call, and no place for a size. */
#include "mpi/tool.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <assay.h>

#define RANKS_LISTED 256 /* of larger jobs the total and the extremes are told */

enum call {
#define CALL(name, bytes, parameters, arguments) CALL_##name,
#include "mpi/calls.def"
#undef CALL
	CALL_COUNT
};

static struct assay_region regions[CALL_COUNT] = {
#define CALL(name, bytes, parameters, arguments) {#name, NULL, "category=mpi", 0, 0},
#include "mpi/calls.def"
#undef CALL
};

/* TOLD() in the table: only a function of our own has a status of its own. */
#define TOLD(status) ((status) == MPI_STATUS_IGNORE ? &own : (status))

static atomic_bool on;
static _Atomic uint64_t moved[CALL_COUNT];

static uint64_t sized(long long count, MPI_Datatype type)
{
	int size = 0;

	if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0)
		return 0;
	return (uint64_t)count * (uint64_t)size;
}

/* What came, of the room that was offered. A message that is no whole number of its type counts as that room: how much
 * of a type's bytes a part of it moves MPI does not say. */
static uint64_t received(const MPI_Status *status, int room, MPI_Datatype type)
{
	int count = MPI_UNDEFINED;

	if (PMPI_Get_count(status, type, &count) != MPI_SUCCESS || count == MPI_UNDEFINED)
		count = room;
	return sized(count, type);
}

/* In a communicator between groups, ranks without a part in the call may pass anything but these two roots; and what
 * the others pass in means one thing or the other by their side. Nothing is counted there. */
static uint64_t rooted(int root, int count, MPI_Datatype type)
{
	return root == MPI_PROC_NULL || root == MPI_ROOT ? 0 : sized(count, type);
}

static int group_size(MPI_Comm comm)
{
	int size = 0;

	return PMPI_Comm_size(comm, &size) == MPI_SUCCESS ? size : 0;
}

/* How many this rank sends to. */
static int peers(MPI_Comm comm)
{
	int between = 0, size = 0;

	if (PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS || !between)
		return group_size(comm);
	return PMPI_Comm_remote_size(comm, &size) == MPI_SUCCESS ? size : 0;
}

static long long add_up(const int counts[], int count)
{
	long long sum = 0;

	for (int i = 0; i < count; i++)
		sum += counts[i];
	return sum;
}

static long long sum_counts(const int counts[], MPI_Comm comm)
{
	return add_up(counts, peers(comm));
}

static long long group_counts(const int counts[], MPI_Comm comm)
{
	return add_up(counts, group_size(comm));
}

static int own_count(const int counts[], MPI_Comm comm)
{
	int rank;

	return PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS ? counts[rank] : 0;
}

#define CALL(name, bytes, parameters, arguments)                                                                       \
	MPI_EXPORT int name parameters                                                                                 \
	{                                                                                                              \
		bool watched = atomic_load_explicit(&on, memory_order_relaxed);                                        \
		MPI_Status own;                                                                                        \
		int result;                                                                                            \
														       \
		(void)own;                                                                                             \
		if (!watched)                                                                                          \
			return P##name arguments;                                                                      \
		assay_region_begin(&regions[CALL_##name]);                                                             \
		result = P##name arguments;                                                                            \
		assay_region_end(&regions[CALL_##name]);                                                               \
		if (result == MPI_SUCCESS)                                                                             \
			atomic_fetch_add_explicit(&moved[CALL_##name], (uint64_t)(bytes), memory_order_relaxed);       \
		return result;                                                                                         \
	}
#include "mpi/calls.def"
#undef CALL

void calls_begin(void)
{
	atomic_store(&on, true);
}

/* {"total":9,"min":0,"max":5,"ranks":[5,0,4]}: JSON, whatever the locale. `each` has a row of counts per rank, or is
 * NULL. */
static void tell(enum call call, uint64_t total, uint64_t least, uint64_t most, const uint64_t *each)
{
	char key[64], *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	fprintf(out, "{\"total\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64, total, least, most);
	for (int rank = 0; each && rank < tool.size; rank++)
		fprintf(out, "%s%" PRIu64, rank ? "," : ",\"ranks\":[", each[(size_t)rank * CALL_COUNT + call]);
	fprintf(out, each ? "]}" : "}");
	if (fclose(out) == 0) {
		snprintf(key, sizeof key, "mpi_bytes.%s", regions[call].name);
		assay_set_metadata(key, text);
	}
	free(text);
}

void calls_report_alone(void)
{
	for (enum call i = 0; i < CALL_COUNT; i++) {
		uint64_t bytes = atomic_load(&moved[i]);
		char key[96], text[24];

		if (!bytes)
			continue;
		snprintf(key, sizeof key, "mpi_bytes.%s.rank%d", regions[i].name, tool.rank);
		snprintf(text, sizeof text, "%" PRIu64, bytes);
		assay_set_metadata(key, text);
	}
}

void calls_report(void)
{
	uint64_t own[CALL_COUNT], total[CALL_COUNT] = {0}, least[CALL_COUNT] = {0}, most[CALL_COUNT] = {0};
	uint64_t *each = NULL;
	int listed = 0;

	for (size_t i = 0; i < CALL_COUNT; i++)
		own[i] = atomic_load(&moved[i]);
	PMPI_Reduce(own, total, CALL_COUNT, MPI_UINT64_T, MPI_SUM, 0, tool.comm);
	PMPI_Reduce(own, least, CALL_COUNT, MPI_UINT64_T, MPI_MIN, 0, tool.comm);
	PMPI_Reduce(own, most, CALL_COUNT, MPI_UINT64_T, MPI_MAX, 0, tool.comm);
	if (tool.rank == 0 && tool.size <= RANKS_LISTED) {
		each = calloc((size_t)tool.size, sizeof own);
		listed = each != NULL;
	}
	PMPI_Bcast(&listed, 1, MPI_INT, 0, tool.comm);
	if (listed)
		PMPI_Gather(own, CALL_COUNT, MPI_UINT64_T, each, CALL_COUNT, MPI_UINT64_T, 0, tool.comm);
	for (enum call i = 0; tool.rank == 0 && i < CALL_COUNT; i++)
		if (total[i])
			tell(i, total[i], least[i], most[i], each);
	free(each);
}
