/* Why a call of the library failed: one sentence per thread, for assay_last_error. It allocates nothing. */
#ifndef ASSAY_LIB_LAST_ERROR_H
#define ASSAY_LIB_LAST_ERROR_H

/* Returns -1, so that a caller can write `return last_error_set("%s: …", path)`. */
int last_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
