/* What may be shown where: colour and progress only on a terminal. */
#ifndef ASSAY_CMD_TERMINAL_H
#define ASSAY_CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* The descriptor is a terminal, NO_COLOR is not set, and TERM is not "dumb". */
bool terminal_has_colour(int fd);

/* The terminal's own width, for a line that must not wrap; 0 where it is none. */
size_t terminal_width(int fd);

/* How wide lines may be: the terminal's width within [60, 120]; 0 where it is none. */
size_t terminal_columns(int fd);

/* The same for tables that use what there is, up to `most` columns. */
size_t terminal_columns_within(int fd, size_t most);

#endif
