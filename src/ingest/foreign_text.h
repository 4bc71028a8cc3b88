/* The text of another tool's file as JSON values: one, or several after each other. What they mean is not known here.
 *
 * Bare NaN and Infinity, which C and Python programs print though JSON has no such thing, are read as text, so that a
 * reader can name the value. Sizes and counts are bounded before anything is built from them. */
#ifndef ASSAY_INGEST_FOREIGN_TEXT_H
#define ASSAY_INGEST_FOREIGN_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct foreign_text {
	const char *source; /* borrowed; names the file in errors */
	char *text;	    /* a copy, same length as the file */
	size_t length, at;
	int line, column; /* of `at`, from 0 */
};

/* Fails where the text is larger than 64 MiB, or holds so many values that they would fill the memory. */
int foreign_text_init(struct foreign_text *t, const char *text, size_t length, const char *source, struct error *err);
void foreign_text_release(struct foreign_text *t); /* also of one that is all zeros */

/* 1 and the next object or array, owned by the caller; 0 at the end; -1 with the line and column of what is wrong. */
int foreign_text_next(struct foreign_text *t, json_t **ret, struct error *err);

/* The text as one object. NULL also where something stands behind it. */
json_t *foreign_text_object(const char *text, size_t length, const char *source, struct error *err);

/* Whether the outermost object, or the first one in the outermost array, has this key, as far as its first 64 KiB
 * tell. The text need not be whole. */
bool foreign_text_has_key(const char *text, size_t length, const char *key);

/* "SOURCE: benchmark "NAME": "KEY" WHAT", -1. NAME and KEY come from the file: they are cut and made printable. */
int foreign_wrong(const char *source, const char *name, const char *key, const char *what, struct error *err);

/* A number of the file that can be a result: finite and not negative; anything else fails as above. */
int foreign_number(const char *source, const char *name, const char *key, const json_t *value, double *ret,
		   struct error *err);

#endif
