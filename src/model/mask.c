#include "model/mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "model/secret.h"

#define BLANKS " \t\n"

bool mask_is_secret_name(const char *name)
{
	return secret_kind_of_name(name, strlen(name)).secrecy > SECRET_IF_LIKE_A_KEY;
}

/* Going through a text from name to name. A segment is what belongs together: a whole argument, or what stands between
 * a pair of quotes. */
struct scan {
	struct buf *out;
	const char *text, *at, *end;
	const char *limit;   /* where the segment ends */
	bool argument;       /* the text is one argument, no command line */
	bool quoted;         /* the segment is one between quotes */
	bool blanks, before; /* whether a blank came in the segment, and in what is around it */
	bool curl;           /* the words are those of curl or its like */
};

/* Nothing but the value follows in the segment, where the value's name began it. */
static bool owns_segment(const struct scan *s)
{
	return (s->argument || s->quoted) && !s->blanks;
}

static bool is_masked_already(const struct scan *s, const char *at)
{
	size_t length = strlen(MASK_TEXT);

	return !s->argument && strncmp(at, MASK_TEXT, length) == 0 && !secret_in_token(at[length]);
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && strchr(BLANKS, *at))
		at++;
	return at;
}

/* Where a shell's word ends, one of these characters at the latest. A quote that is not closed is no quote. */
static const char *word_end(const char *at, const char *limit, const char *stops)
{
	for (; at < limit && !strchr(stops, *at); at++) {
		if (*at == '\\' && at + 1 < limit) {
			at++;
		} else if (*at == '\'' || *at == '"') {
			char quote = *at;
			const char *close = at + 1;

			while (close < limit && *close != quote)
				close += *close == '\\' && quote == '"' && close + 1 < limit ? 2 : 1;
			if (close < limit)
				at = close;
		}
	}
	return at;
}

/* Masks from s->at to `end` if that is a secret; else the text is gone through like any other. */
static void take_value(struct scan *s, struct secret_kind kind, const char *end)
{
	if (is_masked_already(s, s->at)) {
		buf_puts(s->out, MASK_TEXT);
		s->at += strlen(MASK_TEXT);
		return;
	}
	if (!secret_value(kind, s->at, (size_t)(end - s->at)))
		return;
	if (kind.user) {
		const char *colon = memchr(s->at, ':', (size_t)(end - s->at));
		char quote = *s->at == '\'' || *s->at == '"' ? *s->at : '\0';

		if (!colon || colon + 1 == end)
			return;
		buf_append(s->out, s->at, (size_t)(colon + 1 - s->at));
		buf_puts(s->out, MASK_TEXT);
		if (quote && end[-1] == quote)
			buf_putc(s->out, quote);
	} else {
		buf_puts(s->out, MASK_TEXT);
	}
	s->at = end;
}

/* NAME=VALUE; s->at is behind the '='. */
static void take_assignment(struct scan *s, struct secret_kind kind, bool in_query)
{
	const char *end;

	if (in_query)
		end = word_end(s->at, s->limit, owns_segment(s) ? "&" : BLANKS ";&");
	else
		end = owns_segment(s) ? s->limit : word_end(s->at, s->limit, BLANKS ";");
	take_value(s, kind, end);
}

/* "NAME: VALUE", "NAME:VALUE", perhaps with a scheme such as Bearer before the value; s->at is behind the ':'. */
static void take_header(struct scan *s, struct secret_kind kind, bool cookie)
{
	const char *value = skip_blanks(s->at, s->limit), *end, *scheme;

	if (owns_segment(s)) {
		end = memchr(value, '\n', (size_t)(s->limit - value));
		end = end ? end : s->limit;
	} else {
		end = word_end(value, s->limit, BLANKS ";");
	}
	scheme = value;
	while (scheme < end && isalpha((unsigned char)*scheme))
		scheme++;
	if (secret_is_scheme(value, (size_t)(scheme - value)) && scheme < s->limit && strchr(BLANKS, *scheme)) {
		value = skip_blanks(scheme, s->limit);
		if (!owns_segment(s))
			end = word_end(value, s->limit, BLANKS ";");
	}
	/* "a=1; b=2" */
	while (cookie && !owns_segment(s) && end < s->limit && *end == ';')
		end = word_end(skip_blanks(end + 1, s->limit), s->limit, BLANKS ";");
	if (value >= end)
		return;
	s->blanks |= value > s->at;
	buf_append(s->out, s->at, (size_t)(value - s->at));
	s->at = value;
	take_value(s, kind, end);
}

