#include "report/region_exporter.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct region_exporter region_exporters[] = {
#define REGION_EXPORTER(name, extension, binary, summary) {#name, extension, binary, summary, region_export_##name},
#include "report/region_exporters.def"
#undef REGION_EXPORTER
};
const size_t region_exporter_count = sizeof region_exporters / sizeof *region_exporters;

const struct region_exporter *region_exporter_find(const char *name)
{
	for (size_t i = 0; i < region_exporter_count; i++)
		if (strcmp(region_exporters[i].name, name) == 0)
			return &region_exporters[i];
	return NULL;
}

const struct region_exporter *region_exporter_for_path(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < region_exporter_count; i++) {
		size_t end = strlen(region_exporters[i].extension);

		if (length > end && strcmp(path + length - end, region_exporters[i].extension) == 0)
			return &region_exporters[i];
	}
	return NULL;
}

bool *region_export_parts(const struct region_export *e)
{
	const struct regions *r = region_file_regions(e->file);
	bool *names = calloc(r->name_count + 1, sizeof *names), *parts = calloc(r->part_count + 1, sizeof *parts);

	/* Names first: they are far fewer than parts where there are many ranks. */
	for (size_t i = 0; names && i < r->name_count; i++)
		names[i] = region_query_takes_name(e->query, r->names[i]);
	for (size_t i = 0; names && parts && i < r->part_count; i++)
		parts[i] = names[r->parts[i].region] && region_query_takes_rank(e->query, r->parts[i].rank);
	if (!names) {
		free(parts);
		parts = NULL;
	}
	free(names);
	return parts;
}

static int find_first(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	int64_t *first = context;

	(void)worker, (void)err;
	for (size_t i = 0; i < block->n; i++)
		if (block->columns[REGION_START][i] < *first)
			*first = block->columns[REGION_START][i];
	return 0;
}

int region_export_measure(const struct region_export *e, struct region_export_extent *ret, struct error *err)
{
	const struct regions *r = region_file_regions(e->file);
	CLEANUP(free_cleanup) bool *parts = region_export_parts(e);
	int64_t first = INT64_MAX;
	struct region_scan scan = {.wanted = parts, .workers = 1, .block = find_first, .context = &first};

	*ret = (struct region_export_extent){0};
	if (!parts)
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	for (size_t i = 0; i < r->part_count; i++) {
		if (!parts[i])
			continue;
		ret->calls += r->parts[i].count;
		ret->untimed += r->parts[i].calls > r->parts[i].count ? r->parts[i].calls - r->parts[i].count : 0;
		ret->dropped += r->parts[i].dropped;
	}
	if (ret->calls && region_file_scan(e->file, &scan, err) < 0)
		return -1;
	ret->first = ret->calls ? first : 0;
	return 0;
}

const struct region_thread_row *region_export_thread(const struct regions *r, uint32_t rank, int64_t index)
{
	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].rank == rank && r->threads[i].index == index)
			return &r->threads[i];
	return NULL;
}
