/* What may be shown where: colour and progress only on a terminal. */
#ifndef ASSAY_CMD_TERMINAL_H
#define ASSAY_CMD_TERMINAL_H

#include <stdbool.h>

/* The descriptor is a terminal, NO_COLOR is not set, and TERM is not "dumb". */
bool terminal_has_colour(int fd);

#endif