/* What is between quotes (perhaps escaped ones: \"), in brackets, or up to the next comma; s->at is where it begins.
 * Double quotes stay, so that JSON remains JSON. */
static void take_member(struct scan *s, struct secret_kind kind)
{
	const char *stop = s->quoted && s->limit > s->at ? s->limit : s->end, *end;
	size_t quote = 0;

	while (s->at + quote < stop && s->at[quote] == '\\')
		quote++;
	if (s->at < stop && *s->at == '\'') {
		end = memchr(s->at + 1, '\'', (size_t)(stop - s->at - 1));
		end = end ? end + 1 : stop;
	} else if (s->at + quote < stop && (s->at[quote] == '"' || s->at[quote] == '\'')) {
		const char *open = s->at;

		quote++;
		buf_append(s->out, open, quote);
		s->at = end = open + quote;
		if (quote == 1)
			while (end < stop && *end != *open)
				end += *end == '\\' && end + 1 < stop ? 2 : 1;
		else
			while (end < stop && strncmp(end, open, quote) != 0)
				end++;
	} else if (s->at < stop && *s->at == '[' && !is_masked_already(s, s->at)) {
		end = memchr(s->at, ']', (size_t)(stop - s->at));
		end = end ? end + 1 : stop;
	} else {
		end = word_end(s->at, stop, BLANKS ",}]");
	}
	take_value(s, kind, end);
}

/* "user:password@" behind "://"; s->at is behind that. A password may hold '@'. */
static void take_authority(struct scan *s)
{
	size_t length = strcspn(s->at, "/" BLANKS "\"'");
	const char *end = s->at + length < s->limit ? s->at + length : s->limit;
	const char *colon = memchr(s->at, ':', (size_t)(end - s->at));
	const char *at = memrchr(s->at, '@', (size_t)(end - s->at));

	if (!colon || !at || at <= colon + 1)
		return;
	if (!secret_token(s->at))
		buf_append(s->out, s->at, (size_t)(colon - s->at));
	else
		buf_puts(s->out, MASK_TEXT);
	buf_puts(s->out, ":" MASK_TEXT);
	s->at = at;
}

