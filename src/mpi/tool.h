/* What the parts of libassay-mpi share: a communicator of their own, and who this process is in it.
 *
 * All of it speaks through PMPI, so that neither the program nor another tool sees it; nothing here prints, exits, or
 * lets an error of its own reach the program's error handlers. Collective steps are taken by every rank, whether it
 * records or not: the ranks need not agree on that. */
#ifndef ASSAY_MPI_TOOL_H
#define ASSAY_MPI_TOOL_H

#include <mpi.h>

#include <stdbool.h>
#include <stdint.h>

#define MPI_EXPORT __attribute__((visibility("default")))

#define TOOL_TAG 1

struct tool {
	bool joined;   /* `comm` is there */
	MPI_Comm comm; /* all ranks of MPI_COMM_WORLD */
	int rank, size;
};

extern struct tool tool;

/* The machine's boot: ranks that share it share a clock. "" where it cannot be read. */
struct tool_boot {
	char id[40];
};

void tool_boot_read(struct tool_boot *boot);

/* clocks.c. Finds out which ranks share a clock; collective. */
void clocks_begin(void);

/* How far this rank's clock is from that of rank 0, told to the library; collective. */
void clocks_measure(void);
void clocks_end(void);

/* calls.c: MPI calls as regions, from now on. */
void calls_begin(void);

/* Gives what the ranks' calls moved to rank 0's recording; collective. */
void calls_report(void);

/* Gives what this rank's calls moved to its own recording, where no other rank may be asked any more. */
void calls_report_alone(void);

/* gather.c: brings the recordings of folders that rank 0 does not see into `folder` of rank 0 (NULL: this rank records
 * nothing); collective, after all have ended their recording. */
void gather_recordings(const char *folder);

/* merge.c: runs `assay merge` and waits for it. */
void merge_run(const char *folder, const char *out);

#endif
