/* The files whose code is sampled: opened when first seen, where the process that has them mapped sees them, and held
 * open, so that names can be read from them when they are deleted or replaced before the run ends.
 *
 * Defines the modules in the samples segment. Knows neither rings nor perf, and reads of an ELF file no more than its
 * program headers. */
#ifndef ASSAY_RECORD_MODULE_FILES_H
#define ASSAY_RECORD_MODULE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/warnings.h"
#include "record/samples_writer.h"

struct module_files;

/* Both borrowed, until module_files_free. */
int module_files_new(struct samples_writer *writer, struct warnings *warnings, struct module_files **ret,
		     struct error *err);
void module_files_free(struct module_files *f); /* closes them; NULL accepted */

/* A mapped file as somebody saw it. */
struct module_seen {
	int pid;              /* who has it mapped, as seen from here; 0: not known, or gone */
	const char *path;     /* as that process sees it */
	bool program;         /* it is the program itself, which /proc/PID/exe names as long as it runs */
	uint64_t start, end;  /* where it is mapped; 0, 0: not known */
	const uint8_t *build_id;
	size_t build_id_length; /* 0: not known, or none */
	/* Where there is no build-id, what else can show that a file is the one; each may be missing. */
	uint64_t inode;        /* of the mapping; 0: not known */
	const char *witness;   /* name of a file that only this program image has mapped; NULL: none */
	int64_t since;         /* when the program image began; 0: not known */
};

/* The id of its module (kind FILE) in the segment: the same for the same file in all processes. Its file is opened
 * where it has not been; a module whose file cannot be opened is defined all the same. */
uint32_t module_files_define(struct module_files *f, const struct module_seen *seen);

/* The module's open file, borrowed, or -1. */
int module_files_fd(const struct module_files *f, uint32_t module);

/* Opens a file that the process has mapped; close-on-exec. The descriptor, or -errno: -ESTALE where what stands there
 * cannot be shown to be that file (the process may run another program by now, or the file was replaced). */
int module_files_open(const struct module_seen *seen);

/* What is to be subtracted from an address for the address in the file's own terms, where `offset` bytes of the file on
 * are mapped at `start`. False where the file is no 64-bit ELF file or does not load that part. */
bool module_files_bias(int fd, uint64_t offset, uint64_t start, uint64_t *ret_bias);

#endif