/* Copies to `end`, or further where a well-known token goes on behind it. True if the last that it copied is one. */
static bool copy_masking_tokens(struct scan *s, const char *end)
{
	bool word_start = true, masked = false;

	while (s->at < end) {
		size_t secret = word_start ? secret_token(s->at) : 0;

		word_start = secret || !isalnum((unsigned char)*s->at);
		masked = secret > 0;
		if (secret)
			buf_puts(s->out, MASK_TEXT);
		else
			buf_putc(s->out, *s->at);
		s->at += secret ? secret : 1;
	}
	return masked;
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static void leave_quotes(struct scan *s)
{
	s->limit = s->end;
	s->quoted = false;
	s->blanks |= s->before;
}

/* A quoted name (with its closing quote at s->at, perhaps escaped, perhaps followed by ']') and its value. */
static bool take_quoted_member(struct scan *s, struct secret_kind kind, bool spaced_assignment)
{
	const char *at = s->at, *value;
	bool closes = false;

	while (*at == '\\' && at < s->end)
		at++;
	if (at < s->end && (*at == '"' || *at == '\'')) {
		closes = at == s->limit;
		at++;
	} else if (!spaced_assignment) {
		return false;
	}
	if (at < s->end && *at == ']')
		at++;
	at = skip_blanks(at, s->end);
	if (at >= s->end || (*at != ':' && *at != '='))
		return false;
	value = skip_blanks(at + 1, s->end);
	if (spaced_assignment && (*at != '=' || value >= s->limit || (*value != '"' && *value != '\'')))
		return false;
	if (closes)
		leave_quotes(s);
	if (s->quoted && value > s->limit)
		return false;
	buf_append(s->out, s->at, (size_t)(value - s->at));
	s->at = value;
	take_member(s, kind);
	return true;
}

/* Whether this name begins a word, as an option does. */
static bool begins_a_word(const struct scan *s, const char *name)
{
	return name == s->text || is_one_of(name[-1], BLANKS "\"'(`");
}

/* Whether this name stands where one of a header may: not inside a path or a URL. */
static bool may_name_a_header(const struct scan *s, const char *name)
{
	return name == s->text || is_one_of(name[-1], BLANKS "\"'{,(;=");
}

static void take_option(struct scan *s, struct secret_kind kind)
{
	const char *value = skip_blanks(s->at, s->limit);

	buf_append(s->out, s->at, (size_t)(value - s->at));
	s->at = value;
	s->blanks = true;
	take_value(s, kind, word_end(value, s->limit, BLANKS ";"));
}

/* "Bearer VALUE" without a header; words that are English, too, need a value that looks like one. */
static void take_scheme(struct scan *s, bool bearer)
{
	enum secrecy secrecy = bearer ? SECRET_ALWAYS : SECRET_IF_LIKE_A_KEY;

	take_option(s, (struct secret_kind){.secrecy = secrecy, .exact = true, .option = true});
}

/* curl's -uUSER:PASSWORD and --user=USER:PASSWORD. */
static bool take_attached_user(struct scan *s, const char *name, size_t length)
{
	static const struct secret_kind user = {.secrecy = SECRET_ALWAYS, .user = true};
	static const struct secret_kind password = {.secrecy = SECRET_ALWAYS};
	bool attached = *s->at == ':' && length > 2 && name[0] == '-' && (name[1] == 'u' || name[1] == 'U');
	bool assigned = *s->at == '=' && secret_is_user_option(name, length);

	if (!s->curl || (!attached && !assigned))
		return false;
	buf_putc(s->out, *s->at++);
	take_value(s, attached ? password : user, owns_segment(s) ? s->limit : word_end(s->at, s->limit, BLANKS ";"));
	return true;
}

/* A name, and its value if that is a secret. */
static void take_name(struct scan *s)
{
	const char *name = s->at, *end = name;
	bool in_query = name > s->text && is_one_of(name[-1], "?&");
	bool before_blank;
	struct secret_kind kind;
	size_t length;

	while (end < s->limit && in_name(*end))
		end++;
	if (copy_masking_tokens(s, end))
		return;
	length = (size_t)(end - name);
	before_blank = s->at < s->limit && is_one_of(*s->at, BLANKS);
	if (secret_is_curl(name, length) && (before_blank || s->at == s->end))
		s->curl = true;
	if (s->at >= s->end || take_attached_user(s, name, length))
		return;
	kind = *name == '-' ? secret_kind_of_option(name, length, s->curl) : secret_kind_of_name(name, length);
	if (before_blank && secret_is_scheme(name, length) && begins_a_word(s, name)) {
		take_scheme(s, secret_is_word(name, length, "bearer"));
	} else if (kind.secrecy == SECRET_NEVER) {
		return;
	} else if (before_blank && *name == '-') {
		if (!begins_a_word(s, name))
			return;
		take_option(s, kind);
	} else if (*s->at == '=' && s->at < s->limit) {
		buf_putc(s->out, *s->at++);
		kind.option = false;
		take_assignment(s, kind, in_query);
	} else if (*s->at == ':' && s->at < s->limit && s->at[1] != '/' && may_name_a_header(s, name)) {
		buf_putc(s->out, *s->at++);
		kind.option = false;
		take_header(s, kind, strncasecmp(end - (length < 6 ? length : 6), "cookie", 6) == 0);
	} else {
		kind.option = false;
		take_quoted_member(s, kind, before_blank);
	}
}

/* Begins a segment at a quote that is not an apostrophe and has a partner. */
static bool enter_quotes(struct scan *s)
{
	const char *close = s->at + 1;
	char quote = *s->at;

	if (s->quoted || (quote != '"' && quote != '\''))
		return false;
	if (s->at > s->text && (isalnum((unsigned char)s->at[-1]) || s->at[-1] == '\\'))
		return false;
	while (close < s->end && *close != quote)
		close += *close == '\\' && quote == '"' && close + 1 < s->end ? 2 : 1;
	if (close >= s->end)
		return false;
	buf_putc(s->out, *s->at++);
	s->limit = close;
	s->quoted = true;
	s->before = s->blanks;
	s->blanks = false;
	return true;
}

static void scan_text(struct buf *out, const char *text, bool argument, bool curl)
{
	struct scan s = {.out = out, .text = text, .at = text, .argument = argument, .curl = curl};

	s.end = s.limit = text + strlen(text);
	while (s.at < s.end) {
		if (s.quoted && s.at >= s.limit)
			leave_quotes(&s);
		else if (enter_quotes(&s))
			continue;
		if (in_name(*s.at) && s.at < s.limit) {
			take_name(&s);
		} else if (strncmp(s.at, "://", 3) == 0) {
			buf_append(out, s.at, 3);
			s.at += 3;
			take_authority(&s);
		} else {
			s.blanks |= is_one_of(*s.at, BLANKS);
			s.curl &= argument || !is_one_of(*s.at, ";|\n");
			buf_putc(out, *s.at++);
		}
	}
}

void mask_text(struct buf *out, const char *text)
{
	scan_text(out, text, false, false);
}

static void append_quoted(struct buf *out, const char *text)
{
	bool plain =
		*text && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+[]") ==
				 strlen(text);

	if (plain) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *text);
	}
	buf_putc(out, '\'');
}

