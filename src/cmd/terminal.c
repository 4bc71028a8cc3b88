#include "cmd/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_has_colour(int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
}

size_t terminal_columns_within(int fd, size_t most)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 0;
	return size.ws_col < 60 ? 60 : size.ws_col > most ? most : size.ws_col;
}

size_t terminal_columns(int fd)
{
	return terminal_columns_within(fd, 120);
}
