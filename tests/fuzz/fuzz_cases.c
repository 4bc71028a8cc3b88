/* Any bytes as cases.json: refused with a sentence that names the file, or read as cases with distinct labels and
 * distinct safe folder names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trial/cases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct cases *cases)
{
	size_t looked_at = cases->count < 64 ? cases->count : 64;

	require(cases->count > 0 && cases->count <= CASES_MAX);
	for (size_t i = 0; i < looked_at; i++) {
		const struct matrix_case *c = &cases->items[i];

		require(*c->label && *c->binary && c->prefix && c->args && c->env);
		require(*c->tag && !strchr(c->tag, '/') && *c->tag != '.' && *c->tag != '-');
		for (char **variable = c->env; *variable; variable++)
			require(strchr(*variable, '=') > *variable);
		for (size_t k = 0; k < i; k++)
			require(strcmp(c->tag, cases->items[k].tag) != 0 &&
				strcmp(c->label, cases->items[k].label) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cases cases;
	struct error err = {.text = ""};

	if (cases_parse((const char *)data, size, "cases.json", &cases, &err) < 0) {
		require(strncmp(err.text, "cases.json: ", 12) == 0);
		return 0;
	}
	check(&cases);
	cases_release(&cases);
	return 0;
}
