#include "model/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARNINGS_MAX 200

void warnings_init(struct warnings *w)
{
	*w = (struct warnings){0};
}

void warnings_release(struct warnings *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->texts[i]);
	free(w->texts);
	warnings_init(w);
}

static int grow(struct warnings *w)
{
	size_t room = w->room ? 2 * w->room : 16;
	char **texts = reallocarray(w->texts, room, sizeof *texts);

	if (!texts)
		return -1;
	w->texts = texts;
	w->room = room;
	return 0;
}

void warnings_add(struct warnings *w, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		w->lost++;
		return;
	}
	for (size_t i = 0; i < w->count; i++) {
		if (strcmp(w->texts[i], text) == 0) {
			free(text);
			return;
		}
	}
	if (w->count >= WARNINGS_MAX || (w->count == w->room && grow(w) < 0)) {
		w->lost++;
		free(text);
		return;
	}
	w->texts[w->count++] = text;
}
