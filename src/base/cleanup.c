#include "base/cleanup.h"

#include <stdlib.h>
#include <unistd.h>

void free_cleanup(void *pointer)
{
	free(*(void **)pointer);
}

void file_cleanup(FILE **f)
{
	if (*f)
		fclose(*f);
}

void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
