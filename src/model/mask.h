/* Secrets in command lines: what looks like a token, key or password is masked before it is shown or stored.
 *
 * Pure text; errs on the side of masking. What has been masked may be masked again and stays as it is. */
#ifndef ASSAY_MODEL_MASK_H
#define ASSAY_MODEL_MASK_H

#include <stdbool.h>

#include "base/buf.h"

#define MASK_TEXT "[masked]"

/* Whether a variable or option of this name holds a secret: API_KEY, --hf-token, PASSWORD, ... */
bool mask_is_secret_name(const char *name);

/* Appends the arguments, quoted for a shell where needed and separated by blanks, secrets masked: values of options,
 * assignments, headers and JSON members with a secret name, well-known token forms (hf_, sk-, ghp_, AKIA, "Bearer
 * ..."), passwords in URLs, curl's -u USER:PASSWORD. An argument `NAME=...` is secret to its end; in the script of
 * `sh -c` a value ends as it does for a shell. Plain numbers are left where a name may mean a count (--token-limit 8),
 * and so are names of files (--token-file). */
void mask_command(struct buf *out, char *const *argv);

/* The same for a command line that is already one text, without quoting; arguments in quotes are known as such. */
void mask_text(struct buf *out, const char *text);

#endif
