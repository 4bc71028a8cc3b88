/* Runs the installed program, which does what the libraries in target processes link nothing for. */
#ifndef ASSAY_WIRE_PROGRAM_H
#define ASSAY_WIRE_PROGRAM_H

/* Runs `assay` with these words (argv[0] included, ends with NULL) to its end: the one $ASSAY_PROGRAM names, else the
 * one that was installed with this library, else that of the PATH. Its standard output goes nowhere: it must
 * not be mixed with what this program prints; its errors may. Returns its exit status; 0 where this program collects
 * all its children and took this one, too; -1 where it could not be started or was killed. */
int program_run(char *const *argv);

#endif
