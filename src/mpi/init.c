/* MPI_Init, MPI_Finalize and MPI_Abort with the recording around them: which rank this is, how far its clock is from
 * that of rank 0, and at the end one file of all ranks. What MPI answers is passed on unchanged. */
#include "mpi/tool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <assay.h>

struct tool tool = {.comm = MPI_COMM_NULL};

/* What rank 0's environment decides for all. */
struct decision {
	int merge, calls;
};

void tool_boot_read(struct tool_boot *boot)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	memset(boot, 0, sizeof *boot);
	if (fd < 0)
		return;
	length = read(fd, boot->id, sizeof boot->id - 1);
	close(fd);
	boot->id[length > 0 ? (size_t)length : 0] = '\0';
	boot->id[strcspn(boot->id, "\n")] = '\0';
}

static bool is_set_to(const char *name, const char *value)
{
	const char *text = secure_getenv(name);

	return text && strcmp(text, value) == 0;
}

static void describe(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length = 0;

	snprintf(text, sizeof text, "%d", tool.size);
	assay_set_metadata("mpi_size", text);
	if (PMPI_Get_library_version(text, &length) != MPI_SUCCESS || length < 0 || (size_t)length >= sizeof text)
		return;
	text[length] = '\0';
	assay_set_metadata("mpi_library", text);
}

/* Once: a program that has named its rank itself since then is believed. */
static void name_rank(void)
{
	static bool named;

	if (named || assay_set_rank(tool.rank, tool.size) < 0)
		return;
	named = true;
	if (tool.rank == 0)
		describe();
}

static void begin(void)
{
	if (PMPI_Comm_rank(MPI_COMM_WORLD, &tool.rank) != MPI_SUCCESS ||
	    PMPI_Comm_size(MPI_COMM_WORLD, &tool.size) != MPI_SUCCESS)
		return;
	name_rank();
	if (is_set_to("ASSAY_MPI", "calls"))
		calls_begin();
	if (is_set_to("ASSAY_MPI", "alone") || PMPI_Comm_dup(MPI_COMM_WORLD, &tool.comm) != MPI_SUCCESS)
		return;
	PMPI_Comm_set_errhandler(tool.comm, MPI_ERRORS_RETURN);
	tool.joined = true;
	clocks_begin();
	clocks_measure();
}

/* Ends the recording, where a merge is to follow. Returns the folder to merge into *ret_out (both owned): on rank 0
 * alone, NULL where there is nothing to do. */
static char *end(char **ret_out)
{
	struct decision decision = {0};
	const char *folder = assay_directory();
	char *kept = folder ? strdup(folder) : NULL, *out = NULL;

	/* Where the program began to record after MPI_Init. */
	if (kept)
		name_rank();
	if (kept && tool.rank == 0) {
		const char *named = secure_getenv("ASSAY_MERGE");

		decision.calls = is_set_to("ASSAY_MPI", "calls");
		if (!named || !*named)
			decision.merge = asprintf(&out, "%s/regions.h5", kept) >= 0;
		else if (strcmp(named, "off") != 0)
			decision.merge = (out = strdup(named)) != NULL;
	}
	clocks_measure();
	if (PMPI_Bcast(&decision, (int)sizeof decision, MPI_BYTE, 0, tool.comm) != MPI_SUCCESS)
		decision = (struct decision){0};
	if (decision.calls)
		calls_report();
	if (decision.merge) {
		assay_finalize();
		gather_recordings(kept);
	} else {
		assay_flush();
	}
	clocks_end();
	PMPI_Comm_free(&tool.comm);
	tool.joined = false;
	if (decision.merge && tool.rank == 0) {
		*ret_out = out;
		return kept;
	}
	free(kept);
	return NULL;
}

MPI_EXPORT int MPI_Init(int *argc, char ***argv)
{
	int result = PMPI_Init(argc, argv);

	if (result == MPI_SUCCESS)
		begin();
	return result;
}

MPI_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int result = PMPI_Init_thread(argc, argv, required, provided);

	if (result == MPI_SUCCESS)
		begin();
	return result;
}

MPI_EXPORT int MPI_Finalize(void)
{
	char *out = NULL, *folder = NULL;
	int result;

	/* Not joined: never begun, or ended already; then all that is left to say is PMPI's. */
	if (tool.joined)
		folder = end(&out);
	else
		assay_flush();
	result = PMPI_Finalize();
	if (folder)
		merge_run(folder, out);
	free(folder);
	free(out);
	return result;
}

/* What has been recorded is kept without this, too; the counts and the clock are the better for it, and of the bytes
 * that calls moved those of this rank are kept: the others are ended before they are asked. */
MPI_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
	calls_report_alone();
	assay_flush();
	return PMPI_Abort(comm, code);
}
