#include "report/region_exporter.h"

#include <string.h>

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

const struct region_thread_row *region_export_thread(const struct regions *r, uint32_t rank, int64_t index)
{
	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].rank == rank && r->threads[i].index == index)
			return &r->threads[i];
	return NULL;
}
