/* What jansson leaves to be said: where a file is bad, numbers that may be missing, files that are replaced whole. */
#ifndef ASSAY_BASE_JSON_H
#define ASSAY_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

/* For `CLEANUP(json_cleanup) json_t *root = NULL`. */
void json_cleanup(json_t **root);

/* Sets object[key]. A NaN or infinite number leaves the key absent: missing is never 0 and never null. */
void json_put_number(json_t *object, const char *key, double value);
void json_put_integer(json_t *object, const char *key, json_int_t value);
void json_put_bool(json_t *object, const char *key, int value);

/* Bytes that are not UTF-8 are replaced by U+FFFD. NULL text leaves the key absent. */
void json_put_text(json_t *object, const char *key, const char *text);
json_t *json_text(const char *text, size_t length);

/* Reads a file of at most 64 MiB. The error names the path, the line and the column. */
json_t *json_read_file(const char *path, struct error *err);

/* The same of a text that has been read; `path` names it in errors. */
json_t *json_read_text(const char *path, const char *text, size_t length, struct error *err);

/* Indented by 1, keys in the order they were put, 15 digits; an owned string, NULL when out of memory. */
char *json_print(const json_t *root);
int json_write_file(const char *path, const json_t *root, struct error *err);

/* Members of an object that may be of the wrong kind: the fallback where absent or not a number (or text). */
double json_get_number(const json_t *object, const char *key, double fallback);
const char *json_get_text(const json_t *object, const char *key, const char *fallback);

#endif
