#include "symbol/elf_demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define MANGLED_MAX 65536
#define READABLE_MAX 65536
#define PARTS_MAX 1000000u /* of one name: some ask for endless empty ones */

struct readable {
	struct buf text;
	unsigned parts;
	jmp_buf enough;
};

/* The demanglers hold nothing while they call this that would have to be freed (punycode apart), so that it may leave
 * them in the middle. */
static void take_part(const char *part, size_t length, void *context)
{
	struct readable *r = context;

	buf_append(&r->text, part, length);
	if (r->text.length > READABLE_MAX || ++r->parts > PARTS_MAX || r->text.failed)
		longjmp(r->enough, 1);
}

static int demangle_into(struct readable *r, const char *name)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(r->enough))
		return 0;
	/* Old Rust names are C++ names with a hash of 17 characters behind them, so Rust is asked first. */
	if ((name[1] != 'Z' || strstr(name, "17h")) && rust_demangle_callback(name, options, take_part, r) &&
	    r->text.length)
		return 1;
	buf_clear(&r->text);
	return name[0] == '_' && cplus_demangle_v3_callback(name, options, take_part, r) && r->text.length;
}

char *elf_demangle(const char *name)
{
	CLEANUP(free_cleanup) struct readable *r = NULL;
	char *text;

	if ((name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != '_')) || strlen(name) > MANGLED_MAX)
		return NULL;
	r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	buf_init(&r->text);
	text = demangle_into(r, name) ? buf_detach(&r->text) : NULL;
	buf_release(&r->text);
	return text;
}

char *elf_demangle_symbol(const char *name)
{
	const char *version = name[0] == '@' ? NULL : strchr(name, '@');
	CLEANUP(free_cleanup) char *plain = version ? strndup(name, (size_t)(version - name)) : NULL;
	char *text;

	if (version && !plain)
		return NULL;
	text = elf_demangle(version ? plain : name);
	return text ? text : strdup(version ? plain : name);
}
