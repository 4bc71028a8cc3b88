/* Names of functions made to fit: what tells least is dropped first. It knows names as demanglers, unwind tables and
 * runtimes write them, and takes any other text for a name without parts. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/hotspot_words.h"

#define DOTS "..."
#define DOTS_COLUMNS 3
#define LEAST_COLUMNS 8 /* nothing that is narrower says anything */
#define OPERATOR "operator"
#define PYTHON "py::" /* "py::<module>:/path/file.py": the brackets are the name */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* How many bytes "operator<<" and the like have at `text[at]`; 0: nothing like it is there. Its signs are no
 * brackets. */
static size_t operator_at(const char *text, size_t at)
{
	static const char *const signs[] = {"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "->", "<=", ">=",
					    "<",   ">"}; /* those with brackets in them, the longest first */
	size_t length = strlen(OPERATOR);

	if (strncmp(text + at, OPERATOR, length) != 0 || is_word(text[at + length]) || (at && is_word(text[at - 1])))
		return 0;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strncmp(text + at + length, signs[i], strlen(signs[i])) == 0)
			return length + strlen(signs[i]);
	return length + strspn(text + at + length, "=-+*/%^&|~!,");
}

/* Behind the bracket that closes the one at `text[at]`; 0: there is none. */
static size_t behind_bracket(const char *text, size_t at, char opens, char closes)
{
	size_t depth = 0;

	for (size_t i = at; text[i]; i++) {
		if (text[i] == closes && i && text[i - 1] == '-' && closes == '>')
			continue; /* the arrow of a returned type */
		depth += text[i] == opens;
		if (text[i] == closes && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* What may follow a list of parameters. */
static size_t qualifiers_at(const char *text)
{
	static const char *const words[] = {" const", " volatile", " &&", " &"};
	size_t length = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strncmp(text + length, words[i], strlen(words[i])) == 0)
			length += strlen(words[i]);
	return text[length] == '\0' || text[length] == ':' || text[length] == ' ' ? length : 0;
}

/* "a::f(int) const" to "a::f". What stands in brackets behind no name is a name itself: "(anonymous namespace)",
 * "main.(*T).run". */
static void drop_parameters(const char *text, struct buf *out)
{
	bool behind_operator = false;
	size_t length, end;

	for (size_t i = 0; text[i];) {
		char before = i ? text[i - 1] : ' ';

		if ((length = operator_at(text, i)) > 0) {
			buf_append(out, text + i, length);
			i += length;
			behind_operator = true;
			continue;
		}
		if (text[i] == '(' && (behind_operator || is_word(before) || strchr(">}]'", before)) &&
		    (end = behind_bracket(text, i, '(', ')')) > 0) {
			i = end + qualifiers_at(text + end);
		} else {
			buf_putc(out, text[i++]);
		}
		behind_operator = false;
	}
}

/* "map<int, char>::at" to "map<>::at". Brackets behind no name hold what a Rust name begins with:
 * "<T as Read>::read". */
static void empty_templates(const char *text, struct buf *out)
{
	bool python = strncmp(text, PYTHON, strlen(PYTHON)) == 0, behind_operator = false;
	size_t length, end;

	for (size_t i = 0; text[i];) {
		if ((length = operator_at(text, i)) > 0) {
			buf_append(out, text + i, length);
			i += length;
			behind_operator = true;
			continue;
		}
		if (text[i] == '<' && i && !python &&
		    (behind_operator || is_word(text[i - 1]) || text[i - 1] == ':') &&
		    (end = behind_bracket(text, i, '<', '>')) > 0) {
			buf_puts(out, "<>");
			i = end;
		} else {
			buf_putc(out, text[i++]);
		}
		behind_operator = false;
	}
}

/* "src/a/b.c:12 f" to "b.c:12 f", word by word: a path is what has both a slash and a colon. */
static void drop_folders(const char *text, struct buf *out)
{
	while (*text) {
		size_t length = strcspn(text, " "), from = 0, last, first = strcspn(text, "/");

		if (first < length && memchr(text, ':', length) &&
		    !(first >= strlen(OPERATOR) && strncmp(text + first - strlen(OPERATOR), OPERATOR,
							   strlen(OPERATOR)) == 0)) {
			for (size_t i = 0; i < first; i++)
				from = text[i] == ':' ? i + 1 : from;
			last = first;
			for (size_t i = first; i < length; i++)
				last = text[i] == '/' ? i : last;
			buf_append(out, text, from);
			buf_append(out, text + last + 1, length - last - 1);
		} else {
			buf_append(out, text, length);
		}
		text += length;
		length = strspn(text, " ");
		buf_append(out, text, length);
		text += length;
	}
}

/* Where the character before byte `at` or at it begins. */
static size_t back_to_character(const char *text, size_t at)
{
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

/* The first `front` and the last `back` characters, which together are fewer than there are. */
static void put_ends(struct buf *out, const char *text, size_t length, size_t front, size_t back)
{
	size_t at = 0;

	for (size_t i = 0; i < front && at < length; i++)
		at += utf8_character(text + at, length - at);
	buf_append(out, text, at);
	buf_puts(out, DOTS);
	at = length;
	for (size_t i = 0; i < back && at > 0; i++)
		at = back_to_character(text, at - 1);
	buf_append(out, text + at, length - at);
}

/* How long "file.c:12 " at the beginning is; 0: there is no such thing. */
static size_t line_prefix(const char *text)
{
	size_t end = strcspn(text, " "), digits = 0;

	while (digits < end && isdigit((unsigned char)text[end - 1 - digits]))
		digits++;
	return text[end] && digits && digits + 1 < end && text[end - 1 - digits] == ':' ? end + 1 : 0;
}

/* The last part of a qualified name, which is what it is called. */
static const char *last_component(const char *name)
{
	const char *last = name;
	size_t depth = 0;

	for (const char *c = name; *c; c++) {
		depth += strchr("<({", *c) != NULL;
		depth -= depth && strchr(">)}", *c);
		if (!depth && c[0] == ':' && c[1] == ':')
			last = c + 2;
	}
	return last;
}

static void cut_function(struct buf *out, const char *name, size_t columns)
{
	const char *last = last_component(name);
	size_t width = wrap_width(name), whole = wrap_width(last), back;

	if (width <= columns) {
		buf_puts(out, name);
		return;
	}
	if (last != name && whole <= columns && whole + DOTS_COLUMNS >= columns) {
		buf_puts(out, last);
		return;
	}
	if (last != name && whole > columns) {
		cut_function(out, last, columns);
		return;
	}
	back = (columns - DOTS_COLUMNS) / 2;
	back = last != name && whole > back ? whole : back;
	put_ends(out, name, strlen(name), columns - DOTS_COLUMNS - back, back);
}

/* The line keeps its number, and half of the columns are the function's where it needs them. */
static void cut_middle(struct buf *out, const char *name, size_t columns)
{
	size_t prefix = line_prefix(name), least = columns / 2, function = wrap_width(name + prefix), room, number;
	CLEANUP(buf_release) struct buf file;

	buf_init(&file);
	if (!prefix || columns < 2 * LEAST_COLUMNS) {
		cut_function(out, name, columns);
		return;
	}
	buf_append(&file, name, prefix);
	number = (size_t)(name + prefix - (const char *)memrchr(name, ':', prefix)) + DOTS_COLUMNS + 1;
	room = columns - (function > least ? least : function);
	if (wrap_width(file.text) <= 2 * columns / 3)
		room = wrap_width(file.text);
	if (number > room && number + LEAST_COLUMNS < columns)
		room = number;
	if (wrap_width(file.text) > room)
		put_ends(out, file.text, file.length, 0, room - DOTS_COLUMNS);
	else
		buf_puts(out, file.text);
	room = wrap_width(file.text) > room ? room : wrap_width(file.text);
	cut_function(out, name + prefix, columns - room);
}

void hotspot_words_name(struct buf *out, const char *name, size_t columns)
{
	static void (*const steps[])(const char *text, struct buf *out) = {
		drop_parameters, empty_templates, drop_folders};
	CLEANUP(buf_release) struct buf now;
	CLEANUP(buf_release) struct buf next;

	buf_init(&now);
	buf_init(&next);
	utf8_append_line(&now, name, SIZE_MAX);
	if (columns < LEAST_COLUMNS)
		columns = SIZE_MAX;
	for (size_t i = 0; i < sizeof steps / sizeof *steps && wrap_width(now.text) > columns; i++) {
		struct buf swap = now;

		steps[i](now.text, &next);
		if (!next.length) /* all of it was such a part */
			continue;
		now = next;
		next = swap;
		buf_clear(&next);
	}
	if (wrap_width(now.text) <= columns)
		buf_puts(out, now.text);
	else
		cut_middle(out, now.text, columns);
}
