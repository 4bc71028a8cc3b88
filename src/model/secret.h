/* What is a secret: by the name before it, by its own form, by what it stands behind.
 *
 * Pure functions on pieces of a command line; where the pieces begin and end is model/mask's business. */
#ifndef ASSAY_MODEL_SECRET_H
#define ASSAY_MODEL_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Which values of a name are secrets. */
enum secrecy {
	SECRET_NEVER,
	SECRET_IF_LIKE_A_KEY,   /* --key */
	SECRET_UNLESS_A_PATH,   /* --pwd, --private-key */
	SECRET_UNLESS_A_NUMBER, /* --token, which may be a count */
	SECRET_ALWAYS,
};

struct secret_kind {
	enum secrecy secrecy;
	bool exact;  /* the name ends with its telling word, so that a value may begin with '-' */
	bool option; /* its value is the next word */
	bool user;   /* curl's USER:PASSWORD: only what is behind the first ':' */
};

/* Of a variable, a header, a member, an option with its value behind '='. */
struct secret_kind secret_kind_of_name(const char *name, size_t length);

/* Of an option whose value is the next word. `curl`: of curl or its like, whose -u names a password. */
struct secret_kind secret_kind_of_option(const char *name, size_t length, bool curl);

/* Whether a value of that kind is a secret; quotes around it do not count. */
bool secret_value(struct secret_kind kind, const char *value, size_t length);

/* The length of a well-known token that begins here, its telling prefix included; 0: none. */
size_t secret_token(const char *text);

/* Whether this may stand in a token. */
bool secret_in_token(char c);

/* Whether text[0..length) ends so; is this word, whatever its case. */
bool secret_ends_with(const char *text, size_t length, const char *end);
bool secret_is_word(const char *text, size_t length, const char *word);

/* "Bearer" of "Authorization: Bearer VALUE", and its like. */
bool secret_is_scheme(const char *word, size_t length);

/* curl and its like; their option with USER:PASSWORD. */
bool secret_is_curl(const char *program, size_t length);
bool secret_is_user_option(const char *name, size_t length);

#endif
