/* What was measured of a machine once and is used by many runs: a small JSON file in the user's cache folder, named
 * after the machine's identity. The only place that knows it. */
#ifndef ASSAY_STORE_PEAKFILE_H
#define ASSAY_STORE_PEAKFILE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "model/bandwidth.h"

/* What makes a machine the same one: a change of any of these asks for a new measurement. */
struct peak_identity {
	const char *machine_id; /* /etc/machine-id, or "" */
	const char *cpu_model, *hypervisor;
	int cpus, cpus_allowed;
	double memory_bytes;
};

/* $XDG_CACHE_HOME/assay/machine-HASH.json, else below ~/.cache; false where neither variable is set. */
bool peakfile_path(const struct peak_identity *id, struct buf *ret);

/* 0 and *ret; 1 where there is none, or one of another machine or form; -1 with *err where it cannot be read. */
int peakfile_load(const struct peak_identity *id, struct bandwidth *ret, struct error *err);

int peakfile_save(const struct peak_identity *id, const struct bandwidth *b, struct error *err);

/* A measurement as JSON, for this file, begin.json and run.json; NULL when out of memory. */
json_t *bandwidth_json(const struct bandwidth *b);

/* The reverse. -1 where it is none; numbers that cannot be are refused. */
int bandwidth_from_json(const json_t *object, struct bandwidth *ret);

#endif
