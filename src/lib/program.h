/* Runs the installed program, which does what the library itself links nothing for. */
#ifndef ASSAY_LIB_PROGRAM_H
#define ASSAY_LIB_PROGRAM_H

/* Runs `assay` with these words (argv[0] included, ends with NULL) to its end: the one $ASSAY_PROGRAM names, else the
 * one that was installed with this library, else that of the PATH. Its standard output goes nowhere. Returns its exit
 * status, -1 where it could not be started or was killed. */
int program_run(char *const *argv);

#endif
