#include "cmd/notes.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define NOTE_COLUMNS 1000

void notes_print_text(const char *who, const char *text)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, text, NOTE_COLUMNS);
	fprintf(stderr, "%s: %s\n", who, line.text);
}

void notes_print_texts(const char *who, char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		notes_print_text(who, texts[i]);
}

void notes_print(const char *who, const struct warnings *notes)
{
	notes_print_texts(who, notes->texts, notes->count);
	if (notes->lost)
		fprintf(stderr, "%s: ... and %zu more such notes\n", who, notes->lost);
}
