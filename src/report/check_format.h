/* The formats of `assay check`: one file in this folder (check_NAME.c) and one row in check_formats.def each. */
#ifndef ASSAY_REPORT_CHECK_FORMAT_H
#define ASSAY_REPORT_CHECK_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "judge/check.h"

struct check_report {
	const struct check_result *result;
	const char *a, *b;  /* the files */
	const char *metric; /* "total", of each region; NULL: each item is a metric of its own */
	const char *const *notes; /* sentences */
	size_t note_count;
	bool colour;
	bool all; /* also what passed; formats for programs hold it anyway */
};

struct check_format {
	const char *name, *summary;
	int (*write)(const struct check_report *r, FILE *out, struct error *err);
};

#define CHECK_FORMAT(name, summary) int check_format_##name(const struct check_report *r, FILE *out, struct error *err);
#include "report/check_formats.def"
#undef CHECK_FORMAT

extern const struct check_format check_formats[];
extern const size_t check_format_count;

const struct check_format *check_format_find(const char *name); /* NULL: none */

#endif
