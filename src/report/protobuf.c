#include "report/protobuf.h"

enum wire_type { VARINT = 0, LENGTH_DELIMITED = 2 };

void protobuf_varint(struct buf *message, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_putc(message, (char)(value | 0x80));
	buf_putc(message, (char)value);
}

void protobuf_number(struct buf *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	protobuf_varint(message, field << 3 | VARINT);
	protobuf_varint(message, value);
}

void protobuf_bytes(struct buf *message, unsigned field, const void *bytes, size_t length)
{
	protobuf_varint(message, field << 3 | LENGTH_DELIMITED);
	protobuf_varint(message, length);
	buf_append(message, bytes, length);
}
