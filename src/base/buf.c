#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char empty[1];

void buf_init(struct buf *b)
{
	*b = (struct buf){.text = empty};
}

void buf_release(struct buf *b)
{
	if (b->room)
		free(b->text);
	buf_init(b);
}

void buf_clear(struct buf *b)
{
	b->length = 0;
	if (b->room)
		b->text[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t extra)
{
	size_t need = b->length + extra + 1;
	size_t room = b->room ? b->room : 64;
	char *text;

	if (need <= b->length) {
		b->failed = true;
		return NULL;
	}
	if (need <= b->room)
		return b->text + b->length;
	while (room < need)
		room = room > SIZE_MAX / 2 ? need : 2 * room;
	text = realloc(b->room ? b->text : NULL, room);
	if (!text) {
		b->failed = true;
		return NULL;
	}
	if (!b->room)
		text[0] = '\0';
	b->text = text;
	b->room = room;
	return b->text + b->length;
}

void buf_append(struct buf *b, const void *bytes, size_t length)
{
	char *to = buf_reserve(b, length);

	if (!to)
		return;
	if (length)
		memcpy(to, bytes, length);
	b->length += length;
	b->text[b->length] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
	buf_append(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
	va_list again;
	int length;
	char *to;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	to = length < 0 ? NULL : buf_reserve(b, (size_t)length);
	if (!to) {
		b->failed = true;
		return;
	}
	vsnprintf(to, (size_t)length + 1, format, args);
	b->length += (size_t)length;
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(b, format, args);
	va_end(args);
}

char *buf_detach(struct buf *b)
{
	char *text;

	if (!b->failed && !buf_reserve(b, 0))
		b->failed = true;
	if (b->failed) {
		buf_release(b);
		return NULL;
	}
	text = b->text;
	text[b->length] = '\0';
	buf_init(b);
	return text;
}
