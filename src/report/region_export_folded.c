/* Stacks of regions: "outermost;...;innermost NS", one line per path, all ranks and threads together. NS is exclusive
 * time. The format has no escapes. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/region_exporter.h"
#include "store/region_tree.h"

#define COLUMNS_MAX 4000 /* of a name; the longest one that files hold has fewer */

static void put_frame(FILE *out, const char *name, struct buf *text)
{
	buf_clear(text);
	utf8_append_line(text, *name ? name : "(unnamed)", COLUMNS_MAX);
	for (const char *c = text->text; *c; c++)
		putc_unlocked(*c == ';' ? ':' : *c, out);
}

static void put_path(FILE *out, const struct region_tree *t, uint32_t at, uint32_t *chain, struct buf *text)
{
	size_t depth = 0;

	for (uint32_t i = at; i != REGION_TREE_ROOT; i = t->nodes[i].parent)
		chain[depth++] = t->nodes[i].region;
	while (depth > 0) {
		put_frame(out, t->names[chain[--depth]], text);
		putc_unlocked(depth ? ';' : ' ', out);
	}
	fprintf(out, "%" PRId64 "\n", t->nodes[at].exclusive);
}

static int read_tree(const struct region_export *e, struct region_tree *t, struct error *err)
{
	const struct regions *r = region_file_regions(e->file);

	if (region_tree_is_known(r))
		return region_tree_read(e->file, e->query, t, err);
	warnings_add(e->warnings,
		     "%s does not say which call is inside which: each region stands alone, with the "
		     "time of what is inside it.",
		     r->path);
	return region_tree_read_flat(e->file, e->query, t, err);
}

int region_export_folded(const struct region_export *e, FILE *out, struct error *err)
{
	CLEANUP(region_tree_release) struct region_tree tree;
	CLEANUP(buf_release) struct buf text;
	CLEANUP(free_cleanup) uint32_t *chain = NULL;
	size_t negative = 0;

	region_tree_init(&tree);
	buf_init(&text);
	if (read_tree(e, &tree, err) < 0 || region_tree_finish(&tree, REGION_TREE_AS_MADE, err) < 0)
		return -1;
	chain = calloc(tree.count + 1, sizeof *chain);
	if (!chain)
		return error_set(err, "out of memory for %zu paths", tree.count);
	for (uint32_t i = 1; i < tree.count && !ferror(out); i++) {
		negative += tree.nodes[i].exclusive < 0;
		if (tree.nodes[i].exclusive > 0)
			put_path(out, &tree, i, chain, &text);
	}
	if (negative)
		warnings_add(e->warnings,
			     "Paths that are left out since what is inside them took longer than they did: %s.",
			     units_count((double)negative).text);
	return text.failed ? error_set(err, "out of memory for a name") : 0;
}
