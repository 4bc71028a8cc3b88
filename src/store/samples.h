/* Reading a samples segment into a profile without names. Trusts nothing: a damaged or hostile segment gives what came
 * before the damage, and says so in the profile. */
#ifndef ASSAY_STORE_SAMPLES_H
#define ASSAY_STORE_SAMPLES_H

#include "base/error.h"
#include "model/profile.h"

/* *ret must be initialised. Fails where there is no such segment, or when out of memory. */
int samples_read(const char *path, struct profile *ret, struct error *err);

#endif