static const char *program_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_interpreter(const char *path)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su"};
	const char *name = program_name(path);

	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
		if (strcmp(name, shells[i]) == 0)
			return true;
	return strncmp(name, "python", 6) == 0;
}

/* Whether argv[i] is the script of `sh -c`, `bash -euo pipefail -c`, `python3 -c`. */
static bool is_script(char *const *argv, size_t i)
{
	const char *option = i > 0 ? argv[i - 1] : NULL;

	if (i < 2 || option[0] != '-' || option[1] == '-' || strlen(option) > 6 ||
	    !secret_ends_with(option, strlen(option), "c"))
		return false;
	for (i -= 2; i > 0; i--) {
		bool of_o = argv[i - 1][0] == '-' && secret_ends_with(argv[i - 1], strlen(argv[i - 1]), "o");

		if (argv[i][0] != '-' && !of_o)
			break;
	}
	return is_interpreter(argv[i]);
}

/* What the argument says of the next one. */
static struct secret_kind kind_of_next(const char *argument, bool curl)
{
	size_t length = strlen(argument);

	if (secret_is_word(argument, length, "bearer"))
		return (struct secret_kind){.secrecy = SECRET_ALWAYS, .exact = true, .option = true};
	if (argument[0] == '-' && !strpbrk(argument, "=:" BLANKS))
		return secret_kind_of_option(argument, length, curl);
	if (length > 1 && strchr(argument, ':') == argument + length - 1 && !strpbrk(argument, "=/" BLANKS))
		return secret_kind_of_name(argument, length - 1);
	return (struct secret_kind){.secrecy = SECRET_NEVER};
}

void mask_command(struct buf *out, char *const *argv)
{
	struct secret_kind expected = {.secrecy = SECRET_NEVER};
	bool curl = false;

	for (size_t i = 0; argv[i]; i++) {
		size_t length = strlen(argv[i]);
		struct buf clean;

		if (i)
			buf_putc(out, ' ');
		buf_init(&clean);
		if (expected.secrecy != SECRET_NEVER && !expected.option && secret_is_scheme(argv[i], length)) {
			buf_puts(&clean, argv[i]); /* Authorization: Bearer VALUE, in three arguments */
		} else if (secret_value(expected, argv[i], length) && (!expected.user || strchr(argv[i], ':'))) {
			if (expected.user)
				buf_append(&clean, argv[i], strcspn(argv[i], ":") + 1);
			buf_puts(&clean, MASK_TEXT);
			expected = (struct secret_kind){.secrecy = SECRET_NEVER};
		} else {
			scan_text(&clean, argv[i], !is_script(argv, i), curl);
			expected = kind_of_next(argv[i], curl);
		}
		append_quoted(out, clean.text);
		curl |= secret_is_curl(program_name(argv[i]), strlen(program_name(argv[i])));
		out->failed |= clean.failed;
		buf_release(&clean);
	}
}
