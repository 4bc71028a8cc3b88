/* The library is built with hidden visibility: what include/assay.h declares is exported by name, nothing else. */
#ifndef ASSAY_LIB_EXPORT_H
#define ASSAY_LIB_EXPORT_H

#define ASSAY_EXPORT __attribute__((visibility("default")))
/* Of what stands in other people's inner loops: in as few lines of the cache as can be. */
#define ASSAY_EXPORT_HOT __attribute__((visibility("default"), aligned(64)))

#endif
