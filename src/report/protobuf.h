/* Protocol buffers, the few pieces that one format needs: fields appended to a message in memory. */
#ifndef ASSAY_REPORT_PROTOBUF_H
#define ASSAY_REPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* A number without a field before it: an element of a packed list, whose bytes then go into protobuf_bytes. */
void protobuf_varint(struct buf *message, uint64_t value);

/* A number field; 0, which is what a missing one means, is left out. */
void protobuf_number(struct buf *message, unsigned field, uint64_t value);

/* A text, a message or a packed list; an empty one is written, too, since a list of texts counts it. */
void protobuf_bytes(struct buf *message, unsigned field, const void *bytes, size_t length);

#endif
