/* Stacks of regions: "outermost;...;innermost NS", one line per path, all ranks and threads together. NS is exclusive
 * time. The format has no escapes. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/region_paths.h"

#define COLUMNS_MAX 4000 /* of a name; the longest one that files hold has fewer */

static void put_frame(FILE *out, const char *name, struct buf *text)
{
	buf_clear(text);
	utf8_append_line(text, *name ? name : "(unnamed)", COLUMNS_MAX);
	for (const char *c = text->text; *c; c++)
		putc_unlocked(*c == ';' ? ':' : *c, out);
}

static void put_path(FILE *out, const struct regions *r, const struct region_paths *p, size_t at, uint32_t *chain,
		     struct buf *text)
{
	size_t depth = 0;

	for (uint32_t i = (uint32_t)at; i; i = p->items[i].parent)
		chain[depth++] = p->items[i].region;
	while (depth > 0) {
		put_frame(out, r->names[chain[--depth]], text);
		putc_unlocked(depth ? ';' : ' ', out);
	}
	fprintf(out, "%" PRId64 "\n", p->items[at].self);
}

int region_export_folded(const struct region_export *e, FILE *out, struct error *err)
{
	const struct regions *r = region_file_regions(e->file);
	CLEANUP(region_paths_release) struct region_paths paths;
	CLEANUP(buf_release) struct buf text;
	CLEANUP(free_cleanup) uint32_t *chain = NULL;
	size_t negative = 0;

	region_paths_init(&paths);
	buf_init(&text);
	if (region_paths_read(&paths, e, err) < 0)
		return -1;
	chain = calloc(paths.count, sizeof *chain);
	if (!chain)
		return error_set(err, "out of memory for %zu paths", paths.count);
	for (size_t i = 1; i < paths.count && !ferror(out); i++) {
		negative += paths.items[i].self < 0;
		if (paths.items[i].self > 0)
			put_path(out, r, &paths, i, chain, &text);
	}
	if (negative)
		warnings_add(e->warnings,
			     "Paths that are left out since what is inside them took longer than they did: %zu.",
			     negative);
	return text.failed ? error_set(err, "out of memory for a name") : 0;
}
