/* Inside the plug-in: writing columns and texts. The library's lock is held. */
#ifndef ASSAY_STORE_REGION_HDF5_PUT_H
#define ASSAY_STORE_REGION_HDF5_PUT_H

#include "store/region_hdf5.h"

/* A new group below `at`; -1 with *err. */
hid_t h5_put_group(hid_t at, const char *name, struct error *err);

/* A column of a fixed number of rows; compressed where it is large. `type` is as it is in memory. */
int h5_put_column(hid_t at, const char *name, hid_t file_type, hid_t type, hsize_t rows, const void *values,
		  struct error *err);

/* A column of texts: text(context, i), NULL being empty. They are made valid UTF-8. */
int h5_put_texts(hid_t at, const char *name, hsize_t rows, const char *(*text)(const void *context, hsize_t i),
		 const void *context, struct error *err);

/* The properties of a data set in chunks of so many rows, shuffled and deflated. */
hid_t h5_put_chunks(hsize_t rows);

int h5_put_integer(hid_t at, const char *name, int64_t value, struct error *err);

/* The group "metadata". */
int h5_put_facts(hid_t file, const struct regions *r, struct error *err);

#endif
