/* What went wrong, as one complete sentence for a person.
 *
 * A fallible function returns 0, or a negative value after filling *err. The
 * struct holds its own buffer, so reporting an error can never itself fail. */
#ifndef ASSAY_BASE_ERROR_H
#define ASSAY_BASE_ERROR_H

struct error {
	char text[512];
};

/* Fills *err (which may be NULL) and returns -1, so that a caller can write
 * `return error_set(err, "%s: line %u: ...", path, line);`. */
int error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "PREFIX: " before the sentence that *err already holds; returns -1. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
