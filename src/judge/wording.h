/* What the judge's sentences are put together from: text within its room, numbers as evidence, figures with their
 * units. */
#ifndef ASSAY_JUDGE_WORDING_H
#define ASSAY_JUDGE_WORDING_H

#include "base/units.h"
#include "judge/phase_facts.h"
#include "model/limit.h"

/* Appends to l->why; what finds no room is cut. */
void say(struct limit *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a number to a list of EVIDENCE_MAX; one that was not measured is left out, as is what finds no room. */
void evidence_add(struct evidence *list, size_t *count, const char *name, double value);
void note(struct limit *l, const char *name, double value);

/* The figures that every verdict on the CPU rests on. */
void note_cpu(const struct phase_facts *p, struct limit *l);

/* "Host RAM is short: ", or that it is short under the control group's limit. */
void say_short_of_memory(const struct phase_facts *p, struct limit *l);

/* "48.2 to 53.0 GB/s that as many threads can read here (measured ...)". */
void say_peak(const struct phase_facts *p, struct limit *l);

/* Which counters were missing. */
void say_missing(const struct phase_facts *p, struct limit *l);

struct units_text wording_rate(double bytes_per_s); /* "1.20 GiB/s" */
struct units_text wording_cores(double count);      /* "3.20 cores" */

#endif
