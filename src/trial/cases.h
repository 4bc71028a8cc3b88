/* cases.json: what a matrix runs on both sides. Read, checked and merged with its defaults; what is wrong with it is
 * named with the line and the key.
 *
 *   {"defaults": {"binary": TEXT, "prefix": [TEXT...], "args": [TEXT...], "env": {NAME: TEXT...},
 *                 "model": TEXT, "gpus": TEXT},
 *    "cases": [{"label": TEXT, and any of those}, ...]}
 *
 * It knows neither sides nor folders. */
#ifndef ASSAY_TRIAL_CASES_H
#define ASSAY_TRIAL_CASES_H

#include <stddef.h>

#include "base/error.h"
#include "base/json.h"

#define CASES_MAX 10000
#define CASES_FILE_MAX ((size_t)16 << 20)

struct matrix_case {
	char *label, *tag; /* tag: its folder's name, distinct from all others */
	char *binary;      /* "llama-bench" where none is named */
	char **prefix, **args; /* end with NULL; the defaults' args come before the case's own */
	char **env;        /* "NAME=TEXT", ends with NULL; the case's own replace the defaults' */
	char *model, *gpus; /* NULL: none */
};

struct cases {
	struct matrix_case *items;
	size_t count;
	json_t *root; /* as read, to tell whether it has changed */
};

void cases_release(struct cases *c);

/* `name` stands for the text in errors. *ret is untouched on failure. */
int cases_parse(const char *text, size_t length, const char *name, struct cases *ret, struct error *err);
int cases_read(const char *path, struct cases *ret, struct error *err);

#endif
