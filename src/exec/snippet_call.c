/* assay-call LIBRARY SYMBOL, then what every runner takes: measures a function of a shared library, without a compiler.
 *
 * A process of its own, so that neither the library's constructors nor a crash of the function reach assay. */
#include "exec/snippet_runner.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY = 1, SYMBOL, OWN_ARGUMENTS = 2 };

/* As snippet_source.c has it for statements. */
static void call_loop(struct snippet_batch *batch)
{
	void (*function)(void) = batch->function;

	while (snippet_next(batch)) {
		uint64_t left;

#pragma GCC unroll 4
		for (left = batch->number; left; left--) {
			__asm__ __volatile__("");
			function();
		}
		batch->left = left;
	}
}

static int refuse(const char *path, const char *why)
{
	struct snippet_reply reply = {.magic = SNIPPET_MAGIC, .outcome = SNIPPET_REFUSED};
	FILE *out = fopen(path, "we");
	bool written;

	if (!out)
		return 1;
	snprintf(reply.text, sizeof reply.text, "%s", why ? why : "it is null");
	written = fwrite(&reply, sizeof reply, 1, out) == 1;
	return fclose(out) == 0 && written ? 0 : 1;
}

int main(int argc, char **argv)
{
	void (*function)(void);
	void *library, *symbol;

	if (argc != SNIPPET_ARGUMENTS + OWN_ARGUMENTS)
		return 2;
	library = dlopen(argv[LIBRARY], RTLD_NOW);
	symbol = library ? dlsym(library, argv[SYMBOL]) : NULL;
	if (!symbol)
		return refuse(argv[SNIPPET_REPLY + OWN_ARGUMENTS], dlerror());
	memcpy(&function, &symbol, sizeof function);
	return snippet_main(argv + OWN_ARGUMENTS, call_loop, call_loop, function);
}
