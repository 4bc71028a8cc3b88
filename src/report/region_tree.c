#include "report/region_tree.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/json_stream.h"

#define NAME_COLUMNS 60
#define PATH_COLUMNS 2000
#define INDENTED_MAX 30u /* deeper ones say how deep they are */

static void name_cell(struct table *table, const char *name, uint32_t depth)
{
	CLEANUP(buf_release) struct buf shown;
	uint32_t indented = depth - 1 < INDENTED_MAX ? depth - 1 : INDENTED_MAX;

	buf_init(&shown);
	for (uint32_t i = 0; i < indented; i++)
		buf_puts(&shown, "  ");
	if (depth - 1 > INDENTED_MAX)
		buf_printf(&shown, "[%" PRIu32 "] ", depth - 1);
	utf8_append_line(&shown, name, NAME_COLUMNS);
	table_cell(table, "%s", shown.text);
}

int region_tree_text(const struct region_tree *t, FILE *out, struct error *err)
{
	CLEANUP(table_release) struct table table;
	CLEANUP(buf_release) struct buf text;
	size_t paths;

	buf_init(&text);
	table_init(&table, 4);
	table_cell(&table, "total");
	table_cell(&table, "exclusive");
	table_cell(&table, "calls");
	table_cell(&table, "region");
	for (uint32_t i = t->count ? region_tree_next(t, REGION_TREE_ROOT) : 0; i; i = region_tree_next(t, i)) {
		const struct region_tree_node *node = &t->nodes[i];

		table_cell(&table, "%s", units_seconds((double)node->total / 1e9).text);
		table_cell(&table, "%s", units_seconds((double)node->exclusive / 1e9).text);
		table_cell(&table, "%s", units_count((double)node->calls).text);
		name_cell(&table, t->names[node->region], node->depth);
	}
	utf8_append_line(&text, t->path, PATH_COLUMNS);
	paths = t->count ? t->count - 1 : 0;
	buf_printf(&text, ": %s path%s of regions\n\n", units_count((double)paths).text, paths == 1 ? "" : "s");
	table_print(&table, "rrrl", "", &text);
	if (table.failed || text.failed)
		return error_set(err, "out of memory for a tree of %zu paths", t->count);
	if (fwrite(text.text, 1, text.length, out) != text.length)
		return error_set(err, "the tree cannot be written");
	return 0;
}

int region_tree_json(const struct region_tree *t, FILE *out, struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *rows = calloc(t->count + 1, sizeof *rows);
	uint32_t count = 0;

	if (!rows)
		return error_set(err, "out of memory for a tree of %zu paths", t->count);
	fputs("{\"file\":", out);
	json_stream_text(out, t->path);
	fputs(",\n \"tree\":[", out);
	for (uint32_t i = t->count ? region_tree_next(t, REGION_TREE_ROOT) : 0; i; i = region_tree_next(t, i)) {
		const struct region_tree_node *node = &t->nodes[i];

		fputs(count ? ",\n  {\"name\":" : "\n  {\"name\":", out);
		json_stream_text(out, t->names[node->region]);
		fprintf(out, ",\"depth\":%" PRIu32 ",\"parent\":", node->depth - 1);
		if (node->parent)
			fprintf(out, "%" PRIu32, rows[node->parent]);
		else
			fputs("null", out);
		fprintf(out, ",\"calls\":%" PRIu64 ",\"total\":%" PRId64 ",\"exclusive\":%" PRId64 "}", node->calls,
			node->total, node->exclusive);
		rows[i] = count++;
	}
	fputs("]}\n", out);
	return ferror(out) ? error_set(err, "the tree cannot be written") : 0;
}
