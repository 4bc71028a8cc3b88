/* What the files of the plug-in share: how the library is started, how its ids are closed, how its trouble is told.
 *
 * The library is not made for threads. Whoever may be one of several holds hdf5_lock around every call of it. */
#ifndef ASSAY_STORE_HDF5_COMMON_H
#define ASSAY_STORE_HDF5_COMMON_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The library calls abort() where its version is not exactly the header's; hdf5_start() looks itself, and says so. */
#undef H5CHECK
#define H5CHECK

/* Starts the library without its printing and its atexit handler; says its version. */
int hdf5_start(char *text, size_t size, struct error *err);

void hdf5_lock(void);
void hdf5_unlock(void);

/* "HDF5 cannot WHAT OF: cause"; returns -1. */
int hdf5_failed(const char *what, const char *of, struct error *err);

/* Properties for opening and creating: no locks on files, and a small cache for metadata. */
hid_t hdf5_access_list(void);

/* For CLEANUP: closes an id of any kind where it is one. */
void hdf5_close(hid_t *id);

/* Text of variable length in UTF-8, since readers such as h5py give those, and only those, as text. */
hid_t hdf5_text_type(void);

/* An attribute of one text; type: of hdf5_text_type. */
int hdf5_put_text(hid_t at, hid_t type, const char *name, const char *value, struct error *err);

#endif
