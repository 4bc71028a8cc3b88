/* What is known before the target starts: the machine, its state, the command, the environment's harmless part.
 *
 * Written to begin.json at once, so that `recover` can tell what a killed run was. */
#ifndef ASSAY_RECORD_BEGIN_H
#define ASSAY_RECORD_BEGIN_H

#include "base/buf.h"
#include "base/json.h"
#include "exec/machine.h"
#include "record/record.h"

/* Waits, refuses or only looks, as options->precheck says. RECORD_OK or RECORD_REFUSED. */
int begin_precheck(const struct record_options *options, struct machine_state *ret, struct error *err);

/* Why the machine was not clean, separated by semicolons. */
void begin_reasons(const struct machine_state *s, struct buf *out);

/* The object; NULL when out of memory. */
json_t *begin_build(const struct record_options *options, const struct machine_state *state, const char *label,
		    int64_t wall_ns);

/* The target's environment: ours, options->env, ASSAY_MARKERS and ASSAY_RUN_DIR where there is a run directory, and
 * `more` ("K=V", ends with NULL; may be NULL). An array that ends with NULL, owned with begin_environment_free. */
char **begin_environment(const struct record_options *options, const char *markers, const char *run_dir,
			 const char *const *more);
void begin_environment_free(char **environment);

#endif
