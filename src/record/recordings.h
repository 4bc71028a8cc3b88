/* The files that processes of a run keep of themselves in a folder, "PREFIX-PID-…": are there any, and does one still
 * write. */
#ifndef ASSAY_RECORD_RECORDINGS_H
#define ASSAY_RECORD_RECORDINGS_H

#include <stdbool.h>

/* Whether there are recordings; *ret_writing: a process that has one is there still. Of another machine or name space
 * the number means another process, at worst a living one: then recordings are kept that could go. */
bool recordings_look(const char *folder, const char *prefix, bool *ret_writing);

#endif
