/* MPI_Init and its like for programs in Fortran. MPI libraries call their own PMPI functions behind the Fortran ones,
 * so that a wrapper in C would never be asked; each of the names that compilers and the modules mpi and mpi_f08 give
 * them leads to the wrapper in C here. */
#include "mpi/tool.h"

/* An optional argument that is left out is NULL. */
static void init(MPI_Fint *ierror)
{
	int result = MPI_Init(NULL, NULL);

	if (ierror)
		*ierror = (MPI_Fint)result;
}

static void init_thread(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
	int got = 0, result = MPI_Init_thread(NULL, NULL, (int)*required, &got);

	*provided = (MPI_Fint)got;
	if (ierror)
		*ierror = (MPI_Fint)result;
}

static void finalize(MPI_Fint *ierror)
{
	int result = MPI_Finalize();

	if (ierror)
		*ierror = (MPI_Fint)result;
}

#define INIT(name)                                                                                                     \
	MPI_EXPORT void name(MPI_Fint *ierror);                                                                        \
	void name(MPI_Fint *ierror)                                                                                    \
	{                                                                                                              \
		init(ierror);                                                                                          \
	}
#define INIT_THREAD(name)                                                                                              \
	MPI_EXPORT void name(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror);                          \
	void name(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)                                      \
	{                                                                                                              \
		init_thread(required, provided, ierror);                                                               \
	}
#define FINALIZE(name)                                                                                                 \
	MPI_EXPORT void name(MPI_Fint *ierror);                                                                        \
	void name(MPI_Fint *ierror)                                                                                    \
	{                                                                                                              \
		finalize(ierror);                                                                                      \
	}

INIT(mpi_init)
INIT(mpi_init_)
INIT(mpi_init__)
INIT(MPI_INIT)
INIT(mpi_init_f08_)
INIT_THREAD(mpi_init_thread)
INIT_THREAD(mpi_init_thread_)
INIT_THREAD(mpi_init_thread__)
INIT_THREAD(MPI_INIT_THREAD)
INIT_THREAD(mpi_init_thread_f08_)
FINALIZE(mpi_finalize)
FINALIZE(mpi_finalize_)
FINALIZE(mpi_finalize__)
FINALIZE(MPI_FINALIZE)
FINALIZE(mpi_finalize_f08_)
