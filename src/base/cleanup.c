#include "base/cleanup.h"

#include <stdlib.h>
#include <unistd.h>

void free_cleanup(void *pointer)
{
	free(*(void **)pointer);
}

void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
