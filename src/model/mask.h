/* Secrets in command lines: what looks like a token, key or password is masked before it is shown or stored.
 *
 * Pure text; errs on the side of masking. */
#ifndef ASSAY_MODEL_MASK_H
#define ASSAY_MODEL_MASK_H

#include <stdbool.h>

#include "base/buf.h"

#define MASK_TEXT "[masked]"

/* Whether a variable or option of this name holds a secret: API_KEY, --hf-token, PASSWORD, ... */
bool mask_is_secret_name(const char *name);

/* Appends the arguments, quoted for a shell where needed and separated by blanks, secrets masked: values of options and
 * assignments with a secret name, well-known token forms (hf_, sk-, ghp_, AKIA, "Bearer ..."), passwords in URLs. */
void mask_command(struct buf *out, char *const *argv);

/* The same for a command line that is already one text, without quoting. */
void mask_text(struct buf *out, const char *text);

#endif
