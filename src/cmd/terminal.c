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

size_t terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}

size_t terminal_columns_within(int fd, size_t most)
{
	size_t width = terminal_width(fd);

	if (width == 0)
		return 0;
	return width < 60 ? 60 : width > most ? most : width;
}

size_t terminal_columns(int fd)
{
	return terminal_columns_within(fd, 120);
}
