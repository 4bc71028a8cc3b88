/* The library is built with hidden visibility: what include/assay.h declares is exported by name, nothing else. */
#ifndef ASSAY_LIB_EXPORT_H
#define ASSAY_LIB_EXPORT_H

#define ASSAY_EXPORT __attribute__((visibility("default")))

#endif
