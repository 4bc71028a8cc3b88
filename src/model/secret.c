#include "model/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 128

bool secret_ends_with(const char *text, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* Whether the last of the words that '_' separates is this one. */
static bool last_word_is(const char *name, size_t length, const char *word)
{
	size_t n = strlen(word);

	return secret_ends_with(name, length, word) && (length == n || name[length - n - 1] == '_');
}

/* Lower case, '_' for '-' and '.'; of a name that is too long, its end. */
static size_t normal_name(const char *name, size_t length, char ret[NAME_MAX_BYTES])
{
	if (length >= NAME_MAX_BYTES) {
		name += length - (NAME_MAX_BYTES - 1);
		length = NAME_MAX_BYTES - 1;
	}
	for (size_t i = 0; i < length; i++)
		ret[i] = name[i] == '-' || name[i] == '.' ? '_' : (char)tolower((unsigned char)name[i]);
	ret[length] = '\0';
	return length;
}

struct secret_kind secret_kind_of_name(const char *text, size_t text_length)
{
	/* `whole`: no letter may follow, so that --max-tokens, --tokenizer and --author are left alone. */
	static const struct {
		const char *word;
		bool whole;
		enum secrecy secrecy;
	} words[] = {
		{"passw", false, SECRET_ALWAYS},
		{"passphrase", false, SECRET_ALWAYS},
		{"secret", false, SECRET_ALWAYS},
		{"credential", false, SECRET_ALWAYS},
		{"api_key", false, SECRET_ALWAYS},
		{"apikey", false, SECRET_ALWAYS},
		{"access_key", false, SECRET_ALWAYS},
		{"accesskey", false, SECRET_ALWAYS},
		{"session_key", true, SECRET_ALWAYS},
		{"private_key", true, SECRET_UNLESS_A_PATH},
		{"privatekey", true, SECRET_UNLESS_A_PATH},
		{"authorization", true, SECRET_ALWAYS},
		{"token", true, SECRET_UNLESS_A_NUMBER},
		{"auth", true, SECRET_UNLESS_A_NUMBER},
		{"bearer", true, SECRET_UNLESS_A_NUMBER},
		{"cookie", false, SECRET_UNLESS_A_NUMBER},
		{"_hft", true, SECRET_UNLESS_A_NUMBER},
	};
	char name[NAME_MAX_BYTES] = "";
	size_t length = normal_name(text, text_length, name);

	if (memcmp(name, "__no_", 5) == 0 || secret_ends_with(name, length, "file") ||
	    last_word_is(name, length, "path") || last_word_is(name, length, "dir") ||
	    last_word_is(name, length, "jar"))
		return (struct secret_kind){.secrecy = SECRET_NEVER};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (const char *at = name; (at = strstr(at, words[i].word)); at++)
			if (!words[i].whole || !isalpha((unsigned char)at[strlen(words[i].word)]))
				return (struct secret_kind){
					.secrecy = words[i].secrecy,
					.exact = secret_ends_with(name, length, words[i].word) ||
						 secret_ends_with(name, length, "password") ||
						 secret_ends_with(name, length, "passwd"),
				};
	if (last_word_is(name, length, "pass"))
		return (struct secret_kind){.secrecy = SECRET_UNLESS_A_NUMBER, .exact = true};
	if (last_word_is(name, length, "pwd"))
		return (struct secret_kind){.secrecy = SECRET_UNLESS_A_PATH, .exact = true};
	if (last_word_is(name, length, "key"))
		return (struct secret_kind){.secrecy = SECRET_IF_LIKE_A_KEY, .exact = true};
	return (struct secret_kind){.secrecy = SECRET_NEVER};
}

bool secret_in_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-.~+=", c));
}

/* How many of the characters at `text` may stand in a token. */
static size_t token_length(const char *text)
{
	size_t length = 0;

	while (secret_in_token(text[length]))
		length++;
	return length;
}

size_t secret_token(const char *text)
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

/* "--verbose", "--log-level=2": an option, not the value of the one before. */
static bool is_long_option(const char *value, size_t length)
{
	size_t i = 2;

	if (length < 2 || value[0] != '-' || value[1] != '-')
		return false;
	while (i < length && (isalnum((unsigned char)value[i]) || value[i] == '-' || value[i] == '_'))
		i++;
	return length == 2 || (i > 2 && isalpha((unsigned char)value[2]) && (i == length || value[i] == '='));
}

static bool is_path(const char *value, size_t length)
{
	return length == 0 || *value == '/' || (*value == '.' && (length == 1 || value[1] == '/' || value[1] == '.')) ||
	       (length > 1 && value[0] == '~' && value[1] == '/') || *value == '$';
}

static bool is_file_name(const char *value, size_t length)
{
	static const char *const endings[] = {".pem", ".key", ".crt", ".cer", ".der", ".p12", ".pub", ".txt", ".json"};

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (secret_ends_with(value, length, endings[i]))
			return true;
	return false;
}

/* "256", "0.5": up to eight digits. */
static bool is_number(const char *value, size_t length)
{
	size_t digits = 0, points = 0;

	for (size_t i = 0; i < length; i++) {
		digits += isdigit((unsigned char)value[i]) != 0;
		points += value[i] == '.' && i > 0;
	}
	return digits > 0 && digits <= 8 && points <= 1 && digits + points == length;
}

static bool is_like_a_key(const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!secret_in_token(value[i]))
			return false;
	return length >= 16 && !is_file_name(value, length);
}

bool secret_value(struct secret_kind kind, const char *value, size_t length)
{
	if (length >= 2 && (*value == '\'' || *value == '"') && value[length - 1] == *value) {
		value++;
		length -= 2;
	}
	if (length == 0 || (kind.option && *value == '-' && (!kind.exact || is_long_option(value, length))))
		return false;
	switch (kind.secrecy) {
	case SECRET_NEVER:
		return false;
	case SECRET_IF_LIKE_A_KEY:
		return is_like_a_key(value, length);
	case SECRET_UNLESS_A_PATH:
		return !is_path(value, length) && !is_file_name(value, length);
	case SECRET_UNLESS_A_NUMBER:
		return !is_number(value, length);
	case SECRET_ALWAYS:
		break;
	}
	return true;
}

bool secret_is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

bool secret_is_scheme(const char *word, size_t length)
{
	return secret_is_word(word, length, "bearer") || secret_is_word(word, length, "basic") ||
	       secret_is_word(word, length, "token") || secret_is_word(word, length, "digest");
}

bool secret_is_curl(const char *name, size_t length)
{
	static const char *const names[] = {"curl", "curlie", "wget", "http", "https", "xh"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (secret_is_word(name, length, names[i]))
			return true;
	return false;
}

bool secret_is_user_option(const char *name, size_t length)
{
	static const char *const names[] = {"-u", "--user", "-U", "--proxy-user"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == length && memcmp(name, names[i], length) == 0)
			return true;
	return false;
}

struct secret_kind secret_kind_of_option(const char *name, size_t length, bool curl)
{
	struct secret_kind kind = secret_kind_of_name(name, length);

	if (curl && secret_is_user_option(name, length))
		kind = (struct secret_kind){.secrecy = SECRET_ALWAYS, .exact = true, .user = true};
	kind.option = true;
	return kind;
}
