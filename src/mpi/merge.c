/* Runs `assay merge` after MPI has ended, as a process of its own: the library links nothing that writes such files.
 * The program that merges says itself what went wrong; where it cannot be started there is no file, and no more. */
#include "mpi/tool.h"

#include <errno.h>
#include <stddef.h>

#include "wire/program.h"

void merge_run(const char *folder, const char *out)
{
	/* "--": a folder's name may begin with a dash. */
	char *const argv[] = {(char *)"assay", (char *)"merge", (char *)"-q", (char *)"-o", (char *)out, (char *)"--",
			      (char *)folder, NULL};
	int saved = errno;

	program_run(argv);
	errno = saved;
}
