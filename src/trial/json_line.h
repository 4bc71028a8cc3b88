/* The line on which a part of a JSON text begins, for errors about what it says: jansson knows lines only of what it
 * cannot read. */
#ifndef ASSAY_TRIAL_JSON_LINE_H
#define ASSAY_TRIAL_JSON_LINE_H

#include <stddef.h>

/* A step down: into the member `key` of an object, or with NULL into element `index` of an array. */
struct json_step {
	const char *key;
	size_t index;
};

/* The line, from 1, of the part that the steps lead to: of a member's key, of an element's first character. Where they
 * lead nowhere, of the last part found. The text is one that jansson has read. */
size_t json_line(const char *text, size_t length, const struct json_step *steps, size_t count);

#endif
