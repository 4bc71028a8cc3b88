/* What held a phase back, and what moved: the answers of the judge, as plain data.
 *
 * The sentences are complete and carry the numbers that they rest on; the same numbers stand as evidence, for scripts.
 */
#ifndef ASSAY_MODEL_LIMIT_H
#define ASSAY_MODEL_LIMIT_H

#include <stddef.h>

enum limit_kind {
	LIMIT_CPU,
	LIMIT_MEMORY_BANDWIDTH,
	LIMIT_RAM,
	LIMIT_DISK,
	LIMIT_GPU,
	LIMIT_PCIE,
	LIMIT_WAIT,
	LIMIT_NETWORK,
	LIMIT_UNKNOWN,
};

enum limit_confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

const char *limit_kind_name(enum limit_kind kind);
const char *limit_confidence_name(enum limit_confidence confidence);

/* A number that a sentence rests on. NaN where it was not measured. */
struct evidence {
	const char *name; /* with its unit, as a key of JSON: "read_mib_per_s"; static */
	double value;
};

#define EVIDENCE_MAX 16

struct limit {
	size_t phase; /* index into the run's phases */
	enum limit_kind kind;
	const char *detail; /* static; NULL: none. Of cpu: "one thread", "all threads", "contended", "quota" */
	enum limit_confidence confidence; /* of "unknown" too: low */
	char why[640];
	struct evidence evidence[EVIDENCE_MAX];
	size_t evidence_count;
};

enum movement_level { MOVEMENT_INFO, MOVEMENT_NOTE, MOVEMENT_WARNING };

const char *movement_level_name(enum movement_level level);

struct movement {
	enum movement_level level;
	char text[400];
	struct evidence evidence[EVIDENCE_MAX];
	size_t evidence_count;
};

#endif
