/* Texts that are part of the program, made at build time of the files that they are called after. */
#ifndef ASSAY_EXEC_SNIPPET_TEXTS_H
#define ASSAY_EXEC_SNIPPET_TEXTS_H

extern const char snippet_runner_h[], snippet_runner_c[], assay_measure_h[];

#endif
