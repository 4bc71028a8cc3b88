#include "model/mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool mask_is_secret_name(const char *name)
{
	/* `whole`: no letter may follow, so that --max-tokens, --tokenizer and --author are left alone. */
	static const struct {
		const char *word;
		bool whole;
	} words[] = {
		{"token", true},	 {"secret", false},	{"passw", false},      {"api-key", true},
		{"api_key", true},	 {"apikey", true},	{"credential", false}, {"auth", true},
		{"authorization", true}, {"private-key", true}, {"private_key", true}, {"access-key", true},
		{"access_key", true},	 {"bearer", true},	{"cookie", true},      {"-hft", true},
		{"session-key", true},	 {"session_key", true},
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (const char *at = name; (at = strcasestr(at, words[i].word)); at++)
			if (!words[i].whole || !isalpha((unsigned char)at[strlen(words[i].word)]))
				return true;
	return false;
}

/* How many of the characters at `text` may stand in a token. */
static size_t token_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || (text[length] && strchr("_-.~+=", text[length])))
		length++;
	return length;
}

/* The length of a well-known token that begins here, its telling prefix included; 0: none. */
static size_t known_token(const char *text)
{
	static const struct {
		const char *prefix;
		size_t least; /* characters behind the prefix */
	} forms[] = {
		{"hf_", 16},   {"sk-", 16},	    {"sk_", 16},    {"ghp_", 20}, {"gho_", 20}, {"ghs_", 20},
		{"ghu_", 20},  {"github_pat_", 20}, {"glpat-", 16}, {"AKIA", 16}, {"ASIA", 16}, {"xoxb-", 10},
		{"xoxp-", 10}, {"nvapi-", 16},	    {"eyJ", 30},    {"AIza", 30}, {"npm_", 20}, {"pypi-", 20},
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t length = strlen(forms[i].prefix);

		if (strncmp(text, forms[i].prefix, length) == 0 && token_length(text + length) >= forms[i].least)
			return length + token_length(text + length);
	}
	return 0;
}

/* "://user:password@": the length of "password" where it begins at `text`, which stands behind "://user:"; else 0. */
static size_t url_password(const char *begin, const char *text)
{
	const char *at = text + strcspn(text, "@/ ");
	const char *user = text - 1;

	if (text == begin || *user != ':' || *at != '@' || at == text)
		return 0;
	while (user > begin && !strchr("/@ ", user[-1]))
		user--;
	return user - begin >= 3 && strncmp(user - 3, "://", 3) == 0 ? (size_t)(at - text) : 0;
}

static void append_masked(struct buf *out, const char *text)
{
	const char *begin = text;

	while (*text) {
		bool word_start = text == begin || !isalnum((unsigned char)text[-1]);
		size_t secret = word_start ? known_token(text) : 0;

		if (!secret)
			secret = url_password(begin, text);
		if (secret) {
			buf_puts(out, MASK_TEXT);
			text += secret;
		} else {
			buf_putc(out, *text++);
		}
	}
}

/* "Authorization: Bearer VALUE" and its like. */
static bool is_scheme(const char *word)
{
	return strcasecmp(word, "bearer") == 0 || strcasecmp(word, "basic") == 0 || strcasecmp(word, "token") == 0;
}

/* The words of a shell command inside one argument (`sh -c "..."`) are masked one by one. */
void mask_text(struct buf *out, const char *text)
{
	struct buf word;
	bool next_is_secret = false;

	buf_init(&word);
	while (*text) {
		size_t blank = strspn(text, " \t\n;");
		size_t length;
		char *equals;

		buf_append(out, text, blank);
		text += blank;
		length = strcspn(text, " \t\n;");
		buf_clear(&word);
		buf_append(&word, text, length);
		text += length;
		if (!length)
			break;
		equals = strchr(word.text, '=');
		if (is_scheme(word.text)) {
			buf_puts(out, word.text);
			next_is_secret = true;
			continue;
		}
		if (next_is_secret && word.text[0] != '-') {
			buf_puts(out, MASK_TEXT);
			next_is_secret = false;
			continue;
		}
		if (equals && equals[1]) {
			*equals = '\0';
			if (mask_is_secret_name(word.text)) {
				buf_printf(out, "%s=%s", word.text, MASK_TEXT);
				continue;
			}
			*equals = '=';
		}
		/* --api-key VALUE, or a header such as "X-API-Key: VALUE" */
		next_is_secret = !equals && (word.text[0] == '-' || word.text[word.length - 1] == ':') &&
				 mask_is_secret_name(word.text);
		append_masked(out, word.text);
	}
	buf_release(&word);
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

void mask_command(struct buf *out, char *const *argv)
{
	bool next_is_secret = false;

	for (size_t i = 0; argv[i]; i++) {
		struct buf clean;

		if (i)
			buf_putc(out, ' ');
		buf_init(&clean);
		if (next_is_secret && argv[i][0] != '-')
			buf_puts(&clean, MASK_TEXT);
		else
			mask_text(&clean, argv[i]);
		append_quoted(out, clean.text);
		next_is_secret = argv[i][0] == '-' && !strchr(argv[i], '=') && !strchr(argv[i], ' ') &&
				 mask_is_secret_name(argv[i]);
		out->failed |= clean.failed;
		buf_release(&clean);
	}
}
