#include "cmd/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_has_colour(int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
}
