/* Why a process that uses CPU time gives no samples, found from outside while it lives. */
#ifndef ASSAY_RECORD_UNSAMPLED_H
#define ASSAY_RECORD_UNSAMPLED_H

#include <stdbool.h>
#include <stddef.h>

#define UNSAMPLED_REASON_MAX 256

/* What it would need to be sampled. */
struct unsampled_needs {
	const char *library; /* path of the sampler */
	const char *rings;   /* absolute path of the folder of ring files */
};

/* Whether no more files can be made in the folder of rings: fills `reason` then, a phrase. */
bool unsampled_folder_full(const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX]);

/* Fills `reason`, a phrase without a full stop. `program` (of `program_size` bytes) gets what it runs, or "". Returns
 * whether the reason is certain whatever came before: the program or its environment cannot be sampled. */
bool unsampled_reason(int pid, const struct unsampled_needs *needs, char reason[UNSAMPLED_REASON_MAX], char *program,
		      size_t program_size);

#endif
