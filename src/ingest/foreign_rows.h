/* What a file of benchmarks holds, collected value by value and handed over as metrics and arms once all of it has been
 * read. No format is known here. */
#ifndef ASSAY_INGEST_FOREIGN_ROWS_H
#define ASSAY_INGEST_FOREIGN_ROWS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "model/arm.h"
#include "model/metric.h"

/* Something that is measured of each benchmark. */
struct foreign_quantity {
	const char *suffix; /* its metric is "NAME: SUFFIX"; NULL: NAME, what the benchmark is about */
	const char *unit;
	double scale;  /* what the file's number is multiplied by */
	int direction; /* as in struct metric_desc, like the next */
	double relative_floor, absolute_floor;
	bool gated;
};

/* Seconds as the tool took them: what every format but one is about. */
extern const struct foreign_quantity foreign_seconds;

struct foreign_series {
	char *name;
	struct foreign_quantity quantity; /* its suffix is part of the name already; the unit is borrowed */
};

struct foreign_value {
	uint32_t series, repetition;
	double value;
};

struct foreign_benchmark {
	char *name;
	uint32_t repetitions; /* so far, failed ones too */
};

struct foreign_failure {
	uint32_t benchmark, repetition;
};

struct foreign_rows {
	const char *source; /* borrowed */
	struct foreign_benchmark *benchmarks;
	struct foreign_series *series;
	struct foreign_value *values;
	struct foreign_failure *failures;
	size_t benchmark_count, benchmark_room, series_count, series_room, value_count, value_room, failure_count,
		failure_room;
	json_t *benchmark_index, *series_index; /* name to number */
};

void foreign_rows_init(struct foreign_rows *r, const char *source);
void foreign_rows_release(struct foreign_rows *r);

/* The benchmark of that name, new or known; 100,000 at most. A name that comes again means further repetitions. */
int foreign_rows_benchmark(struct foreign_rows *r, const char *name, uint32_t *ret, struct error *err);

/* Begins a repetition of it and returns its number, from 0. */
uint32_t foreign_rows_repeat(struct foreign_rows *r, uint32_t benchmark);

/* A value of a repetition: `key` names it where it is refused. */
int foreign_rows_put(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition, const struct foreign_quantity *q,
		     const char *key, const json_t *value, struct error *err);

/* The repetition failed: none of its values counts. */
int foreign_rows_fail(struct foreign_rows *r, uint32_t benchmark, uint32_t repetition, struct error *err);

/* Everything as metrics and arms: the ith repetition of each benchmark goes to the ith arm, each failed one to an arm
 * of its own. Fails where there is nothing. */
int foreign_rows_finish(struct foreign_rows *r, struct metric_set *metrics, struct arms *arms, struct error *err);

#endif
