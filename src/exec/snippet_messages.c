#include "exec/snippet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define LINE_COLUMNS 400
#define MARK_COLUMNS 200 /* a longer line of the user's is not shown again */
#define NAMES_MAX 32
#define ERRORS_SHOWN 20 /* what follows them follows from them, mostly */

/* What the linker was told to have been missing, each name once. */
struct missing {
	char names[NAMES_MAX][64];
	size_t count;
};

struct speech {
	const struct snippet_text *text;
	size_t errors;
	char last[LINE_COLUMNS]; /* said before: compilers repeat themselves */
	struct missing missing;
	bool outside; /* the setup has what only stands outside of functions */
	struct buf *out;
};

static void say(struct speech *s, const char *text)
{
	s->errors += strstr(text, "error: ") != NULL;
	if (s->errors > ERRORS_SHOWN)
		return;
	utf8_append_line(s->out, text, LINE_COLUMNS);
	buf_putc(s->out, '\n');
}

/* The user's text that a message is about, NULL: none of it. *ret_rest is behind the name. */
static const char *subject(const struct speech *s, const char *line, size_t *ret_name)
{
	const struct {
		const char *name, *text;
	} parts[] = {{"statement:", s->text->statement}, {"setup:", s->text->setup}, {"each:", s->text->each}};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].text && strncmp(line, parts[i].name, strlen(parts[i].name)) == 0) {
			*ret_name = strlen(parts[i].name) - 1;
			return parts[i].text;
		}
	return NULL;
}

/* The line of that number from 1, or the last one where there are fewer: an error "behind the end" belongs there. */
static const char *line_of(const char *text, long *number, size_t *ret_length)
{
	const char *at = text;

	for (long i = 1; i < *number; i++) {
		const char *end = strchr(at, '\n');

		if (!end || !end[1]) {
			*number = i;
			break;
		}
		at = end + 1;
	}
	*ret_length = strcspn(at, "\n");
	return at;
}

/* The line itself with a caret below it. */
static void mark(struct speech *s, const char *line, size_t length, long column)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	buf_puts(&shown, "    ");
	for (size_t i = 0; i < length; i++)
		buf_putc(&shown, line[i] == '\t' ? ' ' : line[i]);
	if (length > MARK_COLUMNS)
		return;
	say(s, shown.text);
	buf_clear(&shown);
	buf_printf(&shown, "%*s^", (int)(3 + column), "");
	say(s, shown.text);
}

/* NAME:LINE:COLUMN: severity: text. Lines without a place only tell in which function of ours it is. */
static void say_about(struct speech *s, const char *line, const char *text, size_t name)
{
	char *end;
	long number = strtol(line + name + 1, &end, 10), wanted = number, column = 1;
	CLEANUP(buf_release) struct buf whole;
	size_t length;
	const char *at;

	buf_init(&whole);
	if (number < 1 || *end != ':')
		return;
	if (end[1] >= '0' && end[1] <= '9')
		column = strtol(end + 1, &end, 10);
	at = line_of(text, &number, &length);
	if (number != wanted || column > (long)length + 1 || column < 1)
		column = (long)length + 1;
	buf_printf(&whole, "%.*s:%ld:%ld%s", (int)name, line, number, column, end);
	if (strncmp(s->last, whole.text, sizeof s->last - 1) == 0)
		return;
	snprintf(s->last, sizeof s->last, "%s", whole.text);
	say(s, whole.text);
	if (!strstr(end, " note: "))
		mark(s, at, length, column);
}

/* `cos', 'cos': how linkers quote. */
static void note_missing(struct missing *m, const char *quoted)
{
	size_t length = strcspn(quoted + 1, "'`");
	char name[sizeof m->names[0]];

	if (!strchr("`'", *quoted) || length == 0)
		return;
	snprintf(name, sizeof name, "%.*s", (int)length, quoted + 1);
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->names[i], name) == 0)
			return;
	if (m->count < NAMES_MAX)
		memcpy(m->names[m->count++], name, sizeof name);
}

/* True where it was one of the linker's lines. */
static bool hear_linker(struct speech *s, const char *line)
{
	static const char undefined[] = "undefined reference", library[] = "cannot find -l";
	const char *at = strstr(line, undefined);
	char text[256];

	if (at) {
		note_missing(&s->missing, at + strcspn(at, "`'"));
		return true;
	}
	at = strstr(line, library);
	if (at) {
		snprintf(text, sizeof text, "-l %.*s: the linker finds no such library; -L names a folder to look in",
			 (int)strcspn(at + strlen(library), ": "), at + strlen(library));
		say(s, text);
		s->errors++;
	}
	return at || strstr(line, "in function `") || strstr(line, "linker command failed") ||
	       strncmp(line, "collect2:", 9) == 0;
}

static bool is_ours(const char *line)
{
	return strncmp(line, "assay:", 6) == 0 || strstr(line, "In file included from assay:") ||
	       strstr(line, "warning: treating 'c") || strcmp(line, "compilation terminated.") == 0 ||
	       strstr(line, "is reported only once for each function") || strstr(line, " generated.") ||
	       strstr(line, ": In function ");
}

static void hear(struct speech *s, const char *line)
{
	size_t name = 0;
	const char *text = subject(s, line, &name);

	if (!*line || is_ours(line))
		return;
	/* Of functions as GCC's C++ and clang have it, and of headers of C++. */
	s->outside |= strstr(line, "definition is not allowed here") != NULL;
	if (text)
		say_about(s, line, text, name);
	else if (!hear_linker(s, line))
		say(s, line);
}

static void say_missing(struct speech *s)
{
	for (size_t i = 0; i < s->missing.count; i++) {
		char text[256];

		snprintf(text, sizeof text, "nothing here defines '%s': -l names the library that does",
			 s->missing.names[i]);
		say(s, text);
		s->errors++;
	}
}

size_t snippet_messages(const struct snippet_text *text, const char *folder, const char *said, struct buf *out)
{
	struct speech s = {.text = text, .out = out};
	size_t prefix = strlen(folder);

	while (*said) {
		CLEANUP(buf_release) struct buf line;
		size_t length = strcspn(said, "\n");

		buf_init(&line);
		for (size_t i = 0; i < length;) {
			if (prefix && length - i > prefix && strncmp(said + i, folder, prefix) == 0 &&
			    said[i + prefix] == '/')
				i += prefix + 1;
			else
				buf_putc(&line, said[i++]);
		}
		hear(&s, line.text);
		said += length + (said[length] == '\n');
	}
	if (s.errors > ERRORS_SHOWN)
		buf_printf(out, "(%zu more errors are not shown)\n", s.errors - ERRORS_SHOWN);
	say_missing(&s);
	if (s.outside)
		buf_puts(out, "Functions and headers of C++ stand outside of functions: -I vector, or -I ./mine.h with "
			      "your own.\n");
	return s.errors;
}
