/* A figure of a process's memory over time, as SVG, PDF or PNG: its resources and GPUs as lines, its peak marked, and
 * the kernel's high-water mark where that is above all readings. */
#ifndef ASSAY_REPORT_PLOT_MEMORY_H
#define ASSAY_REPORT_PLOT_MEMORY_H

#include <stdbool.h>
#include <stdio.h>

#include "report/canvas.h"
#include "report/memory_course.h"
#include "report/spy_report.h"

/* The series of `course` are those of enum spy_resource, and behind them the GPUs. */
struct plot_memory {
	const struct spy_result *result;
	const struct spy_subject *subject;
	const struct course *course;
};

/* The format by the end of a path: .svg, .pdf or .png; false where it has none of them. */
bool plot_memory_format(const char *path, enum canvas_format *ret);

int plot_memory_draw(const struct plot_memory *p, const struct canvas_plugin *on, enum canvas_format format, FILE *out,
		     struct error *err);

#endif
