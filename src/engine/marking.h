/* Marks as a parser makes them: in order of time, inside the run, and only where something begins.
 *
 * A parser says when what began; a mark that would begin a phase of no length, or the phase that is on already, is not
 * made. */
#ifndef ASSAY_ENGINE_MARKING_H
#define ASSAY_ENGINE_MARKING_H

#include "engine/engine.h"

#define MARKING_MAX 20000 /* marks; a log with more says so in a warning */

/* From t on the engine is in the phase `name`. t is moved to the last mark's time or the run's ends where it lies
 * outside. Where the last mark has the same time it is replaced. */
int marking_add(struct engine_result *r, const struct engine_context *c, int64_t t, enum phase_group group,
		const char *name, struct error *err);

/* The last mark's time, or the run's start. */
int64_t marking_last(const struct engine_result *r, const struct engine_context *c);

#endif
