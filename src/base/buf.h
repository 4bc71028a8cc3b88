/* A growable string of bytes.
 *
 * Invariants: text is never NULL after buf_init, text[length] is always 0, and
 * the bytes before it may hold anything. Running out of memory is remembered in
 * `failed` instead of being returned by each call: append freely, ask once. */
#ifndef ASSAY_BASE_BUF_H
#define ASSAY_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *text;
	size_t length, room;
	bool failed;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* length 0; memory and `failed` are kept */

void buf_append(struct buf *b, const void *bytes, size_t length);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Makes room for `extra` more bytes and returns where they go, or NULL (and
 * `failed`). The caller adds what it wrote to b->length; text[length] is set by the next call. */
char *buf_reserve(struct buf *b, size_t extra);

/* Hands the text to the caller, who frees it, and starts anew. NULL if it failed. */
char *buf_detach(struct buf *b);

#endif
